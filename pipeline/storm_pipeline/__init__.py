"""The data pipeline: the operator's recorded history becomes tables, profiles and advice, on Apache Spark."""
