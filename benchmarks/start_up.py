"""How long do light commands take to start, and how much do they import?

    python benchmarks/start_up.py

Runs each command several times in a process of its own. Prints the fastest, in seconds on the clock
and of the processor, and the number of modules imported (aim: under 0.5 s, without torch).
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HEAVY = ("torch", "sklearn", "pandas", "matplotlib")
SERVICE = 'folder = "live"\nclasses = ["cat", "dog"]\n'
COMMANDS = (
    ("--version",),
    ("--help",),
    ("token", "list", "--folder", "live"),
    ("questions", "export", "service.toml"),
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=10)
    rounds = parser.parse_args().rounds
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        Path("service.toml").write_text(SERVICE, encoding="utf-8")
        run("token", "create", "Ada", "--role", "admin", "--folder", "live")
        print(f"{'command':<38} {'seconds':>7} {'processor':>9} {'modules':>7}")
        for command in COMMANDS:
            times = [measure(command) for _ in range(rounds)]
            seconds, processor = (min(each) for each in zip(*times, strict=True))
            modules = imported_modules(command)
            heavy = ", ".join(name for name in HEAVY if name in modules)
            print(
                f"{' '.join(command):<38} {seconds:>7.2f} {processor:>9.2f} {len(modules):>7}"
                f"{f'  imports {heavy}' if heavy else ''}"
            )


def run(*command: str, options: tuple[str, ...] = ()) -> str:
    """Run a command that should succeed; return what it wrote to standard error."""
    line = [sys.executable, *options, "-m", "attakit", *command]
    return subprocess.run(line, capture_output=True, text=True, check=True).stderr


def measure(command: tuple[str, ...]) -> tuple[float, float]:
    """Seconds on the clock, and of the processor."""
    before, began = os.times(), time.perf_counter()
    run(*command)
    seconds, after = time.perf_counter() - began, os.times()
    processor = after.children_user + after.children_system
    return seconds, processor - before.children_user - before.children_system


def imported_modules(command: tuple[str, ...]) -> set[str]:
    """Names of all modules that a command imports, those of Python itself included."""
    lines = run(*command, options=("-X", "importtime")).splitlines()
    return {line.rpartition("|")[2].strip() for line in lines if line.startswith("import time:")}


if __name__ == "__main__":
    main()
