"""/v1/status and its neighbours."""

from attakit.service.storage import Gate, LabelRules, Turn


def test_the_status_counts_what_was_served_and_asked(live):
    live.ask(3)

    status = live.client.get("/v1/status").json()

    assert status["version"] == 0
    assert status["served"] == status["waiting"] == 3
    assert status["throughput"] == 3 / 60
    assert status["labels"] == {
        "asked": 3,
        "answered": 0,
        "open": 3,
        "expired": 0,
        "skipped": 0,
        "none": 0,
        "budget": 300,
        "left": 297,
    }
    assert status["learning"] == "running"


def plan(live, number=0, **numbers):
    live.storage.turns.plan(Turn(number, (), 0, at=live.clock()))
    live.storage.turns.finish(number, numbers)
    live.state.overview.changed()


def test_what_was_counted_before_a_change_is_not_kept(live, monkeypatch):
    count = live.storage.questions.counts

    def change_meanwhile():
        found = count()
        monkeypatch.undo()
        live.ask(1)
        return found

    live.state.overview.changed()
    monkeypatch.setattr(live.storage.questions, "counts", change_meanwhile)

    assert live.state.overview.status().labels.asked == 0
    assert live.state.overview.status().labels.asked == 1


def test_images_count_also_while_nothing_is_kept(live):
    live.serve(2)
    live.client.post("/v1/learning", json={"paused": True})

    live.serve(3)

    assert live.client.get("/v1/status").json()["served"] == 5


def test_the_status_tells_which_version_gives_the_answers(live):
    live.save_version(1)
    live.client.post("/v1/versions/1/promote")

    status = live.client.get("/v1/status").json()

    assert (status["version"], status["answering"]) == (1, 0)
    assert "attakit_version 0.0" in live.client.get("/metrics").text


def test_accuracy_comes_with_its_interval(live):
    assert live.client.get("/v1/status").json()["accuracy"] is None

    plan(live, accuracy=0.8, accuracy_low=0.6, accuracy_high=0.9, accuracy_count=20.0)

    told = live.client.get("/v1/status").json()
    interval = {"value": 0.8, "low": 0.6, "high": 0.9, "count": 20}
    assert told["accuracy"] == {**interval, "source": None}
    assert told["turn"] == 0


def test_the_source_model_is_judged_on_the_same_audit(live):
    served = {"accuracy": 0.8, "accuracy_low": 0.6, "accuracy_high": 0.9, "accuracy_count": 20.0}
    source = {"source_accuracy": 0.5, "source_accuracy_low": 0.3, "source_accuracy_high": 0.7}
    plan(live, **served, **source)

    accuracy = live.client.get("/v1/status").json()["accuracy"]
    assert accuracy["source"] == {"value": 0.5, "low": 0.3, "high": 0.7}
    (turn,) = live.client.get("/v1/series").json()["turns"]
    assert (turn["accuracy"], turn["source_accuracy"]) == (0.8, 0.5)


def test_the_series_covers_a_time_with_no_more_points_than_wanted(live):
    began = live.clock.now
    for number in range(30):
        live.clock.now = began + 10 * number
        plan(live, number, entropy=0.1)

    def turns(query):
        return [one["turn"] for one in live.client.get(f"/v1/series?{query}").json()["turns"]]

    assert turns("seconds=100&points=50") == list(range(19, 30))
    assert turns("seconds=1000&points=10") == [2, 5, 8, 11, 14, 17, 20, 23, 26, 29]
    assert turns("points=2") == [28, 29]


def test_the_series_runs_from_old_to_new_and_tells_what_is_not_known(live):
    plan(live, 0, entropy=0.5, drift_mix=0.1, labels=3.0)
    plan(live, 1, entropy=float("nan"))
    live.storage.events.add("alarm", "learner", what="entropy", text="It rose.")

    told = live.client.get("/v1/series?points=10").json()

    first, second = told["turns"]
    assert (first["turn"], first["entropy"], first["labels"]) == (0, 0.5, 3)
    assert first["drift"] == {"entropy": None, "mix": 0.1, "distance": None}
    assert second["entropy"] is None
    alarm = {"at": live.clock.now, "what": "entropy", "text": "It rose.", "rose": True}
    assert told["alarms"] == [alarm]


def test_what_fell_is_noted_and_is_no_alarm(live):
    live.storage.events.add("change", "learner", what="entropy", text="It fell.")

    assert live.client.get("/v1/status").json()["alarms"] == []
    (noted,) = live.client.get("/v1/series").json()["alarms"]
    assert (noted["text"], noted["rose"]) == ("It fell.", False)


def test_the_status_says_how_quickly_requests_are_answered_and_how_many_fail(live):
    live.serve(2)
    live.client.post("/v1/predict", json={})
    live.state.overview.changed()

    traffic = live.client.get("/v1/status").json()["traffic"]
    assert (traffic["requests"], traffic["failed"], traffic["refused"]) == (2, 0, 1)
    assert 0 < traffic["median"] <= traffic["slowest"]


def test_versions_tell_their_gates_and_any_can_be_promoted(live):
    live.save_version(1)
    live.storage.versions.gate(1, Gate(False, "Held back.", {"trust": 0.25}))

    promoted = live.client.post("/v1/versions/1/promote")
    newest, source = live.client.get("/v1/versions").json()["versions"]

    assert promoted.json() == {"done": True}
    assert newest["gate"]["reason"] == "Held back."
    assert (newest["current"], source["current"]) == (True, False)
    assert (newest["promoted"], source["promoted"]) == (True, True)
    status = live.client.get("/v1/status").json()
    assert (status["version"], status["agreement"]) == (1, 0.25)
    assert live.storage.versions.current().who == "local"


def test_a_version_whose_weights_are_gone_is_not_promoted(live):
    live.save_version(1).unlink()

    refused = live.client.post("/v1/versions/1/promote")
    newest, source = live.client.get("/v1/versions").json()["versions"]

    assert refused.status_code == 409
    assert "no longer stored" in refused.json()["error"]
    assert (newest["kept"], source["kept"]) == (False, True)
    assert live.storage.versions.current().version == 0


def test_throughput_is_that_of_the_last_minute(live):
    live.serve(6)
    live.clock.now += 61
    live.serve(3)

    assert live.client.get("/v1/status").json()["throughput"] == 3 / 60


def test_who_paused_learning_is_logged(live):
    live.client.post("/v1/learning", json={"paused": True}, headers={"X-Annotator": "ann"})

    (event,) = live.storage.events.recent(1)
    assert (event.kind, event.who) == ("paused", "local:ann")
    assert live.storage.key_values.get("paused") is True


def test_the_numbers_for_prometheus_tell_what_happened(live):
    live.ask(2)
    live.client.get("/nowhere/1")
    live.client.get("/nowhere/2")

    text = live.client.get("/metrics").text

    for line in (
        "attakit_inputs_total 2.0",
        'attakit_requests_total{method="POST",route="/v1/predict",status="200"} 1.0',
        'attakit_requests_total{method="GET",route="other",status="404"} 2.0',
        'attakit_questions{state="open"} 2.0',
        "attakit_budget_left 298.0",
        "attakit_version 0.0",
        "attakit_turn -1.0",
        "attakit_batch_size_count 1.0",
    ):
        assert line in text.splitlines()


def test_methods_that_somebody_makes_up_are_counted_as_one(live):
    for name in ("BREW", "BAKE"):
        live.client.request(name, "/")

    text = live.client.get("/metrics").text

    assert 'attakit_requests_total{method="other",route="/",status="405"} 2.0' in text
    assert "BREW" not in text


def test_services_in_one_process_count_apart(start):
    one, other = start(), start()
    one.serve(1)

    assert "attakit_inputs_total 1.0" in one.client.get("/metrics").text
    assert "attakit_inputs_total 0.0" in other.client.get("/metrics").text


def test_each_request_leaves_a_line_in_the_log_without_its_content(live, caplog):
    with caplog.at_level("INFO", logger="attakit.access"):
        live.client.get("/v1/samples/some-name", headers={"X-Annotator": "ann"})

    (line,) = [one for one in caplog.records if one.name == "attakit.access"]
    assert (line.route, line.status, line.who) == ("/v1/samples/{sample}", 404, "local:ann")


def test_the_description_names_every_address(live):
    description = live.client.get("/openapi.json").json()

    assert {"/v1/predict", "/v1/questions/lease", "/v1/status", "/metrics"} <= set(
        description["paths"]
    )
    for path, methods in description["paths"].items():
        for method, told in methods.items():
            assert told["summary"], (method, path)
            assert path in ("/healthz", "/readyz") or "429" in told["responses"]


def test_the_pages_are_there(live):
    for path in ("/", "/label", "/docs", "/login"):
        response = live.client.get(path)

        assert response.status_code == 200
        assert response.headers["content-type"].startswith("text/html")


def test_the_status_has_how_reliable_people_are_most_answers_first(start):
    live = start(rules=LabelRules("reliability", answers=2, settle_seconds=0, classes=3))
    for number in live.ask(4):
        for who, label in (("bob", 2), ("ada", 2)) if number % 2 else (("ada", 1), ("eve", 1)):
            url, caller = f"/v1/questions/{number}/answer", {"X-Annotator": who}
            live.client.post(url, json={"key": f"{who}{number}", "label": label}, headers=caller)
    live.storage.questions.settle()

    people = live.client.get("/v1/status").json()["annotators"]

    assert [(one["name"].removeprefix("local:"), one["answers"]) for one in people] == [
        ("ada", 4),
        ("bob", 2),
        ("eve", 2),
    ]
    assert all(0.8 < one["accuracy"] < 1 for one in people)
    (newest, *_) = live.client.get("/v1/questions").json()["questions"]
    assert newest["label"] == 1
    assert 0.9 < newest["weight"] <= 1
