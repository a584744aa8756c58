"""Self-play and REINFORCE: iterations, presets, plans, workers and files."""
