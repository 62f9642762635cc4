"""`attakit bench` as a user meets it."""

import json
import signal
import subprocess
import sys
import time

import pytest
import torch
from torch import nn
from typer.testing import CliRunner

from attakit.bench.suites.cells import FAILED, SUITE_FILE, cell_state, expand
from attakit.bench.suites.work import CellEnd, do_job
from attakit.cli import app, main
from attakit.errors import SettingError
from attakit.nn import named_model
from attakit.nn.weights import save_weights
from attakit.report.jsonlines import STEPS_FILE
from attakit.report.runs import read_run
from attakit.settings.suite import load_suite

SUITE = """
name = "small"
[base]
threads = 1
[base.stream]
targets = ["outline"]
share = 0.08
batch_size = 16
[base.report]
source_every = 0
save_every = 2
post_adaptation = false
[grid]
seeds = [0, 1]
[[grid.methods]]
label = "Source only"
method = { name = "source_only" }
[[grid.methods]]
label = "Tent"
batch_size = 8
method = { name = "tent" }
"""
LONG = """
name = "long"
[base.stream]
batch_size = 5
[base.report]
source_every = 0
[[grid.methods]]
label = "SimATTA"
method = { trainer = { max_updates = 4 }, selector = { inits = 1 } }
[[grid.methods]]
label = "Tent"
method = { name = "tent", updates = 20 }
"""
MLP = """
from torch import nn

def make():
    return nn.Sequential(nn.Flatten(), nn.Linear(784, 16), nn.ReLU(), nn.Linear(16, 10))
"""
ROW = "results/small/domain_after_domain"
DEADLINE = 180.0


class Here:
    """Stands for a pool of processes, which would have to read the digits again."""

    def __init__(self, *, workers):
        self.jobs = []

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass

    @property
    def has_room(self):
        return not self.jobs

    def start(self, job):
        self.jobs.append(job)

    def wait(self, seconds):
        events = []
        for job in self.jobs:
            outcome = do_job(job, events.append)
            events.append(CellEnd(job.cell, outcome))
        self.jobs = []
        return events


@pytest.fixture
def work(tmp_path, monkeypatch, quick_digits):
    """An empty folder to work in, with one suite file."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("attakit.cli.bench.LocalExecutor", Here)
    (tmp_path / "suite.toml").write_text(SUITE)
    return tmp_path


def call(*arguments, code=0):
    result = CliRunner().invoke(app, ["bench", "suite.toml", *arguments])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert result.exit_code == code
    return result


def test_a_paired_suite_prints_differences_over_all_its_streams(work):
    head, _, methods = SUITE.partition("[[grid.methods]]")
    streams = """
[[grid.streams]]
label = "one"
[[grid.streams]]
label = "two"
targets = ["textured"]
"""
    told = 'layout = "paired"\nagainst = "Source only"\n'
    (work / "suite.toml").write_text(f"{told}{head}{streams}[[grid.methods]]{methods}")
    told = call().stdout
    assert "stream to Source only" in " ".join(told.split())
    assert "Difference to Source only (points)" in told
    assert "to Source only" not in call("--only", "tent").stdout
    assert "to Source only" in CliRunner().invoke(app, ["table", "results/small"]).stdout


def test_a_leaderboard_ranks_the_methods_of_several_suites(work):
    """Two files with one stream each: their folders together are one leaderboard."""
    for name, target in (("first", "outline"), ("second", "textured")):
        text = SUITE.replace('"small"', f'"{name}"').replace('"outline"', f'"{target}"')
        (work / f"{name}.toml").write_text(f'layout = "leaderboard"\n{text}')
    both = ["bench", "first.toml", "second.toml", "--only", "-0"]
    printed = CliRunner().invoke(app, both).stdout
    assert printed.count("average rank") == 2
    listed = json.loads(CliRunner().invoke(app, [*both, "--list", "--json"]).stdout)
    assert [one["suite"] for one in listed["suites"]] == ["first", "second"]
    table = ["table", "results/first", "results/second", "--layout", "leaderboard"]
    assert "Average over 2 streams" in CliRunner().invoke(app, table).stdout
    plot = ["plot", "results", "--kind", "ranks", "--out", "ranks.png"]
    assert CliRunner().invoke(app, plot).exit_code == 0
    assert (work / "ranks.png").stat().st_size > 1000


def test_a_grid_ends_with_tables_and_says_why_they_can_be_compared(work):
    result = call()

    assert "Tent" in result.stdout
    assert "Source only" in result.stdout
    assert "Fair: same model " in result.stdout
    assert "batch size 16 for all; predictions scored before updates." in result.stdout
    assert "Cells: 4 run. Results: results/small" in result.stdout
    assert "4/4" in result.stderr
    assert "4 finished before" in call().stdout


def test_a_grid_as_json_is_one_object(work):
    told = json.loads(call("--json").stdout)

    assert (told["finished"], told["skipped"], told["failed"]) == (4, 0, 0)
    assert told["fairness"]["warnings"] == []
    line = told["cells"][-1]
    run = read_run(work / ROW / "tent-1")
    assert line["folder"] == f"{ROW}/tent-1"
    assert line["model"] == run.environment["model"]
    assert line["stream_order"] == run.environment["stream"]
    assert (line["batch_size"], line["labels"], line["threads"]) == (16, 0, 1)
    assert line["seconds"] > 0
    assert line["peak_memory_mb"] > 0
    assert line["stream_accuracy"] == run.end["stream_accuracy"]


def test_a_grid_leaves_a_list_of_its_cells(work):
    call("--quiet", "--only", "tent-0")

    left = json.loads((work / "results/small" / SUITE_FILE).read_text())
    assert (left["name"], left["layout"], left["paper"], left["protocol"]) == (
        "small",
        "plain",
        None,
        "fair",
    )
    assert len(left["cells"]) == 4
    assert left["cells"][0]["method"] == "Source only"


def test_cells_are_listed_with_their_state(work):
    call("--quiet", "--only", "tent-0")

    lines = dict(reversed(line.split()) for line in call("--list").stdout.splitlines())
    assert lines == {
        "domain_after_domain/source-only-0": "new",
        "domain_after_domain/source-only-1": "new",
        "domain_after_domain/tent-0": "finished",
        "domain_after_domain/tent-1": "new",
    }
    assert json.loads(call("--list", "--json").stdout)["cells"] == lines


def test_a_finished_cell_stays_finished_when_its_source_model_moves(work):
    (was, now), cell = ("was.safetensors", "now.safetensors"), "domain_after_domain/tent-0"
    model = named_model("small_cnn", classes=10)
    save_weights(model, work / was)
    call("--quiet", "--only", "tent-0", "--set", f"base.model.weights={was}")
    (work / was).rename(work / now)
    listing = ("--list", "--json", "--set", f"base.model.weights={now}")

    assert json.loads(call(*listing).stdout)["cells"][cell] == "finished"
    nn.init.zeros_(next(model.parameters()))
    save_weights(model, work / now)
    assert json.loads(call(*listing).stdout)["cells"][cell] == "changed"


def test_quietly_nothing_is_said(work):
    result = call("--quiet", "--only", "source-only-0")

    assert (result.stdout, result.stderr) == ("", "")


def test_the_protocol_of_the_paper_is_a_switch(work):
    result = call("--protocol", "paper", "--only", "-0")

    assert "batch size 8 for Tent, 16 for Source only, as in the paper" in result.stdout
    run = read_run(work / "results/small-paper/domain_after_domain/tent-0")
    assert run.experiment["stream"]["batch_size"] == 8


def test_a_failed_cell_is_told_and_the_exit_code_says_so(work):
    suite = work / "suite.toml"
    suite.write_text(SUITE.replace('{ name = "tent" }', '{ name = "tent", lr = 3e38 }'))

    result = call(code=1)

    failed = "domain_after_domain/tent-0, domain_after_domain/tent-1"
    assert "Cells: 2 run, 2 failed." in result.stdout
    assert f"Failed: {failed}: Tent: the loss became" in result.stderr
    assert "the loss became" in (work / ROW / "tent-0" / FAILED).read_text()
    told = json.loads(call("--json", code=1).stdout)
    assert (told["skipped"], told["failed"]) == (2, 2)
    assert "the loss became" in told["cells"][-1]["message"]


def test_cells_that_fail_for_the_same_reason_share_a_line(work):
    streams = '[{label="here"},{label="gone",name="pacs",root="nowhere",targets=[]}]'

    result = call("--set", f"grid.streams={streams}", "--set", "grid.seeds=[0,1]", code=1)

    assert "Cells: 4 run, 4 failed." in result.stdout
    assert result.stderr.count("There is no folder nowhere") == 1
    assert "gone/source-only-0, gone/source-only-1, gone/tent-0 and 1 more: " in result.stderr


def test_a_grid_of_failed_cells_only_is_not_called_fair(work):
    result = call("--set", 'base.stream={name="pacs",root="nowhere"}', code=1)

    assert "Fair" not in result.stdout
    assert "Cells: 4 failed." in result.stdout


def test_a_folder_that_cannot_be_made_is_named(work):
    with pytest.raises(
        SettingError, match=r"folder: suite\.toml cannot be created .*Choose another"
    ):
        call("--set", "folder=suite.toml")


def test_cells_that_cannot_be_compared_are_a_warning(work):
    with (work / "suite.toml").open("a") as suite:
        suite.write('set = { "stream.batch_size" = 4 }\n')

    result = call("--only", "-0")

    assert "Warning: Batch sizes differ: 4 for Tent, 16 for Source only." in result.stderr


def test_changed_settings_need_a_word(work, monkeypatch, capsys):
    call("--quiet", "--only", "-0")
    change = ["--set", "base.labels.budget=3"]
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.setattr(sys, "argv", ["attakit", "bench", "suite.toml", *change])

    with pytest.raises(SystemExit) as caught:
        main()

    assert caught.value.code == 2
    assert "(labels.budget)" in capsys.readouterr().err
    told = json.loads(call("--json", "--replace", "--only", "-0", *change).stdout)
    assert told["finished"] == 2


def test_a_pattern_that_fits_no_cell_is_named(work):
    with pytest.raises(Exception, match=r"--only tant: no cell .*source-only-0"):
        call("--only", "tant")


def test_ctrl_c_saves_every_cell_that_is_running(tmp_path, program_environment, quick_digits):
    (tmp_path / "suite.toml").write_text(LONG)
    command = [sys.executable, "-m", "attakit", "bench", "suite.toml", "--workers", "2", "-q"]
    folders = [tmp_path / "results/long/domain_after_domain" / n for n in ("simatta-0", "tent-0")]
    process = subprocess.Popen(
        command, env=program_environment, cwd=tmp_path, stderr=subprocess.PIPE, text=True
    )
    try:
        deadline = time.monotonic() + DEADLINE
        while not all(_steps(folder) > 1 for folder in folders):
            assert process.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.02)
        process.send_signal(signal.SIGINT)
        errors = process.communicate(timeout=DEADLINE)[1]
    finally:
        process.kill()
        process.communicate()

    assert process.returncode == 130
    assert errors.startswith("Stopped. Running cells are saved.")
    assert "Traceback" not in errors
    for folder in folders:
        assert (folder / "snapshot.safetensors").exists()
        assert not (folder / FAILED).exists()
    cells = expand(load_suite(tmp_path / "suite.toml", [f'folder="{tmp_path}/results/long"']))
    assert [cell_state(cell) for cell in cells] == ["interrupted", "interrupted"]


def _steps(folder):
    file = folder / STEPS_FILE
    return file.read_bytes().count(b"\n") if file.exists() else 0


@pytest.mark.parametrize(
    ("words", "address"),
    [
        (["suite.toml", "--ray"], None),
        (["--ray", "suite.toml"], None),
        (["suite.toml", "--ray", "--quiet"], None),
        (["suite.toml", "--ray", "10.0.0.1:6379"], "10.0.0.1:6379"),
        (["--ray=10.0.0.1:6379", "suite.toml"], "10.0.0.1:6379"),
    ],
)
def test_ray_needs_no_address_and_takes_one(work, monkeypatch, words, address):
    told = []

    class Cluster(Here):
        def __init__(self, sources, *, address):
            super().__init__(workers=1)
            told.append(address)

    monkeypatch.setattr("attakit.cli.bench.RayExecutor", Cluster)

    result = CliRunner().invoke(app, ["bench", *words])

    assert result.exit_code == 0
    assert told == [address]


POOLS = """
name = "pools"
[base.stream]
targets = ["outline"]
share = 0.08
[base.labels]
budget = 4
[base.pool]
rounds = 1
updates = 2
[grid]
[[grid.methods]]
label = "Random"
set = { "pool.selector.name" = "uniform" }
[[grid.methods]]
label = "Entropy"
set = { "pool.selector.name" = "entropy" }
"""


def test_pools_are_compared_like_methods(work):
    (work / "suite.toml").write_text(POOLS)

    told = json.loads(call("--json").stdout)

    assert (told["finished"], told["failed"]) == (2, 0)
    assert [cell["labels"] for cell in told["cells"]] == [4, 4]
    assert [read_run(work / cell["folder"]).label for cell in told["cells"]] == [
        "Random",
        "Entropy",
    ]


def test_a_method_that_does_not_apply_is_shown_as_such_and_is_no_failure(work, monkeypatch):
    monkeypatch.syspath_prepend(str(work))
    (work / "mlp.py").write_text(MLP)
    model = "model = { name = 'mlp:make', weights = 'mlp.pth' }"
    (work / "suite.toml").write_text(SUITE.replace("[base]", f"[base]\n{model}"))
    layers = [nn.Flatten(), nn.Linear(784, 16), nn.ReLU(), nn.Linear(16, 10)]
    torch.save(nn.Sequential(*layers).state_dict(), work / "mlp.pth")

    result = call()
    told = json.loads(call("--json").stdout)
    page = work / "report.html"
    shown = CliRunner().invoke(app, ["table", "results/small", "--format", "markdown"])
    CliRunner().invoke(app, ["report", "results/small", "--out", str(page)])

    assert "Cells: 2 run, 2 not applicable." in result.stdout
    assert "Tent (does not apply)" in result.stdout
    assert "Failed" not in result.stderr
    assert (told["skipped"], told["inapplicable"], told["failed"]) == (2, 2, 0)
    assert "| Tent (does not apply) |" in shown.stdout
    assert "has no normalisation layers" in shown.stdout
    assert "Tent (does not apply)" in page.read_text(encoding="utf-8")
    assert "inapplicable" in call("--list").stdout
