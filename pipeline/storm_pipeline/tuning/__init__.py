"""Settings tried out on recorded history: what is replayed, what is tried, and who goes on."""
