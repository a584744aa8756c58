"""Players by name, the solver, matches, ratings, the gate, levels."""
