from __future__ import annotations

import json
import re
from html.parser import HTMLParser

import pytest
import torch

from attakit.errors import SettingError, StateError
from attakit.report import JsonLines, write_report
from attakit.report.html import embed

HOSTILE = '</script><img src=x onerror="alert(1)">&\u2028'
THREE_MEGABYTES = 3_000_000


@pytest.fixture
def report(tmp_path):
    def write(*folders, title="Title"):
        path = tmp_path / "out" / "report.html"
        write_report(folders, path, title)
        return path.read_text(encoding="utf-8")

    return write


def data_of(page):
    text = re.search(r'<script type="application/json" class="data">(.*?)</script>', page, re.S)
    return json.loads(text.group(1))


def test_runs_of_different_streams_are_not_mixed(report, make_run):
    folders = [
        make_run(f"{order}-{label}", experiment={"label": label, "stream": {"order": order}})
        for order in ("gradual", "random")
        for label in ("tent", "eata")
    ]

    page = report(*folders)

    assert page.count('<div class="view"') == 2
    assert page.count("<span>2 methods</span>") == 2
    assert "tent (" not in page


def test_methods_with_fewer_seeds_are_told(report, make_run):
    page = report(make_run("a"), make_run("b", seed=2), make_run("c", label="tent"))

    assert "<span>1 to 2 runs each</span>" in page


class Tags(HTMLParser):
    def __init__(self, page):
        super().__init__()
        self.found = []
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        self.found.append((tag, dict(attrs)))

    def named(self, name):
        return [attributes for tag, attributes in self.found if tag == name]


def test_a_page_shows_methods_seeds_and_marks_the_best(report, make_run):
    folders = [
        make_run(f"{label}-{seed}", label=label, seed=seed, right=right)
        for label, right in (("source only", 3), ("simatta", 5))
        for seed in (1, 2)
    ]

    page = report(*folders, title="Digits & more")

    assert "<h1>Digits &amp; more</h1>" in page
    assert "2 methods" in page
    assert "2 runs each" in page
    assert "day → night" in page
    assert re.search(r'<td class="best">83\.3 ± 0\.0', page)
    assert data_of(page)["best"] == "simatta"


def test_the_data_hold_every_curve_and_the_borders_of_segments(report, make_run):
    data = data_of(report(make_run(steps=8)))

    assert data["bands"] == [["day", 0, 24], ["night", 24, 48]]
    assert data["curves"]["so_far"][0]["x"] == [6, 12, 18, 24, 30, 36, 42, 48]
    assert data["curves"]["source"][0]["y"] == [91.0] * 4
    assert len(data["curves"]["labels"][0]["y"]) == 8


def test_clusters_are_shown_step_by_step(report, make_run):
    scene = data_of(report(make_run(steps=5)))["scene"]

    assert [frame["step"] for frame in scene["frames"]] == [0, 1, 2, 3, 4]
    roles = [point[4] for point in scene["frames"][-1]["points"]]
    assert (roles.count(0), roles.count(1), roles.count(2)) == (4, 1, 5)


def test_the_gallery_tells_right_wrong_skipped_and_waiting(report, make_run):
    tags = Tags(report(make_run(steps=8)))

    verdicts = [tag.get("class") for tag in tags.named("li") if tag.get("title")]
    pictures = tags.named("img")
    assert {name: verdicts.count(name) for name in set(verdicts)} == {
        "right": 4,
        "wrong": 2,
        "skipped": 1,
        "waiting": 1,
    }
    assert len(pictures) == 8
    assert all(picture["alt"].startswith("Sample ") for picture in pictures)


def test_the_page_needs_nothing_from_outside(report, make_run):
    page = report(make_run())

    addresses = re.findall(r"[\"'(=]\s*((?:https?:)?//[^\s\"')]+)", page)
    assert set(addresses) <= {"http://www.w3.org/2000/svg"}
    tags = Tags(page)
    assert tags.named("link") == []
    for name in ("script", "img", "iframe"):
        sources = [tag["src"] for tag in tags.named(name) if "src" in tag]
        assert all(source.startswith("data:image/png;base64,") for source in sources)
    assert "default-src 'none'" in page


def test_hostile_names_are_escaped_everywhere(report, make_run):
    harmless = report(make_run("harmless"))
    folder = make_run(
        "hostile",
        label=HOSTILE,
        classes=[HOSTILE, "b" + HOSTILE, "c"],
        segments=[HOSTILE, "night"],
    )

    page = report(folder, title=HOSTILE)

    assert page.count("</script>") == harmless.count("</script>")
    assert len(Tags(page).named("img")) == len(Tags(harmless).named("img"))
    assert not any("onerror" in attributes for _, attributes in Tags(page).found)
    assert data_of(page)["bands"][0][0] == HOSTILE


def test_embedded_data_cannot_end_their_element():
    text = str(embed({"name": HOSTILE}))

    assert not set("<>&\u2028") & set(text)
    assert json.loads(text) == {"name": HOSTILE}


def test_runs_without_pictures_have_a_page(report, make_run):
    page = report(make_run(pictures=False))

    assert "Accuracy along the stream" in page
    assert "How the clusters grew" not in page
    assert "Questions and answers" not in page


def test_a_live_run_has_a_page_that_says_so(report, make_run):
    folder = make_run(finished=False)
    with (folder / "steps.jsonl").open("a") as file:
        file.write('{"kind": "st')

    page = report(folder)

    assert "1 of these runs is not finished" in page
    assert "66.7" in page


def test_a_stream_without_truth_has_a_page(report, tmp_path, make_step_result):
    lines = JsonLines(tmp_path / "own" / "steps.jsonl", experiment={}, environment={})
    lines.on_step(make_step_result(0, [0, 1]))

    page = report(tmp_path / "own")

    assert "Accuracy along the stream" not in page
    assert "2 samples in 1 steps" in page


def test_a_run_before_its_first_step_has_a_page(report, make_run):
    page = report(make_run(steps=0, finished=False, pictures=False))

    assert "Accuracy along the stream" not in page


def test_settings_and_environment_are_folded_away(report, make_run):
    page = report(make_run(experiment={"seed": 4, "method": {"name": "tent", "lr": 0.5}}))

    assert "<details>" in page
    assert "<dt>method.lr</dt><dd>0.5</dd>" in page
    assert "<dt>torch</dt><dd>2</dd>" in page


def test_runs_over_different_segments_share_no_bands(report, make_run):
    page = report(make_run("a"), make_run("b", label="other", segments=["sun", "rain"]))

    assert data_of(page)["bands"] == []


def test_a_page_stays_small_whatever_the_pictures_weigh(report, make_run):
    folder = make_run()
    noise = torch.randint(0, 256, (9000,), generator=torch.Generator().manual_seed(0)).tolist()
    heavy = "".join("ABCDEFGHIJKLMNOPQRSTUVWXYZ012345"[value % 32] for value in noise)
    steps = (folder / "steps.jsonl").read_text()
    (folder / "steps.jsonl").write_text(steps.replace('"asked": 8, "rec', '"asked": 408, "rec'))
    with (folder / "pictures.jsonl").open("a") as file:
        for number in range(400):
            line = {"kind": "asked", "step": 9, "sample": f"s{number}", "predicted": 0}
            file.write(json.dumps({**line, "confidence": 0.5, "png": heavy}) + "\n")

    page = report(folder)

    assert len(page.encode()) < THREE_MEGABYTES
    pictures = len(Tags(page).named("img"))
    assert pictures > 100
    assert f": {pictures} of 408 questions, model right on" in page


def test_no_runs_are_refused(tmp_path):
    with pytest.raises(SettingError, match="no runs given"):
        write_report([], tmp_path / "report.html", "Title")


def test_a_folder_that_is_no_run_is_refused_and_leaves_no_page(tmp_path):
    with pytest.raises(StateError, match="Give the folder of a run"):
        write_report([tmp_path], tmp_path / "report.html", "Title")

    assert not (tmp_path / "report.html").exists()
