"""The pages without a browser: who sees what, and how files are kept."""

from __future__ import annotations

import re

import pytest
from fastapi import FastAPI
from starlette.testclient import TestClient

from attakit.service.web.pages import Pages, login_page, pages_router
from attakit.service.web.security import Caller


def client_of(visitor, example=""):
    app = FastAPI(title="attakit", docs_url=None)
    app.include_router(pages_router(lambda _request: visitor, app.openapi, example=example))

    @app.get("/v1/classes", summary="Names <of> the classes")
    def classes() -> dict[str, str]:
        return {}

    return TestClient(app, follow_redirects=False)


ADA = Caller("ada", "label", "session", csrf="secret-of-the-session")


@pytest.mark.parametrize("path", ["/", "/label"])
def test_who_is_not_logged_in_is_sent_to_log_in(path):
    response = client_of(None).get(path)

    assert response.status_code == 303
    assert response.headers["location"] == f"/login?next={path}"


@pytest.mark.parametrize(
    ("path", "led"), [("/login", "/"), ("/login?next=/label", "/label"), ("/login?next=//x", "/")]
)
def test_on_an_open_server_there_is_no_page_to_log_in(path, led):
    response = client_of(Caller("local", "admin", "local")).get(path)

    assert (response.status_code, response.headers["location"]) == (303, led)


@pytest.mark.parametrize("visitor", [None, ADA])
def test_on_a_closed_server_there_is_a_page_to_log_in(visitor):
    response = client_of(visitor).get("/login")

    assert response.status_code == 200
    assert "Log in" in response.text


def test_a_token_for_predictions_opens_no_page():
    response = client_of(Caller("robot", "predict", "session", csrf="x")).get("/label")

    assert response.status_code == 403
    assert "is for predictions only" in response.text


@pytest.mark.parametrize("path", ["/", "/label", "/login", "/docs"])
def test_pages_hold_no_script_or_style_and_name_no_other_host(path):
    text = client_of(ADA).get(path).text

    assert not re.search(r"<script(?![^>]*\ssrc=)|<style|\sstyle=|\son\w+=", text)
    links = re.findall(r'(?:href|src|action)="([^"]*)"', text)
    assert links
    assert all(re.match(r"/(?!/)|#", link) for link in links)


def test_every_file_a_page_or_module_names_is_there():
    pages = Pages()
    shown = [pages.render(n, ADA, here="/", example="") for n in ("dashboard.html", "label.html")]
    named = set(re.findall(rf"/static/{pages.mark}/([\w.]+)", "".join(shown)))
    imported = {
        name
        for file, content in pages.files.items()
        if file.endswith(".js")
        for name in re.findall(r'from "\./([\w.]+)"', content.decode())
    }

    assert {"base.css", "label.js", "dashboard.js"} <= named
    assert named | imported <= set(pages.files)


def test_a_session_tells_its_pages_the_token_and_nobody_keeps_them():
    response = client_of(ADA).get("/label")

    assert '<meta name="csrf-token" content="secret-of-the-session">' in response.text
    assert response.headers["cache-control"] == "no-store"
    assert "csrf-token" not in client_of(Caller("local", "admin", "local")).get("/label").text


def test_names_are_text_not_markup():
    text = client_of(Caller('<b onclick="x">', "label", "session", csrf="x")).get("/").text

    assert "<b onclick" not in text
    assert "&lt;b onclick=&#34;x&#34;&gt;" in text


def test_static_files_are_kept_for_ever_under_an_address_of_their_content():
    client, mark = client_of(ADA), Pages().mark

    current = client.get(f"/static/{mark}/base.css")
    old = client.get("/static/000000000000/base.css")

    assert current.headers["cache-control"] == "public, max-age=31536000, immutable"
    assert current.headers["content-type"].startswith("text/css")
    assert old.headers["cache-control"] == "no-cache"
    assert old.content == current.content
    assert client.get(f"/static/{mark}/icon.svg").headers["content-type"] == "image/svg+xml"


@pytest.mark.parametrize("name", ["nothing.js", "..%2Fpages.py", "%2e%2e%2fpages.py"])
def test_nothing_but_static_files_is_handed_out(name):
    assert client_of(ADA).get(f"/static/{Pages().mark}/{name}").status_code == 404


def test_a_wrong_token_is_told_on_the_page_and_leads_nowhere_else():
    response = login_page(Pages(), following="//evil.example", wrong="Not known.", status=401)

    assert response.status_code == 401
    assert b"Not known." in response.body
    assert b"evil" not in response.body


def test_the_reference_is_shown_to_everyone_and_escaped():
    response = client_of(None).get("/docs")

    assert response.status_code == 200
    assert "Names &lt;of&gt; the classes" in response.text
    assert "curl -H &#34;Authorization: Bearer $TOKEN&#34;" in response.text


def test_the_reference_begins_with_an_input_of_the_kind_that_the_service_takes():
    page = client_of(None, example="--json TEXTS").get("/docs").text

    assert "--json TEXTS http://testserver/v1/predict" in page
    assert "image.png" not in page


@pytest.mark.parametrize("path", ["/", "/label", "/login", "/docs", "/static/any/base.css"])
def test_pages_answer_who_only_asks_whether_they_are_there(live, path):
    asked, shown = live.client.head(path), live.client.get(path)

    assert (asked.status_code, asked.headers["content-type"]) == (
        200,
        shown.headers["content-type"],
    )


def test_people_are_told_in_a_page_what_programs_are_told_in_json(live):
    page = live.client.get("/nowhere", headers={"Accept": "text/html,*/*"})
    told = live.client.get("/nowhere")
    program = live.client.get("/v1/nowhere", headers={"Accept": "text/html,*/*"})

    assert [one.status_code for one in (page, told, program)] == [404] * 3
    assert page.headers["content-type"].startswith("text/html")
    assert "Not found" in page.text
    assert "There is nothing at this address" in page.text
    assert told.json() == program.json()


def test_a_page_of_an_error_shows_nothing_that_somebody_sent(live):
    page = live.client.get(
        "/", headers={"Accept": "text/html", "Host": "<b>evil</b>", "X-Annotator": "<b>evil</b>"}
    )

    assert page.status_code == 403
    assert "under a local name such as localhost" in page.text
    assert "evil" not in page.text


def test_a_service_without_data_shows_how_to_send_an_input_of_its_kind():
    app = FastAPI()
    visitor = Caller("local", "admin", "local")
    app.include_router(pages_router(lambda _: visitor, app.openapi, example="--json '{\"a\": 1}'"))

    text = TestClient(app).get("/").text

    assert "--json &#39;{&#34;a&#34;: 1}&#39;" in text
