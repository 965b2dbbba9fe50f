"""Makes docs/reference/api/openapi.json from the code; `--check` says whether it is up to date."""

from __future__ import annotations

import sys
from importlib.metadata import version
from pathlib import Path

from storm_operator.console.openapi import openapi_text

FILE = Path(__file__).parent.parent / "docs/reference/api/openapi.json"


if __name__ == "__main__":
    text = openapi_text(version("storm-operator"))
    if "--check" not in sys.argv:
        FILE.write_text(text, encoding="utf-8")
    elif FILE.read_text(encoding="utf-8") != text:
        sys.exit(f"{FILE.name} is not what the code says: run `make manifests`")
