"""Raw rows on disk: the row, shards as pure functions, places, reading, checks."""
