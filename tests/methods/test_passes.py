"""The page on methods says how often each passes through the model, and which methods there are."""

import re
from pathlib import Path

import pytest
import torch

from attakit.methods import METHODS
from attakit.nn import Classifier
from attakit.queries import Allowance
from attakit.testing import tiny_batch, tiny_classifier

PAGE = Path(__file__).parents[2] / "docs" / "methods.md"


def rows_below(heading):
    """Cells of the table below a heading, by the name in the first one."""
    section = PAGE.read_text(encoding="utf-8").partition(f"## {heading}\n")[2].partition("\n## ")[0]
    lines = [line.strip("|").split("|") for line in section.splitlines() if line.startswith("| `")]
    return {cells[0].strip("` "): [cell.strip() for cell in cells] for cells in lines}


METHODS_SHOWN, COSTS = rows_below("All methods"), rows_below("What they cost")
# With settings in which every batch is learned from.
EAGER = {
    "deyo": {"entropy_share": 1.0, "difference_bound": -1.0},
    "eata": {"reliable_share": 1.0, "redundancy_margin": 1.0},
    "rdumb": {"reliable_share": 1.0, "redundancy_margin": 1.0},
    "sar": {"reliable_share": 1.0},
    "cotta": {"confidence_bound": 0.05},
}
COUNTED = sorted(name for name, row in METHODS_SHOWN.items() if row[2] == "no")


def test_every_method_has_a_row():
    assert METHODS_SHOWN.keys() == COSTS.keys() == METHODS.keys()


@pytest.mark.parametrize("name", COUNTED)
def test_passes_per_batch_are_those_of_the_page(name, monkeypatch):
    counts = {"forward": 0, "backward": 0}
    run, backward = Classifier.run, torch.Tensor.backward

    def counting_run(self, inputs, *, rows):
        counts["forward"] += 1
        return run(self, inputs, rows=rows)

    def counting_backward(self, *arguments, **settings):
        counts["backward"] += 1
        return backward(self, *arguments, **settings)

    method = METHODS[name](tiny_classifier(), **EAGER.get(name, {}))
    monkeypatch.setattr(Classifier, "run", counting_run)
    monkeypatch.setattr(torch.Tensor, "backward", counting_backward)
    method.step(tiny_batch(), Allowance(0))

    told = [int(number) for number in re.match(r"(\d+) \+ (\d+)", COSTS[name][3]).groups()]
    assert list(counts.values()) == told
