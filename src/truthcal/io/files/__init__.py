"""Files of rows: Parquet, CSV, JSON lines and Arrow, read in batches."""
