import torch

from attakit.report import Accuracy
from attakit.report.collapse import STEPS, CollapseWatch, GrowthWatch
from attakit.testing import tiny_classifier


def feed(make_step_result, answers, truth, steps=STEPS + 2):
    labels = {f"{step}-{row}": truth[row] for step in range(steps) for row in range(len(truth))}
    watch = CollapseWatch("tent", ["zero", "one", "two"], Accuracy(labels))
    for step in range(steps):
        watch.on_step(make_step_result(step, answers))


def test_one_wrong_answer_to_everything_is_said_once(make_step_result, caplog):
    feed(make_step_result, [1] * 25, [0, 1, 2, 0, 2] * 5)

    (record,) = caplog.records
    assert record.getMessage().startswith(
        "tent answers one to 125 of the last 125 samples, and 20 % are right."
    )
    assert "lower its lr" in record.getMessage()


def test_a_stream_of_one_class_is_no_collapse(make_step_result, caplog):
    feed(make_step_result, [1] * 25, [1] * 20 + [0] * 5)

    assert caplog.records == []


def test_wrong_answers_that_differ_are_no_collapse(make_step_result, caplog):
    feed(make_step_result, [0, 1, 2, 0, 1] * 5, [1, 2, 0, 1, 2] * 5)

    assert caplog.records == []


def test_a_few_samples_are_not_enough(make_step_result, caplog):
    feed(make_step_result, [1] * 5, [0] * 5)

    assert caplog.records == []


def test_weights_that_explode_are_said_once(make_step_result, caplog):
    model = tiny_classifier()
    watch = GrowthWatch("tent", model)
    watch.on_step(make_step_result(0, [0]))
    assert caplog.records == []
    with torch.no_grad():
        next(model.parameters()).mul_(1e6)

    for step in range(1, 3 * STEPS):
        watch.on_step(make_step_result(step, [0]))

    (record,) = caplog.records
    assert f"times as large as at the start, after {STEPS + 1} steps" in record.getMessage()
