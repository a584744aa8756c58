"""Teach a neural network to play Connect 4 as a tree search does, without searching when it plays."""

__version__ = "0.1.0"
