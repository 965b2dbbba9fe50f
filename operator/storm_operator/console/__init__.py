"""The operator's page: what the loop saw and decided, kept for some hours, told as JSON, and shown in a browser."""
