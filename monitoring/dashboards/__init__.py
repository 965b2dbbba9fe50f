"""Grafana's dashboards as code: `python -m dashboards` (with monitoring/ on the path) writes their JSON."""
