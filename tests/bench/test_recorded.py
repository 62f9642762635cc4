import numpy as np

from attakit.bench.run import run_experiment
from attakit.report.features import FEATURES_FILE, read_features
from attakit.settings.experiment import MethodTable


def test_a_run_records_features_of_its_sets_and_is_not_changed_by_it(small_run, results):
    plain = small_run("plain")
    watched = small_run("watched")
    watched = watched.model_copy(
        update={"report": watched.report.model_copy(update={"features": True})}
    )

    run_experiment(plain)
    run_experiment(watched)

    read = read_features(watched.report.folder)
    assert set(read.steps) == set(range(8))
    assert read.steps[7].keys() == {"stream", "low", "high"}
    assert len(read.source) == 500
    assert read.source.shape[1:] == read.steps[0]["stream"].shape[1:]
    assert np.isfinite(read.source).all()
    one, other = results(plain.report.folder), results(watched.report.folder)
    assert one[:2] == other[:2]
    assert set(other[2]) - set(one[2]) == {FEATURES_FILE}


def test_a_method_that_keeps_no_inputs_of_its_anchors_records_the_stream_alone(small_run):
    given = small_run("head")
    watched = given.model_copy(
        update={
            "report": given.report.model_copy(update={"features": True}),
            "method": MethodTable(name="anchor_head"),
        }
    )

    run_experiment(watched)

    assert read_features(watched.report.folder).steps[7].keys() == {"stream"}


def test_a_replaced_run_leaves_no_features_behind(small_run):
    experiment = small_run()
    folder = experiment.report.folder
    folder.mkdir(parents=True)
    (folder / FEATURES_FILE).write_text("old")

    run_experiment(experiment, replace=True)

    assert not (folder / FEATURES_FILE).exists()
