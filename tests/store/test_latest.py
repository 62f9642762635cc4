import torch

from attakit.records import LabelledRows
from attakit.store.latest import Latest, in_company
from attakit.store.waiting import Waiting


def rows(*names, inputs=None):
    inputs = torch.arange(2.0 * len(names)).reshape(-1, 2) if inputs is None else inputs
    labels = torch.full((len(names),), -1)
    return LabelledRows(names, inputs, labels, inputs, inputs, torch.ones(len(names)))


def held(*names):
    latest = Latest()
    latest.hold(rows(*names))
    return latest


def test_a_new_batch_is_due_until_the_method_adapted_to_it():
    latest = held("a")
    assert latest.due
    latest.adapted()
    assert not latest.due
    latest.hold(rows("b"))
    assert latest.due


def test_a_batch_of_which_nothing_is_left_is_not_due():
    latest = held("a", "b")
    latest.forget(["a", "b"])

    assert not latest.due


def test_it_waits_for_open_questions_about_its_own_samples_only():
    latest, waiting = held("a", "b"), Waiting()
    assert not latest.waits_for(waiting)
    waiting.hold(rows("earlier"), step=0)
    assert not latest.waits_for(waiting)
    waiting.hold(rows("b"), step=1)
    assert latest.waits_for(waiting)


def test_labelled_samples_pass_in_front_of_the_others_of_the_batch():
    latest = held("a", "b", "c")

    assert in_company(latest.rows.take([1]), latest)[:, 0].tolist() == [2, 0, 4]
    late = rows("x", inputs=torch.full((1, 2), 9.0))
    assert in_company(late, latest)[:, 0].tolist() == [9, 0, 2, 4]
    assert in_company(late, Latest())[:, 0].tolist() == [9]


def test_held_and_loaded_batches_begin_at_even_places_in_memory():
    odd = torch.arange(5.0)[1:].reshape(2, 2)
    latest, resumed = Latest(), Latest()
    latest.hold(rows("a", "b", inputs=odd))
    state = latest.state_dict()
    state["rows"] = {**state["rows"], "inputs": odd}
    resumed.load_state_dict(state)

    for each in (latest, resumed):
        assert each.due
        assert torch.equal(each.rows.inputs, odd)
        assert each.rows.inputs.data_ptr() % 64 == 0
