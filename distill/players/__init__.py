"""Who plays: players by their word, the solver among them, matches, the gate, intervals."""
