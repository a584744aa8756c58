"""Rounds towards a network that wins every game, on an accelerator."""
