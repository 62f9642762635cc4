import pytest
import torch

from attakit.errors import SettingError
from attakit.nn.entropy import softmax_entropy
from attakit.paper.validation import EntropySettings, Fitting, compare_entropy_sets
from attakit.paper.validation.entropy_cells import choose

QUICK = Fitting(updates=2, batch_size=16)


@torch.no_grad()
def entropy(loaded, samples):
    logits = loaded.source_model(samples.load(range(len(samples)))).logits
    return softmax_entropy(logits)


def test_kinds_are_the_ends_of_the_same_order(loaded):
    low, high = choose(loaded, "low", 50, seed=0), choose(loaded, "high", 50, seed=0)
    drawn = choose(loaded, "random", 50, seed=0)

    assert entropy(loaded, low).max() < entropy(loaded, drawn).median()
    assert entropy(loaded, high).min() > entropy(loaded, drawn).median()


def test_only_random_samples_depend_on_the_seed(loaded):
    for kind, differs in (("low", False), ("high", False), ("random", True)):
        first, second = [choose(loaded, kind, 50, seed=seed).names for seed in (0, 1)]
        assert (first != second) == differs


def test_every_kind_is_trained_on_in_both_ways(testbed, tmp_path):
    settings = EntropySettings(retrain=40, fine_tune=30, seeds=2)
    rows = compare_entropy_sets(
        testbed, tmp_path / "entropy.jsonl", settings=settings, fitting=QUICK, workers=0
    )

    kinds = ["low entropy", "high entropy", "random"]
    expected = [(kind, way) for way in ("retrain", "fine-tune") for kind in kinds]
    assert [(row.samples, row.way) for row in rows] == [*expected, ("source model", "as it is")]
    assert all(row.source.deviation is not None for row in rows[:-1])
    assert rows[-1].source.mean < rows[-1].target.mean


def test_samples_that_would_overlap_are_refused(testbed, tmp_path):
    with pytest.raises(SettingError, match="Use at most 1668"):
        compare_entropy_sets(
            testbed, tmp_path / "x.jsonl", settings=EntropySettings(), fitting=QUICK, workers=0
        )


@pytest.mark.parametrize("setting", [{"retrain": 0}, {"fine_tune": 0}, {"seeds": 0}])
def test_impossible_settings_are_refused(setting):
    with pytest.raises(SettingError, match=next(iter(setting))):
        EntropySettings(**setting)
