import torch

from attakit.records import Batch
from attakit.store.window import Window


def batch(*names):
    return Batch(0, names, torch.tensor([[float(ord(name))] for name in names]))


def names_in(inputs):
    return "".join(chr(int(value)) for value in inputs.flatten())


def test_a_small_batch_is_filled_up_with_the_last_samples():
    window = Window(4)
    window.add(batch("a", "b", "c"))
    window.add(batch("d"))

    assert names_in(window.with_company(batch("e").inputs)) == "bcde"


def test_a_batch_as_large_as_the_window_comes_alone():
    window = Window(2)
    window.add(batch("a"))

    assert names_in(window.with_company(batch("b", "c", "d").inputs)) == "bcd"
    assert window.add(batch("b", "c", "d"))
    assert window.samples == ("c", "d")


def test_an_update_is_due_once_the_whole_window_is_new():
    window = Window(3)

    assert [window.add(batch(name)) for name in "abcdefg"] == [0, 0, 1, 0, 0, 1, 0]


def test_without_a_window_every_batch_is_due_and_nothing_is_kept():
    window = Window()

    assert window.add(batch("a"))
    assert len(window) == 0
    assert names_in(window.with_company(batch("b").inputs)) == "b"


def test_forgotten_samples_are_no_company():
    window = Window(4)
    window.add(batch("a", "b", "c"))
    window.forget(["a", "c", "z"])

    assert window.samples == ("b",)
    assert names_in(window.with_company(batch("d").inputs)) == "bd"
    window.forget(["b"])
    assert names_in(window.with_company(batch("d").inputs)) == "d"


def test_it_continues_from_its_state():
    first, second = Window(3), Window(3)
    first.add(batch("a", "b"))
    second.load_state_dict(first.state_dict())

    assert second.samples == ("a", "b")
    assert second.add(batch("c"))
    assert names_in(second.with_company(batch("d").inputs)) == "bcd"


def test_a_smaller_window_takes_the_last_samples_of_a_larger_one():
    large, small, none = Window(3), Window(1), Window(0)
    large.add(batch("a", "b"))
    for window in (small, none):
        window.load_state_dict(large.state_dict())

    assert (small.samples, none.samples) == (("b",), ())
