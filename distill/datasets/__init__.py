"""Rows to learn from: canonical, merged, split; batches of them; replay; the graded boards that ship."""
