"""Graded boards, grades of players and labels, reports, data cards, the enumeration of all games."""
