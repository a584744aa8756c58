"""How players play: what is measured, what an article says of its networks, tables and pictures."""
