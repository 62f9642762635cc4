"""The command line. Everything it does is a call of the library; it only talks."""

from attakit.cli.program import app, main

__all__ = ["app", "main"]
