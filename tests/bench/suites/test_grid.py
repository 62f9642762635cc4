import json
import shutil
import signal
import threading
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch import nn

from attakit.bench.run_folder import DONE, SNAPSHOT
from attakit.bench.suites.cells import FAILED, cell_state, differences, expand
from attakit.bench.suites.grid import Grid, with_partners
from attakit.bench.suites.sources import SourceModel, prepare_sources
from attakit.bench.suites.work import BETWEEN_STEPS, CellEnd, CellProgress, CellResult, do_job
from attakit.errors import SettingError, StateError, StreamError, UnknownName
from attakit.nn.seeding import seeded
from attakit.report.jsonlines import STEPS_FILE
from attakit.report.runs import INAPPLICABLE_FILE, read_run
from attakit.settings.experiment import MethodTable
from attakit.settings.suite import load_suite

REPOSITORY = Path(__file__).parents[3]


class Inline:
    """A workplace in this process, one job at a time, which notes what was started."""

    def __init__(self, *, lose=(), stop_at=None):
        self.jobs, self.waiting = [], []
        self.lose = list(lose)
        self.stop_at = stop_at
        self.was_stopped = False

    @property
    def has_room(self):
        return not self.waiting

    @property
    def started(self):
        return [job.cell for job in self.jobs]

    def start(self, job):
        self.jobs.append(job)
        self.waiting.append(job)

    def wait(self, seconds):
        if not self.waiting:
            return []
        job, events = self.waiting.pop(), []
        if job.cell in self.lose:
            self.lose.remove(job.cell)
            return [CellEnd(job.cell, CellResult("lost", "killed"))]

        def tell(step):
            events.append(step)
            if (job.cell, step.done) == self.stop_at:
                signal.raise_signal(signal.SIGINT)

        outcome = do_job(job, tell)
        return [*events, CellEnd(job.cell, outcome)]

    def stop(self):
        self.was_stopped = True


def run(cells, *, restart=False, threads=1, **options):
    """Run cells here; return the workplace and what became of each."""
    executor = Inline(**options)
    grid = Grid(cells, prepare_sources(cells), restart=restart, threads=threads)
    grid.run(executor)
    return executor, {name: end for name, (end, _) in grid.outcomes.items()}


@pytest.fixture(autouse=True)
def _quick(quick_digits):
    """All of these run on digits."""


ROW = "domain_after_domain"


def without_norm():
    """A classifier of digits without any norm layer."""
    with seeded(0, "a model of a test"):
        return nn.Sequential(nn.Flatten(), nn.Linear(784, 16), nn.ReLU(), nn.Linear(16, 10))


@pytest.fixture
def no_norm(tmp_path):
    """The model table of a suite whose model has no norm layers."""
    torch.save(without_norm().state_dict(), tmp_path / "no-norm.pth")
    return {"name": f"{__name__}:without_norm", "weights": str(tmp_path / "no-norm.pth")}


def test_every_cell_is_run_and_the_next_time_none(small_grid):
    cells = small_grid("Source only", "Tent", seeds=[0, 1])

    first, ends = run(cells)
    again, later = run(cells)

    assert len(first.started) == 4
    assert set(ends.values()) == {"finished"}
    assert again.started == []
    assert set(later.values()) == {"skipped"}
    assert {cell_state(cell) for cell in cells} == {"finished"}


def test_a_cell_that_was_stopped_goes_on_where_it_stopped(small_grid, results, tmp_path):
    (cell,) = small_grid("SimATTA")
    whole = replace(
        cell,
        experiment=cell.experiment.model_copy(
            update={
                "report": cell.experiment.report.model_copy(update={"folder": tmp_path / "whole"})
            }
        ),
    )
    run([whole])

    _, ends = run([cell], stop_at=(cell.name, 3))
    assert ends == {cell.name: "stopped"}
    assert cell_state(cell) == "interrupted"
    assert (cell.folder / SNAPSHOT).exists()
    seen = []
    Grid([cell], prepare_sources([cell])).run(Inline(), callbacks=seen.append)

    steps = [
        event
        for event in seen
        if isinstance(event, CellProgress) and event.note not in BETWEEN_STEPS
    ]
    assert [event.done for event in steps] == [3, 4]
    assert results(cell.folder) == results(whole.folder)


def test_another_number_of_threads_neither_changes_a_cell_nor_the_threads_it_was_begun_with(
    small_grid,
):
    finished, stopped = small_grid("Tent", "SimATTA")
    run([finished, stopped], stop_at=(stopped.name, 2))

    executor, ends = run([finished, stopped], threads=2)

    assert ends == {finished.name: "skipped", stopped.name: "finished"}
    assert [job.experiment.threads for job in executor.jobs] == [1]


def test_threads_of_the_base_count_before_those_of_the_machine(small_grid):
    executor, _ = run(small_grid("Tent", base={"threads": 1}), threads=2)

    assert [job.experiment.threads for job in executor.jobs] == [1]


def test_changed_settings_are_refused_or_run_anew(small_grid):
    cells = small_grid("Tent", "Source only")
    run(cells)
    changed = small_grid("Tent", "Source only", seeds=[0], base={"labels": {"budget": 9}})
    tent = replace(cells[0], experiment=changed[0].experiment)

    assert differences(tent) == ["labels.budget"]
    with pytest.raises(StateError, match=r"tent-0 \(labels\.budget\).*--replace"):
        run([tent, cells[1]])
    executor, ends = run([tent, cells[1]], restart=True)

    assert executor.started == [tent.name]
    assert ends == {tent.name: "finished", cells[1].name: "skipped"}
    assert read_run(tent.folder).experiment["labels"]["budget"] == 9


def test_a_setting_that_is_newer_than_a_finished_run_does_not_change_it(small_grid):
    (cell,) = small_grid("Tent")
    run([cell])
    lines = (cell.folder / STEPS_FILE).read_text(encoding="utf-8").splitlines(keepends=True)
    first = json.loads(lines[0])
    del first["experiment"]["training"]["norm"]
    lines[0] = json.dumps(first) + "\n"
    (cell.folder / STEPS_FILE).write_text("".join(lines), encoding="utf-8")

    assert cell_state(cell) == "finished"


def test_a_setting_that_is_gone_counts_as_a_change(small_grid):
    (cell,) = small_grid("Tent")
    run([cell])
    steps = cell.folder / STEPS_FILE
    text = steps.read_text(encoding="utf-8")
    steps.write_text(text.replace('"held_out":', '"kept_out":', 1), encoding="utf-8")

    assert differences(cell) == ["stream.held_out", "stream.kept_out"]


@pytest.mark.parametrize("name", ["suite", "pool"])
def test_the_results_of_pacs_that_we_keep_are_those_of_its_suites(name, monkeypatch):
    monkeypatch.chdir(REPOSITORY)

    states = {
        cell_state(cell) for cell in expand(load_suite(Path(f"experiments/pacs/{name}.toml")))
    }

    assert states == {"finished"}


def test_another_source_model_counts_as_a_change(small_grid):
    cells = small_grid("Tent")
    run(cells)
    (other,) = (SourceModel(source.file, "other") for source in prepare_sources(cells).values())

    with pytest.raises(StateError, match=r"\(source model\)"):
        Grid(cells, {cells[0].name: other})


def test_the_same_source_model_in_another_file_is_no_change(small_grid, tmp_path):
    (cell,) = small_grid("Tent")
    run([cell])
    (source,) = prepare_sources([cell]).values()
    copied = shutil.copy(source.file, tmp_path / "copy.safetensors")
    moved = cell.experiment.model.model_copy(update={"weights": Path(copied)})
    same = replace(cell, experiment=cell.experiment.model_copy(update={"model": moved}))

    assert cell_state(same, source.fingerprint) == "finished"
    assert cell_state(same, "other") == "changed"


def test_a_matched_cell_waits_for_its_partner_and_gets_as_many_labels(small_grid):
    cells = small_grid("Random", "SimATTA", budgets=[4, 6])

    executor, ends = run(cells)

    assert set(ends.values()) == {"finished"}
    for budget in (4, 6):
        labels = [
            read_run(cells[0].folder.parents[1] / str(budget) / f"{name}-0").end["labels"]
            for name in ("random", "simatta")
        ]
        assert labels[0] == labels[1] > 0
        started = executor.started
        assert started.index(f"{ROW}/{budget}/simatta-0") < started.index(
            f"{ROW}/{budget}/random-0"
        )
    assert run(cells)[0].started == []


def test_a_matched_cell_is_run_anew_when_its_partner_had_other_labels(small_grid):
    cells = small_grid("SimATTA", "Random")
    run(cells)
    fewer = small_grid("SimATTA", "Random", base={"labels": {"budget": 3}})

    _, ends = run(fewer, restart=True)

    assert set(ends.values()) == {"finished"}
    assert {read_run(cell.folder).end["labels"] for cell in fewer} == {3}


def test_a_failed_cell_stops_neither_the_others_nor_the_next_try(small_grid):
    wrong, right = small_grid("Tent", "Source only")
    broken = replace(
        wrong, experiment=wrong.experiment.model_copy(update={"method": _method(lr=-1.0)})
    )

    grid = Grid([broken, right], prepare_sources([broken, right]))
    grid.run(Inline())

    end, outcome = grid.outcomes[broken.name]
    assert end == "failed"
    assert "lr must be" in outcome.message
    assert outcome.message in (broken.folder / FAILED).read_text()
    assert cell_state(broken) == "failed"
    assert grid.outcomes[right.name][0] == "finished"
    assert run([wrong])[1] == {wrong.name: "finished"}
    assert not (wrong.folder / FAILED).exists()


def _method(**settings):
    return MethodTable(name="tent", **settings)


def test_a_fault_of_the_program_fails_its_cell_with_a_traceback(small_grid, monkeypatch):
    def fail(*_, **__):
        raise ZeroDivisionError("division by zero")

    monkeypatch.setattr("attakit.bench.suites.work.run_experiment", fail)
    (cell,) = small_grid("Tent")
    _, ends = run([cell])

    assert ends == {cell.name: "failed"}
    text = (cell.folder / FAILED).read_text()
    assert text.startswith("ZeroDivisionError: division by zero\n")
    assert "Traceback" in text


def test_what_is_matched_to_a_failed_cell_fails_with_it(small_grid):
    partner, matched = small_grid("SimATTA", "Random")
    broken = replace(
        partner, experiment=partner.experiment.model_copy(update={"method": _method(lr=-1.0)})
    )

    executor, ends = run([broken, matched])

    assert ends == {broken.name: "failed", matched.name: "failed"}
    assert executor.started == [broken.name]
    assert f"matched to {broken.name}, which failed" in (matched.folder / FAILED).read_text()


def test_a_cell_whose_process_is_killed_gets_a_second_chance(small_grid):
    once, twice = small_grid("Tent", "Source only")

    executor, ends = run([once, twice], lose=[once.name, twice.name, twice.name])

    assert ends == {once.name: "finished", twice.name: "failed"}
    assert executor.started.count(once.name) == executor.started.count(twice.name) == 2
    assert (twice.folder / FAILED).read_text() == "killed\n"


def test_when_asked_to_stop_nothing_new_is_started(small_grid):
    cells = small_grid("Tent", seeds=[0, 1, 2])
    stop, executor = threading.Event(), Inline()
    grid = Grid(cells, prepare_sources(cells))

    grid.run(executor, callbacks=lambda event: stop.set(), stop=stop)

    assert executor.was_stopped
    assert executor.started == [cells[0].name]


def test_a_cell_killed_before_its_first_line_begins_anew(small_grid):
    (cell,) = small_grid("Tent")
    cell.folder.mkdir(parents=True)
    (cell.folder / STEPS_FILE).write_bytes(b"")

    assert cell_state(cell) == "new"
    assert run([cell])[1] == {cell.name: "finished"}


def test_damaged_results_are_not_thrown_away_unasked(small_grid):
    (cell,) = small_grid("Tent")
    run([cell])
    (cell.folder / STEPS_FILE).write_text("no json\n")

    with pytest.raises(StateError, match="damaged results"):
        run([cell])
    assert run([cell], restart=True)[1] == {cell.name: "finished"}
    assert (cell.folder / DONE).exists()


def test_a_cell_whose_folder_cannot_be_made_fails_alone(small_grid):
    blocked, free = small_grid("Tent", "Source only")
    blocked.folder.parent.mkdir(parents=True)
    blocked.folder.write_text("a file")

    _, ends = run([blocked, free])

    assert ends == {blocked.name: "failed", free.name: "finished"}


def test_choosing_a_matched_cell_chooses_its_partner(small_grid):
    cells = small_grid("Tent", "SimATTA", "Random")

    assert with_partners(cells[2:], cells) == cells[1:]
    assert with_partners(cells[:1], cells) == cells[:1]


def test_cells_share_their_source_model(small_grid, model_cache):
    found = prepare_sources(small_grid("Tent", "SimATTA", seeds=[0, 1]))

    assert len(found) == 4
    (source,) = set(found.values())
    assert source.file.parent == model_cache
    assert source.file.exists()


def test_missing_weights_are_named_with_the_command_that_makes_them(small_grid):
    cells = small_grid("Tent", base={"model": {"weights": "nowhere/model.safetensors"}})

    with pytest.raises(SettingError, match=r"nowhere/model\.safetensors.*attakit pretrain"):
        prepare_sources(cells)


def test_an_unknown_model_is_named_before_its_missing_weights(small_grid):
    model = {"name": "resnet19", "weights": "nowhere/model.safetensors"}

    with pytest.raises(UnknownName, match=r"Unknown model 'resnet19'\. Did you mean"):
        prepare_sources(small_grid("Tent", base={"model": model}))


def test_a_matched_cell_whose_labels_cannot_be_spread_fails_alone(small_grid):
    partner, matched, free = small_grid("SimATTA", "Random", "Tent")
    tiny = matched.experiment.stream.model_copy(update={"share": 0.001})
    small = replace(matched, experiment=matched.experiment.model_copy(update={"stream": tiny}))

    grid = Grid([partner, small, free], prepare_sources([partner, small, free]))
    grid.run(Inline())

    end, outcome = grid.outcomes[small.name]
    assert end == "failed"
    assert "match: the other method got 6 labels, but this stream has only" in outcome.message
    assert outcome.message in (small.folder / FAILED).read_text()
    assert {grid.outcomes[cell.name][0] for cell in (partner, free)} == {"finished"}


def test_a_method_that_needs_norm_layers_does_not_apply_to_a_model_without_any(small_grid, no_norm):
    cells = small_grid("Tent", "Source only", "SimATTA", base={"model": no_norm})
    tent = cells[0]

    _, ends = run(cells)

    assert [ends[cell.name] for cell in cells] == ["inapplicable", "finished", "finished"]
    assert cell_state(tent) == "inapplicable"
    assert not (tent.folder / FAILED).exists()
    record = read_run(tent.folder)
    assert (record.label, record.steps, record.end) == ("Tent", [], None)
    assert "has no normalisation layers" in record.inapplicable
    assert run(cells)[1][tent.name] == "inapplicable"


def test_a_cell_that_comes_to_apply_loses_its_mark(small_grid, no_norm):
    (without,) = small_grid("Tent", base={"model": no_norm})
    (with_norm,) = small_grid("Tent")
    run([without])

    _, ends = run([with_norm])

    assert ends == {with_norm.name: "finished"}
    assert not (with_norm.folder / INAPPLICABLE_FILE).exists()


def test_a_cell_that_is_matched_to_one_that_does_not_apply_does_not_apply_either(
    small_grid, no_norm
):
    partner, matched = small_grid("SimATTA", "Random", base={"model": no_norm})
    norm = MethodTable(name="simatta", trainable="norm", label="SimATTA")
    partner = replace(partner, experiment=partner.experiment.model_copy(update={"method": norm}))

    grid = Grid([partner, matched], prepare_sources([partner, matched]))
    grid.run(Inline())

    assert {end for end, _ in grid.outcomes.values()} == {"inapplicable"}
    assert "which does not apply" in grid.outcomes[matched.name][1].message


MISSING = [{"label": "here"}, {"label": "gone", "name": "pacs", "root": "nowhere", "targets": []}]


def test_cells_whose_data_are_missing_fail_and_the_others_run(small_grid):
    cells = small_grid("Tent", "SimATTA", "Random", streams=MISSING)

    grid = Grid(cells, prepare_sources(cells))
    grid.run(Inline())

    ends = {name: (end, outcome.message) for name, (end, outcome) in grid.outcomes.items()}
    assert {end for name, (end, _) in ends.items() if name.startswith("here")} == {"finished"}
    gone = {told for name, told in ends.items() if name.startswith("gone")}
    ((end, message),) = gone
    assert end == "failed"
    assert message.startswith("There is no folder nowhere for the data set 'pacs'.")


def test_a_finished_cell_stays_finished_when_its_data_are_gone(small_grid):
    cells = small_grid("SimATTA", "Random")
    run(cells)

    grid = Grid(cells, {cell.name: StreamError("no data") for cell in cells})
    grid.run(Inline())

    assert {end for end, _ in grid.outcomes.values()} == {"skipped"}
