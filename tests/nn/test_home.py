import pytest
import torch

from attakit.nn import SmallCNN
from attakit.nn.classifier import Classifier
from attakit.nn.home import HomeAnswers
from attakit.nn.seeding import seeded
from attakit.nn.source_card import make_card
from attakit.queries import SampleId
from attakit.records import Prediction


def images(count, *, dark=False, seed=0):
    """Bright source images, or dark and smooth ones of another style."""
    found = torch.rand(count, 1, 28, 28, generator=torch.Generator().manual_seed(seed))
    return 0.2 * found - 2 if dark else found


@pytest.fixture
def home():
    with seeded(0, "home"):
        source = Classifier(SmallCNN()).eval()
    return HomeAnswers(source, make_card(source, images(200)))


def other(count):
    """What an adapting model says: class 3, surely."""
    return Prediction(20 * torch.eye(10)[[3] * count], torch.zeros(count, 8))


def after_stream(home):
    """Let two batches of another style pass."""
    for step in range(2):
        home.mixed_into(other(50), images(50, dark=True, seed=step + 1))
        home.keep([SampleId(f"{step}-{place}") for place in range(50)])
    return home


def test_source_samples_get_the_source_models_answer(home):
    inputs = images(50, seed=7)
    found = after_stream(home).mixed_into(other(50), inputs).logits.softmax(dim=1)
    expected = home.source(inputs).logits.softmax(dim=1)
    assert torch.allclose(found, expected, atol=0.05)


def test_samples_of_the_stream_keep_the_adapting_models_answer(home):
    found = after_stream(home).mixed_into(other(50), images(50, dark=True, seed=8))
    assert found.logits.argmax(dim=1).tolist() == [3] * 50


def test_in_a_mixed_batch_each_sample_counts_alone(home):
    both = torch.cat([images(25, seed=7), images(25, dark=True, seed=8)])
    found = after_stream(home).mixed_into(other(50), both).logits
    assert torch.equal(found[:25].argmax(1), home.source(both[:25]).logits.argmax(1))
    assert found[25:].argmax(dim=1).tolist() == [3] * 25


def test_only_kept_batches_are_remembered(home):
    before = after_stream(home).state_dict()["seen"]
    home.mixed_into(other(50), images(50))
    assert home.state_dict()["seen"] == before


def test_a_saved_state_continues(home):
    again = HomeAnswers(home.source, home.groups.card)
    again.load_state_dict(after_stream(home).state_dict())
    inputs = torch.cat([images(25, seed=7), images(25, dark=True, seed=8)])
    said, expected = (each.mixed_into(other(50), inputs).logits for each in (again, home))
    assert torch.equal(said, expected)


def test_forgotten_samples_leave_the_memory(home):
    after_stream(home).forget([SampleId(f"0-{place}") for place in range(50)])
    assert len(home.groups.state.memory) == 50


def test_only_source_samples_cost_a_pass_of_the_source_model(home):
    both = torch.cat([images(25, seed=7), images(25, dark=True, seed=8)])
    after_stream(home)
    rows = []
    home.source.model.head.register_forward_hook(
        lambda _layer, given, _out: rows.append(len(given[0]))
    )
    home.mixed_into(other(50), both)
    assert rows == [25]
