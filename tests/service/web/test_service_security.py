"""Tokens, sessions, cross-site requests and foreign names of the host."""

import socket

import pytest
from starlette.testclient import TestClient

from attakit.errors import StateError
from attakit.service.serve import uvicorn_config
from attakit.service.web.sessions import COOKIE, Sessions
from attakit.settings.service import ServerTable
from live_site import serving


@pytest.fixture
def guarded(start):
    """A service with a token for each role; `tokens` by role."""
    live = start(server={"host": "0.0.0.0"}, base_url="http://service.example")
    live.tokens = {
        role: live.storage.tokens.create(role + "-user", role)
        for role in ("predict", "label", "admin")
    }
    return live


def bearer(token):
    return {"Authorization": f"Bearer {token}"}


def log_in(live, role="label"):
    response = live.client.post(
        "/login", data={"token": live.tokens[role], "next": "/label"}, follow_redirects=False
    )
    assert response.status_code == 303, response.text
    return live.state.guard.sessions.csrf(
        live.state.guard.sessions.read(live.client.cookies[COOKIE])
    )


@pytest.mark.parametrize(
    ("method", "path", "allowed"),
    [
        ("POST", "/v1/predict", {"predict", "admin"}),
        ("GET", "/v1/samples/x", {"predict", "label", "admin"}),
        ("GET", "/v1/samples/x/image", {"label", "admin"}),
        ("DELETE", "/v1/samples/x", {"admin"}),
        ("GET", "/v1/classes", {"predict", "label", "admin"}),
        ("POST", "/v1/questions/lease", {"label", "admin"}),
        ("GET", "/v1/questions", {"label", "admin"}),
        ("GET", "/v1/status", {"label", "admin"}),
        ("GET", "/v1/series", {"label", "admin"}),
        ("GET", "/v1/versions", {"label", "admin"}),
        ("POST", "/v1/versions/0/promote", {"admin"}),
        ("POST", "/v1/learning", {"admin"}),
        ("GET", "/metrics", {"predict", "label", "admin"}),
    ],
)
def test_each_role_may_do_its_part_and_no_more(guarded, method, path, allowed):
    codes = {
        role: guarded.client.request(method, path, headers=bearer(token)).status_code
        for role, token in guarded.tokens.items()
    }

    assert {role for role, code in codes.items() if code != 403} == allowed
    assert guarded.client.request(method, path).status_code == 401


@pytest.mark.parametrize("header", ["Bearer wrong", "Bearer ", "Basic YTpi", "bearer\tx"])
def test_a_wrong_token_is_refused(guarded, header):
    response = guarded.client.get("/v1/classes", headers={"Authorization": header})

    assert response.status_code == 401
    assert response.headers["www-authenticate"] == "Bearer"
    assert set(response.json()) == {"error"}


def test_a_revoked_token_is_refused(guarded):
    guarded.storage.tokens.revoke("label-user")

    response = guarded.client.get("/v1/classes", headers=bearer(guarded.tokens["label"]))

    assert response.status_code == 401


def test_health_needs_no_token(guarded):
    assert guarded.client.get("/healthz").status_code == 200
    assert guarded.client.get("/readyz").status_code == 200


def test_a_session_opens_the_pages_and_reads(guarded):
    log_in(guarded)

    assert guarded.client.get("/label").status_code == 200
    assert guarded.client.get("/v1/status").status_code == 200


def test_the_cookie_is_kept_from_scripts_and_other_sites(guarded):
    response = guarded.client.post(
        "/login", data={"token": guarded.tokens["label"]}, follow_redirects=False
    )

    cookie = response.headers["set-cookie"].lower()
    assert "httponly" in cookie
    assert "samesite=strict" in cookie
    assert guarded.tokens["label"] not in response.headers["set-cookie"]


def test_over_https_the_cookie_is_secure(start):
    live = start(server={"host": "0.0.0.0"}, base_url="https://service.example")
    token = live.storage.tokens.create("ann", "label")

    response = live.client.post("/login", data={"token": token}, follow_redirects=False)

    assert "; secure" in response.headers["set-cookie"].lower()


def test_a_change_by_cookie_needs_the_csrf_token(guarded):
    csrf = log_in(guarded)
    nearly = csrf[:-1] + ("1" if csrf.endswith("0") else "0")

    missing = guarded.client.post("/v1/questions/lease")
    wrong = guarded.client.post("/v1/questions/lease", headers={"X-CSRF-Token": nearly})
    odd = guarded.client.post("/v1/questions/lease", headers={"X-CSRF-Token": "é".encode()})
    right = guarded.client.post("/v1/questions/lease", headers={"X-CSRF-Token": csrf})

    assert (missing.status_code, wrong.status_code, odd.status_code) == (403, 403, 403)
    assert right.status_code == 204


def test_a_change_by_cookie_from_another_site_is_refused(guarded):
    csrf = log_in(guarded)

    response = guarded.client.post(
        "/v1/questions/lease", headers={"X-CSRF-Token": csrf, "Origin": "http://evil.example"}
    )

    assert response.status_code == 403


def test_the_session_of_a_revoked_token_ends(guarded):
    log_in(guarded)
    guarded.storage.tokens.revoke("label-user")
    guarded.forget_what_was_seen()

    assert guarded.client.get("/v1/status").status_code == 401


def test_a_session_ends_after_a_while(guarded):
    log_in(guarded)
    guarded.clock.now += 13 * 3600

    assert guarded.client.get("/v1/status").status_code == 401


def test_after_logging_out_a_copied_cookie_is_worth_nothing(guarded):
    csrf = log_in(guarded)
    cookie = guarded.client.cookies[COOKIE]

    guarded.client.post("/logout", data={"csrf": csrf})
    guarded.client.cookies.set(COOKIE, cookie)

    assert guarded.client.get("/v1/status").status_code == 401
    assert Sessions(guarded.storage.key_values, clock=guarded.clock).read(cookie) is None


def test_nobody_else_can_log_a_person_out(guarded):
    log_in(guarded)
    cookie = guarded.client.cookies[COOKIE]

    guarded.client.post("/logout", data={"csrf": "guess"})
    guarded.client.cookies.set(COOKIE, cookie)

    assert guarded.client.get("/v1/status").status_code == 200


@pytest.mark.parametrize("cookie", ["", "x", "x.y", "e30.x", ".", "ü.ü"])
def test_a_made_up_cookie_is_no_session(guarded, cookie):
    headers = {"Cookie": f"{COOKIE}={cookie}".encode()}

    assert guarded.client.get("/v1/status", headers=headers).status_code == 401


def test_logging_in_is_slowed_down_after_some_wrong_tokens(guarded):
    codes = [guarded.client.post("/login", data={"token": "guess"}).status_code for _ in range(5)]
    last = guarded.client.post("/login", data={"token": "guess"})

    assert codes == [401] * 5
    assert last.status_code == 429
    assert int(last.headers["retry-after"]) >= 1


def test_wrong_tokens_from_an_address_keep_no_right_one_out(guarded):
    for _ in range(6):
        guarded.client.post("/login", data={"token": "guess"})

    assert log_in(guarded, "admin")


def test_a_form_to_log_in_with_is_short(guarded):
    response = guarded.client.post("/login", data={"token": "x" * 11_000})

    assert response.status_code == 413


def test_nothing_that_an_unknown_caller_sends_is_read(guarded):
    for path in ("/v1/predict", "/v1/learning", "/v1/questions/1/answer", "/v1/import/answers"):
        response = guarded.client.post(path, json={}, headers={"Content-Length": "1000000"})

        assert response.status_code == 401


def test_tokens_count_while_the_database_is_away(guarded, monkeypatch):
    headers = bearer(guarded.tokens["predict"])
    assert guarded.client.get("/v1/classes", headers=headers).status_code == 200

    def fail():
        raise StateError("the database is away")

    monkeypatch.setattr(guarded.storage.tokens, "valid", fail)
    monkeypatch.setattr("attakit.service.web.known_tokens.FRESH_SECONDS", 0.0)

    assert guarded.client.get("/v1/classes", headers=headers).status_code == 200
    assert guarded.client.get("/v1/classes", headers=bearer("wrong")).status_code == 401


def guess_through(app, count=6):
    """Statuses of wrong tokens that a program on this machine sends in the name of others."""
    local = TestClient(app, base_url="http://service.example", client=("127.0.0.1", 50_000))
    headers = [{"X-Forwarded-For": f"203.0.113.{number}"} for number in range(count)]
    return [local.post("/login", data={"token": "x"}, headers=h).status_code for h in headers]


def served(app):
    """The app as the server calls it."""
    config = uvicorn_config(app, ServerTable())
    config.load()
    return config.loaded_app


def test_a_made_up_address_does_not_evade_the_limit_of_logging_in(guarded, monkeypatch):
    monkeypatch.delenv("FORWARDED_ALLOW_IPS", raising=False)

    assert guess_through(served(guarded.client.app)) == [401] * 5 + [429]


def test_clients_of_a_proxy_that_the_operator_named_are_told_apart(guarded, monkeypatch):
    monkeypatch.setenv("FORWARDED_ALLOW_IPS", "127.0.0.1")

    assert guess_through(served(guarded.client.app)) == [401] * 6


def test_logging_in_leads_to_no_other_site(guarded):
    response = guarded.client.post(
        "/login",
        data={"token": guarded.tokens["label"], "next": "//evil.example"},
        follow_redirects=False,
    )

    assert response.headers["location"] == "/"


def test_an_open_server_lets_its_user_do_everything(live):
    assert live.client.get("/v1/status").status_code == 200
    assert live.client.post("/v1/learning", json={"paused": True}).status_code == 200


@pytest.mark.parametrize("host", ["evil.example", "localhost.evil.example", "", "[::1", "10.0.0.1"])
def test_an_open_server_answers_under_its_own_name_only(live, host):
    response = live.client.get("/v1/status", headers={"Host": host})

    assert response.status_code == 403


@pytest.mark.parametrize(
    "host", ["localhost:8000", "127.0.0.1", "127.0.0.2:80", "[::1]:8000", "LOCALHOST"]
)
def test_an_open_server_is_known_by_the_names_of_loopback(live, host):
    assert live.client.get("/v1/status", headers={"Host": host}).status_code == 200


@pytest.mark.parametrize(
    "header",
    [
        "X-Forwarded-For",
        "X-Forwarded-Host",
        "X-Forwarded-Proto",
        "X-Real-IP",
        "Forwarded",
        "Via",
    ],
)
def test_an_open_server_answers_nothing_that_a_proxy_passed_on(live, header):
    response = live.client.get("/v1/status", headers={header: "127.0.0.1"})

    assert response.status_code == 403
    assert "or connect directly" in response.json()["error"]


@pytest.mark.parametrize("peer", ["203.0.113.9", "10.0.0.1", "2001:db8::1", "testclient"])
def test_an_open_server_answers_nobody_from_elsewhere(start, peer):
    response = start(peer=peer).client.get("/v1/status")

    assert response.status_code == 403
    assert "Log in with a token" in response.json()["error"]


@pytest.fixture
def real(live):
    """The address of an open service: host and port."""
    config = uvicorn_config(live.client.app, ServerTable())
    config.lifespan = "off"
    with serving(config) as address:
        host, _, port = address.removeprefix("http://").partition(":")
        yield host, int(port)


def first_line(address, version):
    """What a server answers a program that names it by its address, as nginx does by default."""
    with socket.create_connection(address) as connection:
        head = f"GET /v1/status HTTP/{version}\r\nHost: {address[0]}\r\nConnection: close\r\n\r\n"
        connection.sendall(head.encode())
        return connection.recv(12)


def test_an_open_server_does_not_answer_a_proxy_of_another_user(real, monkeypatch):
    assert first_line(real, "1.1") == b"HTTP/1.1 200"

    monkeypatch.setattr("attakit.service.web.local.is_other_user", lambda *_: True)

    assert first_line(real, "1.1") == b"HTTP/1.1 403"


def test_an_open_server_does_not_answer_a_proxy_that_speaks_as_nginx_does(real):
    assert first_line(real, "1.0") == b"HTTP/1.1 403"


def test_an_open_server_shows_a_person_behind_a_proxy_a_page(live):
    headers = {"Via": "1.1 proxy", "Accept": "text/html"}

    response = live.client.get("/", headers=headers)

    assert response.status_code == 403
    assert "Log in with a token" in response.text


def test_with_a_token_a_proxy_may_stand_in_between(live):
    token = live.storage.tokens.create("ann", "admin")
    headers = {**bearer(token), "X-Forwarded-For": "203.0.113.9", "Via": "1.1 proxy"}

    assert live.client.get("/v1/status", headers=headers).status_code == 200


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
        {"Origin": "http://localhost:1"},
        {"Origin": "http://[x"},
        {"Sec-Fetch-Site": "cross-site"},
    ],
)
def test_an_open_server_takes_no_changes_from_other_sites(live, headers):
    response = live.client.post("/v1/learning", json={"paused": True}, headers=headers)

    assert response.status_code == 403
    assert live.storage.key_values.get("paused", False) is False


def test_an_open_server_takes_changes_from_its_own_pages(live):
    headers = {"Origin": "http://localhost", "Sec-Fetch-Site": "same-origin"}

    assert live.client.post("/v1/learning", json={"paused": True}, headers=headers).is_success


def test_an_open_server_takes_tokens_too(live):
    token = live.storage.tokens.create("ann", "label")

    assert live.client.get("/v1/status", headers=bearer(token)).status_code == 200
    assert live.client.post("/v1/learning", headers=bearer(token)).status_code == 403
    assert live.client.get("/v1/status", headers=bearer("wrong")).status_code == 401


def test_on_loopback_too_a_token_is_needed(start):
    live = start(server={"open": False})

    assert live.client.get("/v1/status").status_code == 401


def test_beyond_loopback_nothing_is_open_even_without_tokens(start):
    live = start(server={"host": "0.0.0.0"})

    assert live.client.get("/v1/status").status_code == 401


def test_people_on_one_machine_get_different_questions_by_name(live):
    first, second = live.ask(2)

    ann = live.client.post("/v1/questions/lease", headers={"X-Annotator": "Ann%20%C3%96"})
    bob = live.client.post("/v1/questions/lease", headers={"X-Annotator": "bob"})

    assert (ann.json()["question"], bob.json()["question"]) == (first, second)


def test_every_response_carries_the_headers_for_safety(live):
    for path in ("/", "/v1/status", "/nothing", "/healthz"):
        headers = live.client.get(path).headers

        policy = headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "frame-ancestors 'none'" in policy
        assert "unsafe-inline" not in policy
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["referrer-policy"] == "same-origin"
        assert headers["cache-control"] == "no-store"
