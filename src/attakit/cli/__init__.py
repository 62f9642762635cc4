"""The command line: reads arguments, calls the library, prints the results."""

from attakit.cli import imports

with imports.quick_imports():
    from attakit.cli.program import app, main

__all__ = ["app", "main"]
