"""Self-play: iterations, games, workers, presets and files."""
