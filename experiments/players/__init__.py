"""The ladder: how strong, how right and how quick every player is, by one command."""
