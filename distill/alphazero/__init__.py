"""Self-play and REINFORCE: iterations, games, workers, presets and files."""
