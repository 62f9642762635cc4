"""A model whose weights are no numbers any more gives no answers that look like ones."""

import math

import pytest
import torch

from attakit.errors import ModelError
from attakit.methods import METHODS
from attakit.queries import Allowance
from attakit.testing import tiny_batch, tiny_classifier


@pytest.mark.parametrize(
    "name", ["cmf", "cotta", "deyo", "eata", "note", "rdumb", "roid", "rotta", "sar", "tent"]
)
def test_a_method_that_learns_without_labels_complains_of_a_diverged_model(name):
    model = tiny_classifier()
    with torch.no_grad():
        next(model.parameters()).fill_(math.nan)

    with pytest.raises(ModelError, match=r"the loss became nan\. Lower lr"):
        METHODS[name](model).step(tiny_batch(), Allowance(0))
