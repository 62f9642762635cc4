"""/v1/questions: leasing, answering, undoing, giving back."""


def test_a_leased_question_shows_the_guesses_and_the_picture(live):
    (number,) = live.ask()

    response = live.client.post("/v1/questions/lease")

    lease = response.json()
    assert response.status_code == 200
    assert lease["question"] == number
    assert [guess["class"] for guess in lease["guesses"]] == ["dog", "cat"]
    assert "purpose" not in lease
    assert lease["open"] == 1
    image = live.client.get(lease["image"])
    assert image.headers["content-type"] == "image/png"
    assert image.headers["cache-control"] == "no-store"


def test_without_questions_there_is_nothing_to_lease(live):
    response = live.client.post("/v1/questions/lease")

    assert response.status_code == 204
    assert response.content == b""


def test_an_answer_posted_twice_counts_once(live):
    (number,) = live.ask()
    body = {"key": "k1", "kind": "label", "label": 2}

    first = live.client.post(f"/v1/questions/{number}/answer", json=body)
    second = live.client.post(f"/v1/questions/{number}/answer", json=body)

    assert (first.json(), second.json()) == ({"outcome": "accepted"}, {"outcome": "repeated"})
    assert len(live.storage.questions.answers(number)) == 1
