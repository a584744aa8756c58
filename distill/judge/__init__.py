"""What is right: players, matches, grades. Imports every room to its left."""
