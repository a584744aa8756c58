"""A search: playouts, the tree that grows by them, the teacher, and the tree that a network guides."""
