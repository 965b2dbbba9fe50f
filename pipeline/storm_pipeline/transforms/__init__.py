"""DataFrame in, DataFrame out: no reading, no writing, no clock."""
