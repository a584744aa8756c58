"""A training run: its recipe, steps, policy gradient, checkpoint, history and folder."""
