"""What learns: the networks and their saved form. Imports game/."""
