import csv
import io
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from torch import OutOfMemoryError
from typer.testing import CliRunner

from attakit import __version__
from attakit.build.data import DATA_SETS
from attakit.cli import app, main
from attakit.errors import SettingError
from attakit.methods import METHODS
from attakit.nn import SmallCNN, load_card, save_weights
from attakit.report.jsonlines import STEPS_FILE
from attakit.report.runs import read_run
from attakit.select import SELECTORS
from attakit.settings.experiment import TrainingTable
from attakit.stream.order import ORDERS

EXPERIMENT = """
threads = 1
[stream]
targets = ["outline"]
share = 0.1
batch_size = 20
[method]
name = "source_only"
[report]
source_every = 0
post_adaptation = false
"""


@pytest.fixture
def work(tmp_path, monkeypatch):
    """An empty folder to work in, with one experiment file."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "experiment.toml").write_text(EXPERIMENT)
    return tmp_path


def call(*arguments, given=None):
    """Run a command that should succeed; return what it printed."""
    result = CliRunner().invoke(app, [str(argument) for argument in arguments], input=given)
    if result.exception is not None:
        raise result.exception
    return result


def run_main(monkeypatch, capsys, *arguments):
    """Run a command as the program does; return exit code and standard error."""
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.setenv("THP_MEM_ALLOC_ENABLE", "0")  # the program sets it for its own process
    monkeypatch.setattr(sys, "argv", ["attakit", *[str(argument) for argument in arguments]])
    with pytest.raises(SystemExit) as caught:
        main()
    told = capsys.readouterr()
    assert told.out == ""
    return caught.value.code, told.err


@pytest.fixture
def finished(work, quick_digits):
    """A folder with two finished runs."""
    for name in ("source_only", "batch_norm"):
        call(
            "run",
            "experiment.toml",
            "-q",
            "--set",
            f"method.name={name}",
            "--set",
            f"report.folder=runs/{name}",
        )
    return work / "runs"


PAGES = """
import os, sys
sys.argv = ["attakit", "--version"]
from attakit.cli.program import main
try:
    main()
except SystemExit:
    print(os.environ["THP_MEM_ALLOC_ENABLE"])
"""


@pytest.mark.parametrize(("given", "used"), [(None, "1"), ("0", "0")])
def test_the_program_asks_for_large_pages_unless_told_not_to(monkeypatch, given, used):
    monkeypatch.delenv("THP_MEM_ALLOC_ENABLE", raising=False)
    if given is not None:
        monkeypatch.setenv("THP_MEM_ALLOC_ENABLE", given)

    printed = subprocess.run(
        [sys.executable, "-c", PAGES], capture_output=True, text=True, check=True
    ).stdout

    assert printed.splitlines()[-1] == used


def test_the_version_is_told():
    assert call("--version").stdout == f"attakit {__version__}\n"


def test_without_a_command_help_is_shown():
    result = CliRunner().invoke(app, [])
    for command in ("demo", "pretrain", "run", "table", "report", "list"):
        assert command in result.output


def test_list_names_every_part_in_one_line():
    lines = call("list").stdout.splitlines()
    for name in [*METHODS, *SELECTORS, *DATA_SETS, *ORDERS]:
        assert sum(line.split()[0] == name for line in lines) >= 1


def test_list_as_json():
    parts = json.loads(call("list", "--json").stdout)
    assert parts.keys() == {"methods", "selectors", "data_sets", "orders"}
    assert parts["methods"].keys() == METHODS.keys()
    assert parts["selectors"].keys() == SELECTORS.keys()
    assert parts["data_sets"].keys() == DATA_SETS.keys()
    assert parts["orders"].keys() == ORDERS.keys()
    assert all(line and "\n" not in line for part in parts.values() for line in part.values())


def test_run_prints_a_table_and_where_the_results_are(work, quick_digits):
    out = call("run", "experiment.toml", "--set", "report.folder=here").stdout
    assert "source_only" in out
    assert "Results: here" in out
    assert read_run(work / "here").is_finished


def test_run_as_json_prints_one_object(work, quick_digits):
    told = json.loads(call("run", "experiment.toml", "--json").stdout)
    assert told.pop("folder") == "runs/run"
    assert {"kind": "end", **told} == read_run(work / "runs/run").end
    assert 0 <= told["stream_accuracy"] <= 100


def test_run_quietly_prints_nothing(work, quick_digits):
    result = call("run", "experiment.toml", "--quiet")
    assert (result.stdout, result.stderr) == ("", "")


def test_run_shows_progress_on_standard_error(work, quick_digits):
    assert "4/4" in call("run", "experiment.toml").stderr


def test_run_takes_settings_from_the_command_line(work, quick_digits):
    call(
        "run",
        "experiment.toml",
        "-q",
        "--set",
        "method.name=tent",
        "--set",
        "method.lr=0.5",
        "--set",
        "seed=9",
    )
    settings = read_run(work / "runs/run").experiment
    assert (settings["seed"], settings["method"]["lr"]) == (9, 0.5)


def test_a_finished_run_is_told_again_when_resumed(work, quick_digits):
    first = json.loads(call("run", "experiment.toml", "--json").stdout)
    assert json.loads(call("run", "experiment.toml", "--json", "--resume").stdout) == first


def test_run_replaces_on_request(work, quick_digits):
    call("run", "experiment.toml", "-q")
    call("run", "experiment.toml", "-q", "--replace", "--set", "seed=4")
    assert read_run(work / "runs/run").seed == 4


def test_a_missing_source_model_is_trained_with_a_bar(work, quick_digits, monkeypatch):
    monkeypatch.setenv("ATTAKIT_CACHE", str(work / "cache"))
    short = TrainingTable(updates=2, batch_size=8)
    monkeypatch.setattr("attakit.build.models.DIGITS_TRAINING", short)
    monkeypatch.setattr("attakit.cli.bars.SOURCE_UPDATES", 2)
    assert "source model" in call("run", "experiment.toml").stderr
    assert "source model" not in call("run", "experiment.toml", "--replace").stderr


def test_a_person_answers_from_the_keyboard(work, quick_digits):
    options = [
        "--oracle",
        "ask",
        "--json",
        "--set",
        "method.name=simatta",
        "--set",
        "labels.budget=3",
        "--set",
        "method.high_entropy_bound=0.0",
    ]
    result = call("run", "experiment.toml", *options, given="7\n\n3\n0\n")
    assert json.loads(result.stdout)["labels"] == 3
    assert json.loads(result.stdout)["asked"] == 4
    assert "Which class is outline/" in result.stderr


def test_a_run_reports_the_gain_of_its_labels_where_there_are_runs_to_compare_with(
    work, quick_digits
):
    def run(name, *options):
        folder = f'report.folder="runs/{name}"'
        options = ["--set", f"method.name={name}", "--set", folder, *options]
        return call("run", "experiment.toml", *options)

    alone = run("source_only").stdout
    asked = json.loads(run("simatta", "--json").stdout)
    again = run("simatta", "--replace").stdout

    assert "labels" not in alone.split("Accuracy in percent")[1]
    assert "without labels source_only is at" in asked["label_gain"]
    assert "without labels source_only is at" in " ".join(again.split())


def test_when_the_keyboard_falls_silent_the_run_goes_on(work, quick_digits):
    options = ["--oracle", "ask", "--json", "--set", "method.name=simatta"]
    result = call("run", "experiment.toml", *options, given="7\n")
    assert json.loads(result.stdout)["labels"] == 1
    assert "No more input" in result.stderr


@pytest.mark.parametrize("form", ["rich", "markdown", "csv", "latex"])
def test_a_table_is_made_in_every_form(finished, form):
    out = call("table", finished, "--format", form).stdout
    assert "batch" in out
    assert "source" in out
    if form == "csv":
        rows = list(csv.DictReader(io.StringIO(out)))
        assert len(rows) == 2
    if form == "markdown":
        assert sum(line.startswith("|") for line in out.splitlines()) == 4


def test_a_table_as_json(finished):
    (only,) = json.loads(call("table", finished, "--json").stdout)["tables"]
    rows = only["rows"]
    assert (only["title"], only["notes"]) == (None, [])
    assert {row["label"] for row in rows} == {"source_only", "batch_norm"}
    assert all(0 <= row["stream"]["mean"] <= 100 for row in rows)


def test_a_table_takes_single_runs_and_each_once(finished):
    folder = finished / "batch_norm"
    (only,) = json.loads(call("table", folder, folder, finished, "--json").stdout)["tables"]
    rows = only["rows"]
    assert [(row["label"], row["runs"]) for row in rows] == [("batch_norm", 1), ("source_only", 1)]


def test_a_report_is_one_file(finished, work):
    out = call(
        "report", finished, "--out", work / "deep" / "page.html", "--title", "My <title>"
    ).stdout
    page = (work / "deep" / "page.html").read_text()
    assert "page.html" in out
    assert "My &lt;title&gt;" in page
    assert "batch_norm" in page


def test_a_report_is_told_as_json_or_not_at_all(finished, work):
    arguments = ["report", finished, "--out", work / "page.html"]
    assert json.loads(call(*arguments, "--json").stdout) == {"report": str(work / "page.html")}
    assert call(*arguments, "--quiet").stdout == ""


def test_pretraining_writes_the_weights_that_a_run_takes(work, image_tree):
    (work / "source.toml").write_text(
        f'[stream]\nname = "folders"\nroot = "{image_tree}"\nsource = "photo"\nsize = 16\n'
        "batch_size = 8\n"
        '[training]\nupdates = 20\nlr = 0.01\nnorm = "running"\nvalidate_every = 10\n'
        'weights = "models/photo.safetensors"\n[method]\nname = "tent"\n'
    )
    told = json.loads(call("pretrain", "source.toml", "--json").stdout)
    assert told["weights"] == "models/photo.safetensors"
    assert 0 <= told["held_out_accuracy"] <= 100
    options = ["--set", "model.weights=models/photo.safetensors"]
    end = json.loads(call("run", "source.toml", "--json", *options).stdout)
    assert end["segments"].keys() == {"sculpture", "sketch"}
    assert end["source_accuracy"] == pytest.approx(told["held_out_accuracy"])


def test_the_card_that_pretraining_writes_is_the_one_that_card_makes(work, quick_digits):
    options = ["--set", "training.updates=1", "--set", "training.weights=here.safetensors"]
    call("pretrain", "experiment.toml", "-q", *options)
    written = Path("here.card.safetensors").read_bytes()
    Path("here.card.safetensors").unlink()
    chosen = ["--set", "model.weights=here.safetensors"]
    assert json.loads(call("card", "experiment.toml", "--json", *chosen).stdout) == {
        "card": "here.card.safetensors"
    }
    assert Path("here.card.safetensors").read_bytes() == written
    method = ["--set", "method.name=anchor_head"]
    card = ["--set", "method.source_card=here.card.safetensors"]
    assert json.loads(call("run", "experiment.toml", "--json", *chosen, *method, *card).stdout)


def test_a_card_describes_a_folder_of_images(work, image_tree):
    save_weights(SmallCNN(classes=2, channels=3), "photo.safetensors")
    (work / "source.toml").write_text(
        f'[stream]\nname = "folders"\nroot = "{image_tree}"\nsource = "photo"\nsize = 16\n'
        '[model]\nweights = "photo.safetensors"\n'
    )
    assert call("card", "source.toml").stdout == "Wrote photo.card.safetensors.\n"
    assert load_card("photo.card.safetensors").layer == "block3.0"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("stream.source=foto", "Did you mean 'photo'?"),
        ("stream.root=nowhere", "There is no folder nowhere"),
        ("model.weights=lost.safetensors", "there is no file lost.safetensors"),
        ("model.name=small_mlp", "small_mlp does not take images"),
    ],
)
def test_a_card_that_cannot_be_made_says_why_in_one_line(
    work, image_tree, monkeypatch, capsys, change, message
):
    (work / "source.toml").write_text(
        f'[stream]\nname = "folders"\nroot = "{image_tree}"\nsource = "photo"\nsize = 16\n'
        '[model]\nweights = "photo.safetensors"\n'
    )
    code, told = run_main(monkeypatch, capsys, "card", "source.toml", "--set", change)
    assert code == 2
    assert message in told
    assert told.count("\n") == 1


def test_pretraining_tells_where_the_weights_are(work, quick_digits):
    options = ["--set", "training.updates=1", "--set", "training.weights=here.safetensors"]
    out = call("pretrain", "experiment.toml", *options).stdout
    assert "Wrote here.safetensors (" in out
    assert "% on held-out source samples" in out
    assert call("pretrain", "experiment.toml", "-q", *options).stdout == ""


def test_a_method_is_found_in_the_folder_one_works_in(work, quick_digits, monkeypatch, capsys):
    (work / "my_own_method.py").write_text(
        "from attakit.methods import BaseMethod\n\n\nclass Mine(BaseMethod):\n    pass\n"
    )
    arguments = ["run", "experiment.toml", "-q", "--set", "method.name=my_own_method:Mine"]
    assert run_main(monkeypatch, capsys, *arguments) == (0, "")
    assert read_run(work / "runs/run").label == "my_own_method:Mine"
    del sys.modules["my_own_method"]


WRONG = {
    "unknown method": (
        ["run", "experiment.toml", "--set", "method.name=tentt"],
        "Did you mean 'tent'",
    ),
    "unknown key": (
        ["run", "experiment.toml", "--set", "stream.bach_size=1"],
        "Did you mean 'batch_size'",
    ),
    "unknown setting": (
        ["run", "experiment.toml", "--set", "method.lr=1"],
        "SourceOnly: unknown setting",
    ),
    "wrong type": (["run", "experiment.toml", "--set", "seed=one"], "seed must be a whole number"),
    "no such file": (["run", "nowhere.toml"], "no experiment file at nowhere.toml"),
    "unknown data set": (
        ["run", "experiment.toml", "--set", "stream.name=digit"],
        "Did you mean 'digits'",
    ),
    "missing data": (["run", "experiment.toml", "--set", "stream.name=pacs"], "stream.root"),
    "unknown oracle": (
        ["run", "experiment.toml", "--oracle", "friend"],
        "'known', 'ask', 'model' or 'crowd'",
    ),
    "nothing to resume": (["run", "experiment.toml", "--resume"], "no run in runs/run to resume"),
    "no weights": (["run", "experiment.toml", "--set", "model.name=resnet18"], "attakit pretrain"),
    "no runs": (["table", "."], "holds no run"),
    "no folder": (["report", "nowhere"], "There is no folder nowhere"),
    "pretrain nowhere": (["pretrain", "nowhere.toml"], "no experiment file"),
    "malformed override": (
        ["run", "experiment.toml", "--set", "seed"],
        "--set takes table.name=value",
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_mistake_ends_in_one_line_and_exit_code_2(work, quick_digits, monkeypatch, capsys, name):
    monkeypatch.delenv("ATTAKIT_DATA", raising=False)
    arguments, message = WRONG[name]
    code, errors = run_main(monkeypatch, capsys, *arguments)
    assert code == 2
    assert errors.startswith("Error: ")
    assert message in errors
    assert errors.count("\n") == 1


def test_a_damaged_run_ends_in_one_line(work, monkeypatch, capsys):
    (work / STEPS_FILE).write_text("no json\n")
    code, errors = run_main(monkeypatch, capsys, "table", ".")
    assert (code, errors.count("\n")) == (2, 1)
    assert "not a JSON object" in errors


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (
            OSError(28, "No space left on device"),
            "No space left on device. Free some space and run the command again.",
        ),
        (OutOfMemoryError("CUDA out of memory.\nTried …"), "CUDA out of memory. Lower stream."),
    ],
)
def test_trouble_of_the_machine_ends_in_one_line(work, monkeypatch, capsys, error, told):
    def fail(*_, **__):
        raise error

    monkeypatch.setattr("attakit.cli.run.run_experiment", fail)
    code, errors = run_main(monkeypatch, capsys, "run", "experiment.toml", "-q")
    assert (code, errors.count("\n")) == (2, 1)
    assert errors.startswith(f"Error: {told}")


def test_an_unknown_option_ends_in_exit_code_2(work, monkeypatch, capsys):
    code, errors = run_main(monkeypatch, capsys, "run", "experiment.toml", "--unknown")
    assert code == 2
    assert "No such option" in errors
    assert "Traceback" not in errors


@pytest.mark.parametrize("command", ["demo", "pretrain", "run"])
def test_ctrl_c_before_the_first_step_ends_with_its_exit_code(
    work, quick_digits, monkeypatch, capsys, command
):
    def press(*_, **__):
        raise KeyboardInterrupt

    for name in ("demo.prepare_demo", "pretrain.pretrain_source", "run.run_experiment"):
        monkeypatch.setattr(f"attakit.cli.{name}", press)
    arguments = [] if command == "demo" else ["experiment.toml"]
    code, errors = run_main(monkeypatch, capsys, command, "-q", *arguments)
    assert code == 130
    assert errors.startswith("Stopped")


DEMO_METHODS = {"source only", "batch norm", "tent", "anchor head", "simatta", "random labels"}


@pytest.fixture
def quick_demo(work, quick_digits, monkeypatch):
    """The demo in this process: others would read the digits again."""
    monkeypatch.setattr("attakit.processes.pool.default_workers", lambda jobs: 0)
    return ["--seeds", "1", "--share", "0.03"]


def test_the_demo_as_json_is_one_object_with_percentages(work, quick_demo):
    told = json.loads(call("demo", "--json", *quick_demo).stdout)
    assert told.keys() == {"methods", "label_gain", "report"}
    assert told["methods"].keys() == DEMO_METHODS
    asking = ("anchor head", "simatta")
    best = max(asking, key=lambda name: told["methods"][name]["stream_accuracy"])
    assert f"labels {best} is at" in told["label_gain"]
    assert "random labels are at" in told["label_gain"]
    for figures in told["methods"].values():
        assert figures.keys() == {"stream_accuracy", "source_accuracy", "labels", "seconds"}
        assert 10 < figures["stream_accuracy"] <= 100
        assert 50 < figures["source_accuracy"] <= 100
    methods = told["methods"]
    assert methods["random labels"]["labels"] == methods["simatta"]["labels"] > 0
    assert methods["source only"]["labels"] == methods["tent"]["labels"] == 0
    assert (work / "runs/demo/report.html").samefile(told["report"])
    shown = call("table", "runs/demo", "--format", "markdown").stdout
    assert all(name in shown for name in DEMO_METHODS)


def test_the_demo_ends_with_a_table_and_the_path_of_the_report(work, quick_demo):
    result = call("demo", "--folder", "here", *quick_demo)
    assert all(name in result.stdout for name in DEMO_METHODS)
    assert f"Report: {work / 'here' / 'report.html'}" in result.stdout
    sentence = "random labels are at"
    assert sentence in " ".join(result.stdout.split())
    assert sentence in (work / "here/report.html").read_text(encoding="utf-8")
    assert sentence in call("table", "here", "--format", "csv").stderr
    assert "6/6" in result.stderr
    result = call("demo", "--folder", "here", "--quiet", *quick_demo)
    assert (result.stdout, result.stderr) == ("", "")


def test_the_demo_gives_up_when_a_run_fails(work, quick_demo, monkeypatch, capsys):
    def fail_at_tent(experiment, **options):
        raise SettingError(f"no {experiment.label} today")

    monkeypatch.setattr("attakit.bench.demo.run_experiment", fail_at_tent)
    code, errors = run_main(monkeypatch, capsys, "demo", "--quiet", *quick_demo)
    assert code == 2
    assert "today" in errors


def die(_job):
    os.kill(os.getpid(), signal.SIGKILL)


def test_the_demo_says_so_when_a_process_is_killed(work, quick_digits, monkeypatch, capsys):
    monkeypatch.setattr("attakit.bench.demo._run_chain", die)
    code, errors = run_main(monkeypatch, capsys, "demo", "--quiet", "--seeds", "1")
    assert code == 2
    assert "was killed from outside" in errors
