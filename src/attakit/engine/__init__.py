"""The loop that connects stream, method, oracle and reporters."""

from attakit.engine.loop import drain, run

__all__ = ["drain", "run"]
