"""The reference file from start to end, on a small stream instead of PACS."""

from attakit.bench.run import run_experiment
from attakit.report.runs import read_run
from attakit.settings.load import load_experiment

SMALL = (
    "stream.name=digits",
    "stream.targets=['outline']",
    "stream.share=0.3",
    "stream.batch_size=100",
    "model.name=small_cnn",
    "method.inits=1",
    "method.max_updates=50",  # the loss of few samples falls for thousands of updates
    "report.source_every=0",
    "report.post_adaptation=false",
)


def test_the_reference_file_runs_to_its_end(pytestconfig, tmp_path, quick_digits):
    file = pytestconfig.rootpath / "experiments" / "reference" / "simatta.toml"
    folder = tmp_path / "run"
    experiment = load_experiment(file, [*SMALL, f"report.folder={folder}"])
    tables = experiment.model_copy(
        update={
            "model": experiment.model.model_copy(update={"weights": None}),
            "stream": experiment.stream.model_copy(update={"size": None}),
        }
    )

    end = run_experiment(tables)

    steps = read_run(folder).steps
    asked = [line["asked"] for line in steps]
    assert asked[0] == 10, "NC(0) clusters ask"
    assert asked == sorted(asked)
    assert end["labels"] == asked[-1] > 10
    assert all(42 <= line["updates"] <= 50 for line in steps)
