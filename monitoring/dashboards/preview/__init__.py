"""Asks a Prometheus what Grafana would ask it for each panel, and draws the answers: a look without Grafana."""
