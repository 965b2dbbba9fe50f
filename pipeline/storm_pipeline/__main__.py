"""`python -m storm_pipeline` and `spark-submit .../storm_pipeline/__main__.py` are the console script."""

from __future__ import annotations


def main() -> None:
    """Read the command line."""
    from storm_pipeline.cli import main as command_line

    command_line()


if __name__ == "__main__":
    main()
