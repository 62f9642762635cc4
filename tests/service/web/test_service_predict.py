"""POST /v1/predict: three forms of inputs, and what comes back."""

import base64
import json

import pytest

from attakit.service.web.about import About
from attakit.service.web.predicting import answer_together
from attakit.service.web.uploads import Upload


def test_an_uploaded_image_is_answered(live, picture):
    response = live.client.post("/v1/predict", files={"files": ("a.png", picture(), "image/png")})

    (prediction,) = response.json()["predictions"]
    assert response.status_code == 200
    assert prediction["class"] == ("cat", "dog", "owl")[prediction["label"]]
    assert abs(sum(prediction["probabilities"].values()) - 1) < 1e-5
    assert (
        max(prediction["probabilities"], key=prediction["probabilities"].get)
        == (prediction["class"])
    )
    assert prediction["version"] == 0
    assert prediction["asked"] == "undecided"


def test_base64_and_multipart_give_the_same_answer(live, picture):
    content = picture(seed=3)

    form = live.client.post("/v1/predict", files={"files": content}).json()
    text = live.client.post(
        "/v1/predict", json={"images": [base64.b64encode(content).decode()]}
    ).json()

    first, second = form["predictions"][0], text["predictions"][0]
    assert first["probabilities"] == second["probabilities"]
    assert first["sample"] != second["sample"]


def test_every_known_format_is_read(live, image_file):
    files = [
        ("files", (f"a.{form}", image_file(form), f"image/{form}"))
        for form in ("png", "jpeg", "webp", "gif", "bmp", "tiff")
    ]

    response = live.client.post("/v1/predict", files=files)

    assert response.status_code == 200
    assert len(response.json()["predictions"]) == 6


def test_arrays_are_answered_and_kept(arrays):
    response = arrays.client.post("/v1/predict", json={"arrays": [[1, 2, 3, 4], [0, 0, 0, 0.5]]})

    names = [one["sample"] for one in response.json()["predictions"]]
    assert arrays.state.writer.flush()
    kept = arrays.storage.samples.contents(names)
    assert [arrays.state.inputs.decode(kept[name]).tolist() for name in names] == [
        [1, 2, 3, 4],
        [0, 0, 0, 0.5],
    ]


def test_what_is_kept_is_what_was_sent(live, picture):
    content = picture(seed=5)

    response = live.client.post("/v1/predict", files={"files": content})

    assert live.state.writer.flush()
    (prediction,) = response.json()["predictions"]
    served = live.storage.samples.get(prediction["sample"])
    assert served.content == content
    assert served.guess == prediction["label"]
    assert served.at == live.clock.now


def test_a_sample_can_be_looked_at_before_it_is_written(live, picture, monkeypatch):
    monkeypatch.setattr(live.storage.samples, "add", lambda served: 1 / 0)

    response = live.client.post("/v1/predict", files={"files": picture()})
    (prediction,) = response.json()["predictions"]
    told = live.client.get(f"/v1/samples/{prediction['sample']}").json()
    monkeypatch.undo()

    assert told["asked"] == "undecided"
    assert told["class"] == prediction["class"]


def test_while_learning_is_paused_nobody_is_asked(live, picture):
    live.client.post("/v1/learning", json={"paused": True})

    response = live.client.post("/v1/predict", files={"files": picture()})

    assert response.json()["predictions"][0]["asked"] == "no"
    assert live.state.writer.flush()
    assert live.storage.samples.count() == 0


@pytest.mark.parametrize("limit", [{"images": 2}, {"megabytes": 0.000_15}])
def test_what_the_learner_does_not_take_is_kept_only_up_to_the_limit(start, limit):
    live = start(retention=limit)

    live.serve(2)
    live.serve(1)

    assert live.storage.samples.count() == 2


def test_with_the_budget_spent_nobody_is_asked(start, picture):
    live = start(labels={"budget": 1})
    live.ask(1)

    response = live.client.post("/v1/predict", files={"files": picture()})

    assert response.json()["predictions"][0]["asked"] == "no"
    assert live.state.writer.flush()
    assert live.storage.samples.count() == 2


def test_a_promoted_model_answers_the_next_request(live, picture, image_model):
    live.predictor.swap(image_model(seed=1), 7)

    response = live.client.post("/v1/predict", files={"files": picture()})

    assert response.json()["predictions"][0]["version"] == 7


def test_only_the_share_of_inputs_that_is_kept_is_stored_and_may_be_asked_about(start, picture):
    live = start(learning={"keep": 0.5})
    files = [("files", ("a.png", picture(), "image/png"))] * 64

    told = live.client.post("/v1/predict", files=files).json()["predictions"]
    assert live.state.writer.flush()

    drawn = {one["sample"] for one in told if one["asked"] == "undecided"}
    assert 10 < len(drawn) < 54
    assert live.storage.samples.count() == len(drawn)
    for one in told:
        known = live.client.get(f"/v1/samples/{one['sample']}").status_code
        assert known == (200 if one["sample"] in drawn else 404)


def test_requests_that_are_answered_together_keep_their_own_samples_and_errors(arrays):
    uploads = [
        Upload(arrays=[[1, 2, 3, 4]], about=(About(caller_id="first"),)),
        Upload(arrays=[[1, 2, 3]]),
        Upload(arrays=[[0, 0, 0, 0], [4, 3, 2, 1]]),
        Upload(arrays=[[3e38, -3e38, 3e38, -3e38]]),
    ]

    first, wrong, two, huge = answer_together(arrays.state, uploads)

    alone = arrays.client.post("/v1/predict", json={"arrays": [[4, 3, 2, 1]]}).json()
    (one,), (_, last) = json.loads(first)["predictions"], json.loads(two)["predictions"]
    assert one["id"] == "first"
    assert last["probabilities"] == pytest.approx(alone["predictions"][0]["probabilities"])
    assert "shape" in str(wrong)
    assert "no finite numbers" in str(huge)
    assert arrays.state.writer.flush()
    assert arrays.storage.samples.count() == 4
