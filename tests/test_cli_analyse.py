import json

import pytest
from typer.testing import CliRunner

from attakit.bench.run import run_experiment
from attakit.cli import app
from attakit.errors import SettingError
from attakit.report.jsonlines import STEPS_FILE


def call(*arguments):
    result = CliRunner().invoke(app, ["analyse", *[str(argument) for argument in arguments]])
    if result.exception is not None:
        raise result.exception
    return result


@pytest.fixture
def folder(small_run):
    """A finished run of a few steps with features."""
    experiment = small_run(
        stream={"targets": ["outline"], "share": 0.1, "batch_size": 30},
        method={"low_entropy_bound": 0.5, "trainer": {"max_updates": 3}},
    )
    report = experiment.report.model_copy(update={"features": True})
    run_experiment(experiment.model_copy(update={"report": report}))
    return report.folder


def test_analyse_prints_a_table_words_and_where_the_page_is(folder):
    told = call(folder, "--steps", 2)

    assert "source-like set is source-like:" in told.stdout
    assert "w₀*" in told.stdout
    assert f"Page: {folder / 'analysis.html'}" in told.stdout
    assert "2/2" in told.stderr


def test_analyse_as_json_prints_one_object_even_of_a_live_run(folder, tmp_path):
    lines = (folder / STEPS_FILE).read_bytes().splitlines(keepends=True)
    (folder / STEPS_FILE).write_bytes(b"".join(lines[:2]) + lines[2][:40])
    page = tmp_path / "page.html"

    told = json.loads(call(folder, "--json", "--hypotheses", "linear", "--out", page).stdout)

    assert not told["is_finished"]
    assert [step["step"] for step in told["steps"]] == [0]
    assert 0 <= told["steps"][0]["distances"]["source_stream"]["value"] <= 2
    assert told["page"] == str(page)
    assert page.exists()


def test_analyse_quietly_prints_nothing(folder):
    told = call(folder, "-q", "--steps", 1)

    assert (told.stdout, told.stderr) == ("", "")
    assert (folder / "analysis.html").exists()


def test_a_folder_of_several_runs_is_refused(tmp_path):
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        (tmp_path / name / STEPS_FILE).touch()

    with pytest.raises(SettingError, match=r"holds 2 runs.* Name one, such as .*one"):
        call(tmp_path)
