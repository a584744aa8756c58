"""What comes back: an iteration of self-play and of REINFORCE, their presets and files."""
