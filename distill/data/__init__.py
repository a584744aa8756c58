"""What is stored: rows, shards, tables. Imports game/ and search/."""
