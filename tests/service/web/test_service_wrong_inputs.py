"""What is wrong with a request is said in one sentence, and nothing of it is kept."""

import base64
import json
import struct
import zlib
from io import BytesIO

import pytest
import torch
from PIL import Image
from PIL.PngImagePlugin import PngInfo

from attakit.errors import StateError
from attakit.records import Prediction


def chunk(name, content):
    return (
        struct.pack(">I", len(content))
        + name
        + content
        + struct.pack(">I", zlib.crc32(name + content))
    )


def claiming(width, height):
    """A tiny PNG file that claims to be large."""
    head = chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0))
    data = chunk(b"IDAT", zlib.compress(b"\0" * 1000))
    return b"\x89PNG\r\n\x1a\n" + head + data + chunk(b"IEND", b"")


def webp_claiming(width, height):
    """The head of a WebP file that claims to be large."""
    canvas = (width - 1).to_bytes(3, "little") + (height - 1).to_bytes(3, "little")
    body = b"WEBPVP8X" + struct.pack("<I", 10) + b"\0\0\0\0" + canvas
    return b"RIFF" + struct.pack("<I", len(body)) + body


def sentence(response, code):
    assert response.status_code == code, response.text
    assert set(response.json()) == {"error"}
    told = response.json()["error"]
    assert "Traceback" not in told
    assert "site-packages" not in told
    assert "0x" not in told
    return told


def upload(live, *contents):
    return live.client.post("/v1/predict", files=[("files", ("a", one)) for one in contents])


@pytest.mark.parametrize(
    "content",
    [b"", b"no image", b"\x89PNG\r\n\x1a\n" + b"\0" * 40, b"GIF89a", b"%PDF-1.4", b"<svg/>"],
)
def test_what_is_no_image_is_refused(live, content):
    assert "An image cannot be read" in sentence(upload(live, content), 422)


def test_a_cut_image_is_refused(live, picture):
    content = picture(size=40)

    assert "An image cannot be read" in sentence(upload(live, content[: len(content) // 2]), 422)


@pytest.mark.parametrize(
    "content",
    [claiming(50_000, 50_000), claiming(12_000, 9_000), webp_claiming(16_000, 16_000)],
    ids=["huge PNG", "large PNG", "large WebP"],
)
def test_a_bomb_is_refused_before_it_is_decoded(live, content):
    assert len(content) < 2000

    told = sentence(upload(live, content), 422)

    assert "20000000 pixels, the limit. Repair" in told or "20000000 are allowed. Repair" in told


def test_an_image_with_endless_texts_is_refused_in_our_own_words(live):
    texts = PngInfo()
    texts.add_text("about", "a" * 3_000_000, zip=True)
    file = BytesIO()
    Image.new("RGB", (4, 4)).save(file, "PNG", pnginfo=texts)

    told = sentence(upload(live, file.getvalue()), 422)

    assert "the texts in its metadata are too long. Repair it" in told


def test_more_pixels_than_allowed_are_refused(start, picture):
    live = start(server={"pixels": 100})

    told = sentence(upload(live, picture(size=11)), 422)

    assert "11 × 11 pixels, and at most 100 are allowed" in told
    assert upload(live, picture(size=10)).status_code == 200


def test_one_broken_image_spoils_its_request_and_no_other(live, picture):
    sentence(upload(live, picture(), b"broken"), 422)

    assert live.state.writer.waiting == 0
    assert live.storage.samples.count() == 0
    assert upload(live, picture()).status_code == 200


def test_too_many_inputs_are_refused(start, picture):
    live = start(server={"inputs_per_request": 2})
    text = base64.b64encode(picture()).decode()

    in_json = live.client.post("/v1/predict", json={"images": [text] * 3})

    assert "more than 2 inputs" in sentence(in_json, 413)
    assert "more than 2 inputs" in sentence(upload(live, *[picture()] * 3), 413)
    assert upload(live, *[picture()] * 2).status_code == 200


def test_a_request_that_announces_too_much_is_refused(start):
    live = start(server={"request_megabytes": 0.01})

    assert "larger than 0.01 MB" in sentence(upload(live, b"x" * 20_000), 413)


def test_a_request_that_grows_too_large_is_cut_off(start):
    live = start(server={"request_megabytes": 0.01})
    pieces = (b"x" * 1000 for _ in range(100))  # sent without saying how many there are

    response = live.client.post(
        "/v1/predict", content=pieces, headers={"Content-Type": "application/json"}
    )

    assert "larger than 0.01 MB" in sentence(response, 413)


def test_where_nobody_uploads_a_megabyte_is_enough(live):
    response = live.client.post("/v1/learning", content=b" " * 1_100_000)

    sentence(response, 413)


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (b"", 400),
        (b"{", 400),
        (b"\xff\xfe", 400),
        (b"[" * 100_000, 400),
        (b"1" * 10_000, 400),
        (b"null", 422),
        (b"{}", 422),
        (b'{"images": []}', 422),
        (b'{"images": "aGk="}', 422),
        (b'{"images": [5]}', 422),
        (b'{"images": ["a b"]}', 422),
        ('{"images": ["é"]}'.encode(), 422),
        (b'{"images": ["aGk="]}', 422),
        (b'{"images": ["aGk="], "arrays": []}', 422),
        (b'{"pictures": []}', 422),
        (b'{"arrays": [[1, 2]]}', 422),
    ],
)
def test_json_without_images_is_refused(live, body, code):
    response = live.client.post(
        "/v1/predict", content=body, headers={"Content-Type": "application/json"}
    )

    sentence(response, code)


@pytest.mark.parametrize("kind", ["text/plain", "", "application/x-www-form-urlencoded"])
def test_other_content_types_are_refused(live, kind):
    response = live.client.post("/v1/predict", content=b"x", headers={"Content-Type": kind})

    sentence(response, 415)


@pytest.mark.parametrize(
    "content_type",
    ["multipart/form-data", "multipart/form-data; boundary=", "multipart/form-data; boundary=a"],
)
def test_a_broken_form_is_refused(live, content_type):
    response = live.client.post(
        "/v1/predict", content=b"--b\r\n", headers={"Content-Type": content_type}
    )

    assert response.status_code in (400, 422)
    assert set(response.json()) == {"error"}


def test_a_form_with_other_fields_is_refused(live, picture):
    response = live.client.post("/v1/predict", files={"pictures": picture()})

    assert "something other than 'files'" in sentence(response, 422)


@pytest.mark.parametrize(
    "array",
    [
        "[]",
        "[1, 2, 3]",
        "[[1, 2, 3, 4]]",
        "[1, 2, 3, [4]]",
        '["1", "2", "3", "4"]',
        "[1, 2, 3, null]",
        "[true, false, true, true]",
        "[NaN, 2, 3, 4]",
        "[Infinity, 2, 3, 4]",
        "[1e300, 2, 3, 4]",
        f"[{'9' * 400}, 2, 3, 4]",
        "5",
        '{"a": 1}',
        '"1234"',
    ],
)
def test_wrong_arrays_are_refused(arrays, array):
    response = arrays.client.post(
        "/v1/predict",
        content=f'{{"arrays": [[1, 2, 3, 4], {array}]}}',
        headers={"Content-Type": "application/json"},
    )

    sentence(response, 422)


def test_inputs_for_which_the_model_gives_no_numbers_are_refused(arrays):
    overflow = Prediction(torch.full((1, 3), float("nan")), torch.zeros(1, 8))
    arrays.predictor.swap(lambda inputs: overflow, 1)

    response = arrays.client.post("/v1/predict", json={"arrays": [[1, 2, 3, 4]]})

    assert "its values are too large" in sentence(response, 422)


def test_images_are_refused_where_arrays_are_taken(arrays, picture):
    assert "takes arrays, not images" in sentence(upload(arrays, picture()), 422)


def test_asking_too_often_is_refused_with_a_time_to_wait(start):
    live = start(server={"requests_per_minute": 6})

    codes = [live.client.get("/v1/classes").status_code for _ in range(3)]
    refused = live.client.get("/v1/classes")

    assert 429 in codes or refused.status_code == 429
    assert int(refused.headers["retry-after"]) >= 1
    assert "Too many requests" in sentence(refused, 429)
    assert live.client.get("/healthz").status_code == 200


@pytest.mark.parametrize(
    ("method", "path", "body", "code"),
    [
        ("GET", "/nothing", None, 404),
        ("GET", "/v1/samples/none", None, 404),
        ("GET", "/v1/samples/none/image", None, 404),
        ("GET", "/v1/samples/a%00b", None, 422),
        ("DELETE", "/v1/samples/none", None, 404),
        ("PUT", "/v1/predict", None, 405),
        ("POST", "/v1/versions/99/promote", None, 404),
        ("POST", "/v1/versions/x/promote", None, 422),
        ("POST", "/v1/questions/99/answer", {"key": "k", "label": 0}, 404),
        ("POST", "/v1/questions/99/release", None, 404),
        ("POST", "/v1/questions/1/answer", {"key": "k", "label": 3}, 422),
        ("POST", "/v1/questions/1/answer", {"key": "k", "label": -1}, 422),
        ("POST", "/v1/questions/1/answer", {"key": "k", "label": 10**30}, 422),
        ("POST", "/v1/questions/1/answer", {"key": "k"}, 422),
        ("POST", "/v1/questions/1/answer", {"key": "k", "kind": "skip", "label": 1}, 422),
        ("POST", "/v1/questions/1/answer", {"key": "", "label": 1}, 422),
        ("POST", "/v1/questions/1/answer", {"key": "a\x00b", "label": 1}, 422),
        ("POST", "/v1/questions/1/answer", {"key": "k", "label": 1, "more": 1}, 422),
        ("POST", "/v1/questions/undo", {"key": "k"}, 409),
        ("POST", "/v1/learning", {}, 422),
        ("GET", "/v1/series?points=0", None, 422),
        ("GET", "/v1/questions?limit=x", None, 422),
    ],
)
def test_each_wrong_request_gets_a_sentence(live, method, path, body, code):
    live.ask(1)

    response = live.client.request(method, path, json=body)

    assert response.status_code == code, response.text
    assert set(response.json()) == {"error"}


def test_an_unexpected_error_is_logged_and_tells_nothing_but_a_number(live, monkeypatch, caplog):
    def fail():
        raise RuntimeError("/secret/path is broken")

    monkeypatch.setattr(live.storage.versions, "current", fail)

    response = live.client.get("/v1/versions")

    told = response.json()["error"]
    assert response.status_code == 500
    assert "secret" not in response.text
    (record,) = [one for one in caplog.records if one.getMessage() == "unexpected error"]
    assert record.id in told
    assert "/secret/path" in str(record.exc_info[1])
    assert response.headers["x-content-type-options"] == "nosniff"


def test_nothing_is_predicted_before_a_model_is_there(live, picture):
    live.predictor.swap(None, 0)

    response = upload(live, picture())

    assert "no model is loaded yet" in response.json()["error"]
    assert response.status_code == 503
    assert live.client.get("/readyz").status_code == 503
    assert live.client.get("/healthz").status_code == 200


@pytest.mark.parametrize("label", [True, "1", 1.5])
def test_what_is_no_number_is_no_label(live, label):
    (question,) = live.ask()

    response = live.client.post(
        f"/v1/questions/{question}/answer", json={"key": "k", "label": label}
    )

    assert "label" in sentence(response, 422)
    assert live.storage.questions.answers(question) == ()


def test_trouble_with_the_database_is_logged_and_its_place_told_to_nobody(
    live, monkeypatch, caplog
):
    def fail():
        raise StateError("Storage: the database /secret/path cannot be used.")

    monkeypatch.setattr(live.storage.versions, "current", fail)

    response = live.client.get("/v1/versions")

    assert "cannot use its storage" in sentence(response, 503)
    assert "secret" not in response.text
    assert "/secret/path" in caplog.text


def test_a_sample_that_is_still_being_written_is_not_said_to_be_unknown(live, monkeypatch):
    (sample,) = live.serve()
    monkeypatch.setattr(live.state.writer, "flush", lambda: False)

    told = sentence(live.client.delete(f"/v1/samples/{sample}"), 503)

    assert told == "Samples are still being written. Try again."


def test_the_numbers_of_an_odd_status_are_still_json(live):
    """What the learner could not measure is told as null."""
    json.loads(live.client.get("/v1/series").text, parse_constant=pytest.fail)


def test_a_wrong_method_is_told_all_that_an_address_has(live):
    response = live.client.put("/v1/samples/any")

    assert response.status_code == 405
    assert response.headers["Allow"] == "DELETE, GET"


def test_an_import_without_a_file_is_refused(live):
    assert live.client.post("/v1/import/answers").status_code == 422


@pytest.mark.parametrize(
    ("form", "kind", "code"),
    [
        ("csv", "application/json", 415),
        ("label-studio", "text/csv; charset=utf-8", 415),
        ("csv", "text/csv", 200),
        ("csv", "application/x-www-form-urlencoded", 200),  # curl sends this for any file
        ("jsonl", "application/json", 200),
    ],
)
def test_a_file_must_not_be_said_to_be_of_another_format(live, form, kind, code):
    content = b"question,answer\n" if form == "csv" else b"\n"
    path = f"/v1/import/answers?format={form}"

    assert (
        live.client.post(path, content=content, headers={"Content-Type": kind}).status_code == code
    )
