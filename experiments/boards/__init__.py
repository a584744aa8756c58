"""The makers of the graded boards in `data/benchmark/`, and the definitions of their sets."""
