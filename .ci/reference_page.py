"""A page of docs/reference that is made from code: written, or with `--check` only compared."""

from __future__ import annotations

import sys
from pathlib import Path


def keep(page: Path, text: str, source: str) -> int:
    """The exit status; `source` is what the page has to agree with, in words."""
    if "--check" not in sys.argv:
        page.write_text(text, encoding="utf-8")
        return 0
    if page.exists() and page.read_text(encoding="utf-8") == text:
        return 0
    print(f"{page.name} is not what {source}: run `make manifests`", file=sys.stderr)
    return 1
