"""A Storm cluster in memory. Imports the core only: the pipeline replays with it too."""
