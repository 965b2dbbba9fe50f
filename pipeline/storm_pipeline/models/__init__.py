"""What is fitted to one component's history, without Spark: plain functions of arrays."""
