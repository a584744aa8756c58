"""Raw rows on disk: the row and the manifest, shards as pure functions, places, reading, checks."""
