import subprocess
import sys

import pytest

from attakit.processes.memory import keep_freed_memory

COUNT = """
import resource
import torch
from attakit.processes.memory import keep_freed_memory
{first}
for _ in range(3):
    torch.ones(4, 1024, 1024)
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(20):
    torch.ones(4, 1024, 1024)
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


def pages_fetched(first):
    """How many pages a new process fetches for twenty tensors, one after the other."""
    program = [sys.executable, "-c", COUNT.format(first=first)]
    return int(subprocess.run(program, capture_output=True, text=True, check=True).stdout)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs Linux")
def test_tensors_use_the_memory_of_earlier_ones_again():
    assert pages_fetched("assert keep_freed_memory()") < 0.1 * pages_fetched("")


def test_other_systems_are_left_alone(monkeypatch):
    monkeypatch.setattr(sys, "platform", "darwin")

    assert not keep_freed_memory()
