"""Writes the numbers of today's code: python -m tests.witness.make [names that cases contain]

With names, only these cases are made anew; the others stay as they are.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from threadpoolctl import threadpool_limits

from tests.witness.cases import CASES

FILE = Path(__file__).parent / "witness.json"


def commit() -> str:
    """Of the code that makes the numbers."""
    asked = ["git", "log", "-1", "--format=%H", "--", "src"]
    return subprocess.run(
        asked, cwd=FILE.parents[2], capture_output=True, text=True, check=True
    ).stdout.strip()


def main(words: list[str]) -> None:
    """Runs the cases and writes the file."""
    chosen = [name for name in CASES if not words or any(word in name for word in words)]
    kept: dict[str, Any] = json.loads(FILE.read_text())["cases"] if words else {}
    for name in chosen:
        began, case = time.monotonic(), CASES[name]
        with threadpool_limits(1, user_api="blas"):
            record = case.run()
        kept[name] = {
            "tolerance": case.tolerance,
            "value_tolerance": case.value_tolerance,
            "numbers": record.found,
        }
        without = "; ".join(sorted(record.refused)) or "nothing"
        print(f"{time.monotonic() - began:7.2f} s  {name:<50} without {without}", flush=True)
    ordered = {name: kept[name] for name in CASES if name in kept}
    FILE.write_text(_text({"commit": commit(), "cases": ordered}))


def _text(document: dict[str, Any]) -> str:
    """JSON with a line a quantity, so that a difference shows which one it is."""
    lines = [f'{{"commit": {json.dumps(document["commit"])}, "cases": {{']
    for k, (name, case) in enumerate(document["cases"].items()):
        lines.append(f'{"," if k else ""}{json.dumps(name)}: {{"tolerance": {case["tolerance"]!r},')
        lines.append(f'  "value_tolerance": {json.dumps(case["value_tolerance"])}, "numbers": {{')
        numbers = [f"    {json.dumps(key)}: {json.dumps(value)}" for key, value in case["numbers"].items()]
        lines.append(",\n".join(numbers) + "}}")
    return "\n".join(lines) + "}}\n"


if __name__ == "__main__":
    main(sys.argv[1:])
