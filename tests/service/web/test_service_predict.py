"""POST /v1/predict: three forms of inputs, and what comes back."""

import base64


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
