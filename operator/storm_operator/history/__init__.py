"""Recording: what the loop saw and did, as Parquet files for the data pipeline. Needs the extra `history`."""
