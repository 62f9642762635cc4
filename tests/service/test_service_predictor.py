"""Predictor: requests that come together share a forward pass, and do not hurt each other."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch

from attakit.errors import ModelError, StateError
from attakit.nn import Classifier
from attakit.records import Prediction
from attakit.service.predictor import Predictor
from attakit.testing import tiny_classifier


class Slow:
    """A model that waits until it may answer; its logits are the inputs."""

    def __init__(self):
        self.may = threading.Event()
        self.began = threading.Event()
        self.sizes = []

    def __call__(self, inputs):
        self.began.set()
        assert self.may.wait(10)
        self.sizes.append(len(inputs))
        if inputs.isnan().any():
            raise ModelError("no such thing")
        return Prediction(inputs, inputs)


@pytest.fixture
def model():
    return Slow()


@pytest.fixture
def predictor(model):
    with Predictor(model, 3, batch_size=4, batch_seconds=0.05) as made:
        yield made
        model.may.set()


def busy(predictor, model):
    """Have a first request in the model, so that what follows waits together."""
    first = predictor.submit(torch.full((1, 2), -1.0))
    assert model.began.wait(5)
    return first


def test_requests_that_wait_together_share_a_pass(predictor, model):
    first = busy(predictor, model)
    others = [predictor.submit(torch.full((1, 2), float(number))) for number in range(4)]
    model.may.set()

    answers = [one.result(5) for one in others]

    assert first.result(5).version == 3
    assert model.sizes == [1, 4]
    assert [answer.logits[0, 0].item() for answer in answers] == [0, 1, 2, 3]


def test_a_pass_is_never_larger_than_allowed(predictor, model):
    model.may.set()

    answer = predictor.predict(torch.arange(20.0).reshape(10, 2))

    assert model.sizes == [4, 4, 2]
    assert answer.logits.tolist() == torch.arange(20.0).reshape(10, 2).tolist()


def test_a_request_that_fails_does_not_hurt_the_others(predictor, model):
    busy(predictor, model)
    good = predictor.submit(torch.zeros(1, 2))
    bad = predictor.submit(torch.full((1, 2), float("nan")))
    odd = predictor.submit(torch.zeros(1, 3))
    model.may.set()

    assert good.result(5).logits.tolist() == [[0, 0]]
    with pytest.raises(ModelError, match="no such thing"):
        bad.result(5)
    assert odd.result(5).logits.shape == (1, 3)


def test_a_swap_counts_from_the_next_pass_on(predictor, model):
    first = busy(predictor, model)
    second = predictor.submit(torch.zeros(1, 2))
    predictor.swap(lambda inputs: Prediction(inputs + 9, inputs), 4)
    model.may.set()

    assert first.result(5).version == 3
    assert second.result(5).version == 4
    assert second.result(5).logits.tolist() == [[9, 9]]


def test_every_answer_fits_its_version_while_models_are_swapped(predictor, model):
    def constant(version):
        return lambda inputs: Prediction(torch.full((len(inputs), 2), float(version)), inputs)

    model.may.set()
    predictor.swap(constant(0), 0)
    stop = threading.Event()

    def swap():
        version = 0
        while not stop.is_set():
            version += 1
            predictor.swap(constant(version), version)
            time.sleep(0.0005)

    swapping = threading.Thread(target=swap)
    swapping.start()
    with ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(predictor.predict, [torch.zeros(3, 2)] * 100))
    stop.set()
    swapping.join()

    assert all((answer.logits == answer.version).all() for answer in answers)


def test_answers_equal_those_of_the_model_itself():
    classifier = Classifier(tiny_classifier()).eval()
    inputs = torch.randn(9, 4, generator=torch.Generator().manual_seed(0))

    with Predictor(classifier, batch_size=4) as predictor:
        answered = predictor.predict(inputs)

    with torch.no_grad():
        wanted = classifier(inputs)
    torch.testing.assert_close(answered.logits, wanted.logits)
    torch.testing.assert_close(answered.features, wanted.features)


def test_what_was_put_is_answered_before_the_end(model):
    predictor = Predictor(model, batch_seconds=0)
    predictor.start()
    first = busy(predictor, model)
    second = predictor.submit(torch.zeros(1, 2))
    model.may.set()
    predictor.stop()

    assert first.done()
    assert second.done()
    assert not predictor.ready
    with pytest.raises(StateError, match="stopped"):
        predictor.submit(torch.zeros(1, 2))


def test_without_a_model_there_is_no_answer():
    with Predictor(None) as predictor:
        assert not predictor.ready
        with pytest.raises(StateError, match="no model is loaded yet"):
            predictor.predict(torch.zeros(1, 2))


def test_an_empty_request_is_refused():
    with (
        Predictor(lambda inputs: Prediction(inputs, inputs)) as predictor,
        pytest.raises(ModelError, match="no inputs"),
    ):
        predictor.predict(torch.zeros(0, 2))


def test_the_size_of_each_pass_is_told(model):
    model.may.set()
    sizes = []
    with Predictor(model, batch_size=4, on_batch=sizes.append) as predictor:
        predictor.predict(torch.zeros(5, 2))

    assert sizes == [4, 1]


def test_a_request_alone_is_answered_where_it_comes_from_and_others_meanwhile_share_a_pass():
    threads, sizes, entered, go = [], [], threading.Event(), threading.Event()

    def model(inputs):
        threads.append(threading.current_thread().name)
        sizes.append(len(inputs))
        if len(threads) == 1:
            entered.set()
            assert go.wait(20)
        return Prediction(inputs, inputs)

    with Predictor(model, batch_seconds=0.0) as predictor, ThreadPoolExecutor(4) as pool:
        first = pool.submit(predictor.predict, torch.ones(1, 3))
        assert entered.wait(20)
        others = [predictor.submit(torch.ones(1, 3)) for _ in range(3)]
        go.set()
        for each in (first, *others):
            assert each.result(20).logits.shape == (1, 3)

    assert threads[0].startswith("ThreadPoolExecutor")
    assert set(threads[1:]) == {"predictor"}
    assert sum(sizes) == 4
