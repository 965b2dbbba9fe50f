"""Writes the dashboards' JSON, or with `--check` only says which files are not what the code says."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from dashboards.all_of_them import as_text, documents

FOLDER = Path(__file__).parent / "json"


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m dashboards", description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing; fail where a file is not up to date")
    check = parser.parse_args().check
    wanted = {f"{uid}.json": as_text(document) for uid, document in documents().items()}
    present = {path.name: path.read_text(encoding="utf-8") for path in FOLDER.glob("*.json")}
    stale = sorted(name for name in wanted.keys() | present.keys() if wanted.get(name) != present.get(name))
    for name in stale:
        if check:
            print(f"monitoring/dashboards/json/{name} is not what the code says: run `make manifests`", file=sys.stderr)
        elif name in wanted:
            FOLDER.mkdir(exist_ok=True)
            (FOLDER / name).write_text(wanted[name], encoding="utf-8")
        else:
            (FOLDER / name).unlink()
    return 1 if check and stale else 0


if __name__ == "__main__":
    sys.exit(main())
