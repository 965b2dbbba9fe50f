"""The commands of `storm-pipeline`: each reads tables, applies transforms, writes tables."""
