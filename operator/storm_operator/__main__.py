"""`python -m storm_operator` is the console script."""

from __future__ import annotations

from storm_operator.machine_code import unpack_machine_code


def main() -> None:
    """Prepare what has to be there before numba is imported, then read the command line."""
    unpack_machine_code()
    from storm_operator.cli import main as command_line

    command_line()


if __name__ == "__main__":
    main()
