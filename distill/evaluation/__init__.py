"""Graded boards, grades of players and labels, reports, the enumeration of all games."""
