"""The loop that connects stream, method, oracle and reporters."""

from attakit.engine.adapt import adapt
from attakit.engine.buffer import Buffer
from attakit.engine.loop import drain, run

__all__ = ["Buffer", "adapt", "drain", "run"]
