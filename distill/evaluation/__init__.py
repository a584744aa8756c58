"""A verdict: making the graded boards, grades, labels, reports, cards of data."""
