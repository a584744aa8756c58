"""A position: rules on two bitboards, its one encoding, tactics, the mixing of random numbers."""
