"""The Python client, against a real server; and many clients at once."""

import json
import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from io import BytesIO
from pathlib import Path

import httpx2
import numpy as np
import pytest
import uvicorn
from PIL import Image

from attakit.client import Client
from attakit.errors import ServiceError


@pytest.fixture
def real(start):
    """A service behind a real server, and its address."""
    live = start()
    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    config = uvicorn.Config(live.client.app, log_config=None, lifespan="off")
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
    thread.start()
    while not server.started:
        time.sleep(0.01)
    live.url = f"http://127.0.0.1:{listener.getsockname()[1]}"
    yield live
    server.should_exit = True
    thread.join()
    listener.close()


@pytest.fixture
def client(real):
    with Client(real.url, pauses=()) as made:
        yield made


def test_all_forms_of_an_image_give_the_same_answer(client, picture, tmp_path):
    content = picture()
    path = tmp_path / "a.png"
    path.write_bytes(content)
    image = Image.open(BytesIO(content))

    answers = client.predict([path, str(path), content, image, np.asarray(image)])

    assert len({tuple(answer.probabilities.values()) for answer in answers}) == 1
    assert len({answer.sample for answer in answers}) == 5
    assert client.predict(content)[0].class_name == answers[0].class_name


def test_the_whole_cycle_of_a_question(real, client):
    (number,) = real.ask()

    lease = client.lease()
    outcome = client.answer(lease.question, 2, key="k1")
    again = client.answer(lease.question, 2, key="k1")
    back = client.undo()
    client.release(back.question)
    last = client.answer(back.question, kind="skip")

    assert lease.question == back.question == number
    assert [guess.class_name for guess in lease.guesses] == ["dog", "cat"]
    assert client.picture(lease.sample).startswith(b"\x89PNG")
    assert (outcome, again, last) == ("accepted", "repeated", "accepted")
    assert client.lease() is None


def test_administration(real, client):
    (name,) = real.serve()

    assert client.classes() == ("cat", "dog", "owl")
    assert client.sample(name).asked == "undecided"
    client.forget(name)
    client.forget(name)
    assert client.sample(name).asked == "forgotten"
    client.pause()
    assert client.status().learning == "paused"
    client.resume()
    assert client.status().learning == "running"
    client.promote(0)
    (version,) = client.versions()
    assert (version.version, version.current, version.passed) == (0, True, None)
    assert client.status().labels.left == 300


def test_a_refusal_is_told_in_the_words_of_the_service(client):
    with pytest.raises(ServiceError, match="An image cannot be read") as caught:
        client.predict(b"no image")

    assert caught.value.status == 422


def test_a_service_that_is_not_there_is_told_with_its_address():
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{unused.getsockname()[1]}"
        with Client(url, pauses=()) as client, pytest.raises(ServiceError, match=url) as caught:
            client.status()

    assert caught.value.status is None


class Flaky(httpx2.BaseTransport):
    """Loses the first answers."""

    def __init__(self, losses, error=httpx2.ReadError):
        self.losses = losses
        self.error = error
        self.bodies = []

    def handle_request(self, request):
        self.bodies.append(request.read())
        if len(self.bodies) <= self.losses:
            raise self.error("lost")
        return httpx2.Response(200, json={"outcome": "accepted", "predictions": []})


def test_an_answer_is_sent_again_with_the_same_key():
    transport = Flaky(losses=2)
    with Client("http://x", pauses=(0, 0), transport=transport) as client:
        assert client.answer(1, 0) == "accepted"

    assert len(transport.bodies) == 3
    assert len(set(transport.bodies)) == 1


def test_images_that_may_have_arrived_are_not_sent_again():
    transport = Flaky(losses=1)
    with (
        Client("http://x", pauses=(0, 0), transport=transport) as client,
        pytest.raises(ServiceError),
    ):
        client.predict(b"x")

    assert len(transport.bodies) == 1


def test_images_that_never_left_are_sent_again():
    transport = Flaky(losses=1, error=httpx2.ConnectError)
    with Client("http://x", pauses=(0, 0), transport=transport) as client:
        assert client.predict(b"x") == ()


@pytest.mark.parametrize("given", [[[0.5, 2]], [np.array([0.5, 2])], np.array([0.5, 2])])
def test_numbers_are_sent_as_lists_or_arrays(given):
    sent = []

    def answer(request):
        sent.append(json.loads(request.content))
        return httpx2.Response(200, json={"predictions": []})

    with Client("http://any", transport=httpx2.MockTransport(answer)) as client:
        client.predict(given)

    assert sent == [{"arrays": [[0.5, 2]]}]


def test_what_is_no_input_is_told_with_what_to_give():
    with Client("http://any") as client, pytest.raises(ServiceError, match=r"is a float\. Give a"):
        client.predict([0.5, 2.0])


def test_another_program_at_the_address_is_told():
    transport = httpx2.MockTransport(lambda request: httpx2.Response(404, text="<html>"))
    with Client("http://x", transport=transport) as client, pytest.raises(ServiceError) as caught:
        client.status()

    assert "is it attakit?" in str(caught.value)


def test_many_clients_at_once_are_answered_each_with_its_own(real, picture):
    pictures = [picture(seed=seed) for seed in range(8)]
    with Client(real.url) as client:
        alone = [client.predict(content)[0].probabilities for content in pictures]

    def ask(number):
        with Client(real.url) as client:
            return [client.predict(pictures[number])[0] for _ in range(5)]

    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(ask, range(8)))

    assert real.state.writer.flush()
    assert real.storage.samples.count() == 8 + 8 * 5
    for number, mine in enumerate(answers):
        for answer in mine:
            assert answer.probabilities == pytest.approx(alone[number], abs=1e-5)


def test_people_at_once_never_get_the_same_question(real):
    real.ask(12)

    def label(name):
        done = []
        with Client(real.url, annotator=name) as client:
            while (lease := client.lease()) is not None:
                done.append(lease.question)
                assert client.answer(lease.question, 0) == "accepted"
        return done

    with ThreadPoolExecutor(4) as pool:
        done = [question for some in pool.map(label, "abcd") for question in some]

    assert sorted(done) == sorted(real.asked)


def test_an_answer_that_makes_no_sense_is_told_with_what_to_do():
    transport = httpx2.MockTransport(lambda request: httpx2.Response(200, text="<html>"))
    with Client("http://x", transport=transport) as client, pytest.raises(ServiceError) as caught:
        client.status()

    assert "http://x does not answer as this version of attakit expects" in str(caught.value)


def test_what_a_newer_service_says_besides_is_left_out():
    body = {"classes": ["cat"], "colours": ["red"]}
    transport = httpx2.MockTransport(lambda request: httpx2.Response(200, json=body))
    with Client("http://x", transport=transport) as client:
        assert client.classes() == ("cat",)


@pytest.mark.parametrize("inputs", ["no.jpg", Path("no.jpg"), ["no.jpg"]])
def test_a_path_that_cannot_be_read_is_named_in_one_sentence(inputs):
    with (
        Client("http://127.0.0.1:9", pauses=()) as client,
        pytest.raises(ServiceError, match=r"Client: the file 'no\.jpg' .*: No such .* predict_t"),
    ):
        client.predict(inputs)
