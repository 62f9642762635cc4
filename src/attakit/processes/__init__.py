"""Processes of this machine: interrupts, threads, and jobs in a process pool."""

from attakit.processes.interrupt import Interrupted, stoppable

__all__ = ["Interrupted", "stoppable"]
