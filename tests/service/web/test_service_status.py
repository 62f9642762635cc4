"""/v1/status and its neighbours."""


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
        "budget": 300,
        "left": 297,
    }
    assert status["learning"] == "running"
