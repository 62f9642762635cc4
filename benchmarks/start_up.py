"""Measure how long commands take to start, and how much they import.

    python benchmarks/start_up.py
    python benchmarks/start_up.py --serve    # a service with a small model, on a terminal

Runs each light command several times in its own process. Prints the fastest, in seconds on the
clock and of the processor, and the number of modules imported (aim: under 0.5 s, without torch).

For a service, prints when the first line appears (aim: within a second), and the CPU time of
the server until it has answered a request (aim: under 5 s).
"""

from __future__ import annotations

import argparse
import os
import pty
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from points_service import MODEL, MODEL_FILE
from points_service import SERVICE as POINTS
from scaling_costs import processor_seconds

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
    parser.add_argument("--serve", action="store_true", help="Measure a service instead")
    options = parser.parse_args()
    rounds = options.rounds
    if options.serve:
        measure_service()
        return
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


def measure_service() -> None:
    """Start a service on a terminal, and ask it for a prediction as soon as it listens."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        (folder / MODEL_FILE).write_text(MODEL, encoding="utf-8")
        (folder / "service.toml").write_text(POINTS, encoding="utf-8")
        line = [sys.executable, "-m", "attakit", "serve", "service.toml", "--open", "--port", "0"]
        ours, theirs = pty.openpty()
        began = time.perf_counter()
        process = subprocess.Popen(line, cwd=folder, stdout=theirs, stderr=theirs)
        try:
            said = os.read(ours, 1000)
            first = time.perf_counter() - began
            while not (found := re.search(rb"Serving on (\S+)", said)):
                said += os.read(ours, 1000)
            from attakit.client import Client  # noqa: PLC0415, its import must not delay the start

            with Client(found[1].decode()) as client:
                client.predict([[0.0, 0.0]])
            seconds, processor = time.perf_counter() - began, processor_seconds(process.pid)
        finally:
            process.terminate()
            process.wait()
    print(f"first line after {first:.2f} s (target: at most 1)")
    print(f"first answer after {processor:.2f} s of the processor (target: at most 5), ", end="")
    print(f"{seconds:.2f} s on the clock")


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
