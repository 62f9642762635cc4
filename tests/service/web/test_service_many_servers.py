"""What servers of one deployment share: sessions, their end, wrong tokens, and one webhook."""

import asyncio
import re
from pathlib import Path

import pytest
from starlette.exceptions import HTTPException

from attakit.service.storage import open_storage
from attakit.service.web.security import Guard
from attakit.service.web.wrong_tokens import WrongTokens
from attakit.service.webhook import Webhook

DEPLOY = Path(__file__).parents[3] / "deploy"


@pytest.fixture
def two(postgres_url, tmp_path):
    with open_storage(tmp_path, postgres_url) as one, open_storage(tmp_path, postgres_url) as other:
        yield one, other


def guards(two, clock):
    options = {"is_open": False, "shared": True, "clock": clock, "ticks": clock}
    return [Guard(each.tokens, each.key_values, **options) for each in two]


def test_a_session_counts_on_all_servers_and_so_does_its_end(two, clock):
    first, second = guards(two, clock)
    token = two[0].tokens.create("ada", "label")
    cookie = asyncio.run(first.log_in(token, "10.0.0.1"))
    other_cookie = asyncio.run(second.log_in(token, "10.0.0.1"))
    session, other = first.sessions.read(cookie), second.sessions.read(other_cookie)

    assert second.sessions.read(cookie).name == "ada"
    first.sessions.end(session)
    second.sessions.end(other)  # must not revive the one that ended elsewhere
    clock.sleep(1.5)
    for guard in (first, second):
        guard._tokens.read()

    for guard in (first, second):
        assert guard.sessions.read(cookie) is None
        assert guard.sessions.read(other_cookie) is None


def test_wrong_tokens_are_counted_on_all_servers_together(two, clock):
    first, second = guards(two, clock)
    two[0].tokens.create("ada", "label")

    def attempt(guard, address="10.0.0.1"):
        with pytest.raises(HTTPException) as refused:
            asyncio.run(guard.log_in("wrong", address))
        return refused.value.status_code

    codes = [attempt(guard) for guard in (first, second) * 3]
    clock.sleep(6.0)

    assert codes == [401] * 5 + [429]
    assert attempt(second, "10.0.0.2") == 401
    assert [attempt(first), attempt(second)] == [401, 429]


def test_attempts_beyond_what_a_server_may_report_are_counted_there_alone(storage, clock):
    wrong = WrongTokens(storage.key_values, clock=clock, ticks=clock)

    waits = [wrong.wait(f"10.0.{number // 250}.{number % 250}") for number in range(150)]

    assert not any(waits)
    assert len(storage.key_values.get("wrong_tokens")) == 100


def test_one_server_sends_to_the_webhook_and_another_one_continues(two):
    sent = []
    hooks = [
        Webhook(
            "http://receiver.test",
            each.questions,
            each.key_values,
            send=lambda _url, body: sent.append(body["newest"]),
            role=each.claim("webhook"),
        )
        for each in two
    ]

    def ask(newest, *these):
        for hook in these:
            hook._newest = lambda: newest
            hook.run_once()

    for number in (3, 3, 5):
        ask(number, *hooks)
    hooks[0].stop()
    for number in (5, 8):
        ask(number, hooks[1])
    hooks[1].stop()

    assert sent == [3, 5, 8]


def test_the_dashboard_of_grafana_shows_what_metrics_tell(live):
    live.storage.events.add("alarm", "learner", what="drift", text="It drifts.")
    live.serve(1)
    live.state.overview.changed()
    told = live.client.get("/metrics").text
    dashboard = (DEPLOY / "grafana" / "dashboards" / "attakit.json").read_text()

    used = set(re.findall(r"\battakit_[a-z_]+", dashboard))

    assert {name for name in used if f"\n{name}" not in told} == set()
