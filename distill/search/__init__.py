"""How a position is thought about: playouts, the search tree, the teacher. Imports game/."""
