"""A model behind HTTP, on a server in a thread."""

import base64
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from attakit.errors import ServiceError, SettingError
from attakit.label import Endpoint, ModelOracle
from attakit.queries import Query, SampleId


class Handler(BaseHTTPRequestHandler):
    def do_POST(self):
        content = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.seen.append((json.loads(content), self.headers.get("Authorization")))
        status, body = self.server.replies.pop(0)
        self.send_response(status)
        self.end_headers()
        self.wfile.write(body if isinstance(body, bytes) else json.dumps(body).encode())

    def log_message(self, *arguments):
        pass


@pytest.fixture
def server():
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as found:
        found.seen, found.replies = [], []
        found.url = f"http://127.0.0.1:{found.server_port}/label"
        thread = threading.Thread(target=found.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield found
        found.shutdown()
        thread.join()


def test_samples_are_posted_and_answers_read(server):
    server.replies = [(200, {"answers": ["dog", None, [0.9, 0.1]]})]
    endpoint = Endpoint(server.url, classes=["cat", "dog"], where="at/{}".format, token="secret")
    oracle = ModelOracle(endpoint, classes=["cat", "dog"])
    oracle.ask([Query(SampleId(name), 0) for name in "abc"])

    assert [answer.kind for answer in oracle.collect()] == ["label", "skipped", "soft"]
    ((body, token),) = server.seen
    assert body["samples"] == [{"name": "at/a"}, {"name": "at/b"}, {"name": "at/c"}]
    assert (body["classes"], token) == (["cat", "dog"], "Bearer secret")


def test_files_can_be_sent(server, tmp_path):
    (tmp_path / "a.png").write_bytes(b"pixels")
    server.replies = [(200, {"answers": [1]})]
    endpoint = Endpoint(server.url, where=lambda name: str(tmp_path / name), send_files=True)

    assert endpoint([SampleId("a.png")]) == [1]
    content = server.seen[0][0]["samples"][0]["content"]
    assert base64.b64decode(content) == b"pixels"
    with pytest.raises(ServiceError, match=r"the file of sample 'b\.png' cannot be sent"):
        endpoint([SampleId("b.png")])


@pytest.mark.parametrize("status", [429, 503])
def test_a_busy_server_is_asked_again(server, status):
    server.replies = [(status, {}), (200, {"answers": [1]})]
    oracle = ModelOracle(Endpoint(server.url), sleep=lambda _: None)
    oracle.ask([Query(SampleId("a"), 0)])

    assert [answer.label for answer in oracle.collect()] == [1]
    assert oracle.calls == 2


def test_a_server_that_is_not_there_skips_the_questions():
    oracle = ModelOracle(Endpoint("http://127.0.0.1:9"), retries=1, sleep=lambda _: None)
    oracle.ask([Query(SampleId("a"), 0)])

    assert [answer.kind for answer in oracle.collect()] == ["skipped"]


def test_a_refusal_is_an_error_with_its_status(server):
    server.replies = [(401, {})]
    with pytest.raises(ServiceError, match="refused the request with status 401") as caught:
        Endpoint(server.url)([SampleId("a")])
    assert caught.value.status == 401


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"<html>", "JSON object"),
        ({"labels": []}, "JSON object"),
        ({"answers": 3}, "must be a list"),
    ],
)
def test_a_response_of_another_form_is_an_error(server, body, message):
    server.replies = [(200, body)]
    with pytest.raises(ServiceError, match=message):
        Endpoint(server.url)([SampleId("a")])


def test_wrong_settings_are_refused():
    with pytest.raises(SettingError, match="must begin with http"):
        Endpoint("file:///etc/passwd")
    with pytest.raises(SettingError, match="Endpoint: timeout"):
        Endpoint("http://localhost", timeout=0)
