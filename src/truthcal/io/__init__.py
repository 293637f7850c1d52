"""Data in engines and files: reduced where they are, so that only buckets reach Python."""
