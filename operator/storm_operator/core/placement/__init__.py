"""Placement policies: one file per published algorithm, one signature, one registry."""
