"""What a program that runs beside others' code writes to its log, and what can be told apart in it."""

from __future__ import annotations

import logging

INDENT = "    "


class LogLines(logging.Formatter):
    """A line for each record. What goes on behind a line's end is indented, and no control character stays one.

    Records have others' words in them, such as the end of a failed submission's log: whoever may submit could else
    write whole records of the operator's, or to the terminal of who reads them.
    """

    def __init__(self) -> None:
        super().__init__("%(asctime)s %(levelname)s %(message)s")

    def format(self, record: logging.LogRecord) -> str:
        return f"\n{INDENT}".join(map(_printable, super().format(record).splitlines()))


def log_to_stderr() -> None:
    """From now on records of INFO and above are written there so."""
    handler = logging.StreamHandler()
    handler.setFormatter(LogLines())
    logging.basicConfig(level=logging.INFO, handlers=[handler])


def _printable(line: str) -> str:
    return "".join(c if c.isprintable() or c == "\t" else ascii(c)[1:-1] for c in line)
