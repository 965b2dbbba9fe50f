"""`python -m storm_operator` is `storm-operator`."""

from __future__ import annotations

from storm_operator.cli import main

if __name__ == "__main__":
    main()
