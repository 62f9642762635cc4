import torch

from attakit.queries import Answer, Query, SampleId
from attakit.store.trial import Trial

SURE = torch.tensor([[0.8, 0.2]])
UNSURE = torch.tensor([[0.5, 0.5]])


def answer(name, label):
    return Answer(Query(SampleId(name), 0), label, "me")


def test_before_any_label_the_second_way_counts():
    trial = Trial()
    trial.hold(["a"], SURE, UNSURE)
    assert trial.second_is_better


def test_the_likelihood_of_labels_decides():
    trial = Trial()
    trial.hold(["a", "b"], torch.cat([SURE, SURE]), torch.cat([UNSURE, UNSURE]))
    trial.judge([answer("a", 0)])
    assert not trial.second_is_better
    trial.judge([answer("b", 1)])  # the first way was further off here than it was better there
    assert trial.second_is_better


def test_skipped_unknown_and_repeated_answers_count_nothing():
    trial = Trial()
    trial.hold(["a"], SURE, UNSURE)
    trial.judge([answer("a", None), answer("a", 0), answer("stranger", 0)])
    assert trial.state_dict() == {"open": {}, "gains": {}}


def test_only_the_latest_samples_count():
    trial = Trial()
    for number in range(100):
        trial.hold([f"old {number}"], SURE, UNSURE)
        trial.judge([answer(f"old {number}", 0)])
    for number in range(60):
        trial.hold([f"new {number}"], UNSURE, SURE)
        trial.judge([answer(f"new {number}", 0)])
    assert trial.second_is_better
    assert len(trial.state_dict()["gains"]) == 60


def test_forgetting_removes_what_a_sample_said():
    trial = Trial()
    trial.hold(["a", "b"], torch.cat([SURE, SURE]), torch.cat([UNSURE, UNSURE]))
    trial.judge([answer("a", 0)])
    trial.forget([SampleId("a"), SampleId("b"), SampleId("stranger")])
    assert trial.state_dict() == Trial().state_dict()


def test_it_is_saved_and_loaded():
    trial, other = Trial(), Trial()
    trial.hold(["a", "b"], torch.cat([SURE, SURE]), torch.cat([UNSURE, UNSURE]))
    trial.judge([answer("a", 0)])
    other.load_state_dict(trial.state_dict())
    assert other.state_dict() == trial.state_dict()
    assert not other.second_is_better
