"""The benchmark of costs runs, here at a tiny size; its figures are for machines at rest."""

import cost_of_adapting
import pytest

from attakit.build.sets.places import DATA_VARIABLE


@pytest.fixture(scope="module")
def case(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(DATA_VARIABLE, str(tmp_path_factory.mktemp("nothing")))
        return cost_of_adapting.image_case("resnet18", 2, pixels=32, size=16)


def test_it_prints_every_method_beside_its_goal(case, capsys):
    cost_of_adapting.print_times(case, cost_of_adapting.METHOD_NAMES, repeats=1)
    lines = capsys.readouterr().out.splitlines()
    assert lines[1] == "resnet18: 2 batches of 16"
    assert lines[2].startswith("  source_only: 1.00 times source-only, ")
    assert lines[2].endswith(" ms per batch")
    assert [line.split(":")[0].strip() for line in lines[3:]] == [
        "batch_norm",
        "tent",
        "anchor_head",
        "simatta",
        "one label learned",
        "state",
        "a version",
        "blended statistics",
    ]
    assert all("goal" in line for line in lines[5:] if "a version" not in line)


def test_a_label_adds_features_and_logits_to_the_state(case):
    learned = cost_of_adapting.learn_one_by_one(case)
    assert learned.labels >= 2
    assert 0 < learned.median <= learned.slowest
    assert 1 < learned.per_label < 100


def test_a_missed_goal_is_said():
    assert cost_of_adapting.verdict(1.2, 1.5) == "1.20 (goal 1.5)"
    assert cost_of_adapting.verdict(1.7, 1.5) == "1.70 (goal 1.5, missed)"
