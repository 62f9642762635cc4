"""Make the step lines of finished runs small enough to be committed.

    python benchmarks/slim_results.py results/leaderboard

Of every step only what tables and curves of accuracy need is kept, with four decimals. The first
and the last line of a run, with all settings and all final figures, stay as they are.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from attakit.bench.run_folder import DONE
from attakit.files import atomic_write
from attakit.report.jsonlines import STEPS_FILE
from attakit.report.runs import find_runs

KEPT = ("kind", "step", "size", "received", "seconds", "correct", "counted", "segments")


def slim(line: str) -> str:
    """One line of a run, shortened if it is a step.

    >>> slim('{"kind": "step", "step": 3, "seconds": 0.123456, "training": {"loss": 1.5}}')
    '{"kind":"step","step":3,"seconds":0.1235}'
    """
    content: dict[str, Any] = json.loads(line)
    if content["kind"] != "step":
        return line
    kept = {name: _short(content[name]) for name in KEPT if name in content}
    return json.dumps(kept, separators=(",", ":"), ensure_ascii=False)


def _short(value: Any) -> Any:
    return round(value, 4) if isinstance(value, float) else value


def slim_runs(folder: Path) -> int:
    """Shorten the step lines of finished runs below a folder, and return how many bytes remain."""
    left = 0
    for run in find_runs([folder]):
        path = run / STEPS_FILE
        if (run / DONE).exists() and path.exists():
            lines = path.read_text(encoding="utf-8").splitlines()
            text = "".join(f"{slim(line)}\n" for line in lines)
            with atomic_write(path) as new:
                new.write_text(text, encoding="utf-8")
            left += len(text.encode())
    return left


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folders", nargs="+", type=Path)
    for folder in parser.parse_args().folders:
        print(f"{folder}: {slim_runs(folder) / 1e6:.1f} MB")


if __name__ == "__main__":
    main()
