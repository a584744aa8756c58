"""Build the page's data files from a checkout: puzzles and the opening book."""
