"""What a cluster needs, and suites on a real one of two Ray nodes on this machine."""

import socket
import sys
import threading
from pathlib import Path

import pytest

from attakit.bench.run_folder import RUN_FILES
from attakit.bench.suites.cells import cell_state
from attakit.bench.suites.grid import Grid
from attakit.bench.suites.ray_executor import RayExecutor, read_files, write_files
from attakit.bench.suites.sources import prepare_sources
from attakit.bench.suites.work import CellEnd, CellProgress, do_job
from attakit.errors import MissingExtra, SettingError
from attakit.processes.ray_cluster import ADDRESS_VARIABLE, check_answers
from attakit.report.runs import read_run


def test_files_come_as_they_went_and_old_ones_go(tmp_path):
    one, other = tmp_path / "one", tmp_path / "other"
    write_files(one, {"steps.jsonl": b"a", "done": b""})
    write_files(other, {"steps.jsonl": b"b", "snapshot.safetensors": b"c"})
    (other / "notes.txt").write_text("mine")

    write_files(other, read_files(one))

    assert read_files(other) == {"steps.jsonl": b"a", "done": b""}
    assert (other / "notes.txt").read_text() == "mine"


def test_every_file_that_a_run_may_write_comes_home(tmp_path):
    for name in RUN_FILES:
        (tmp_path / name).write_bytes(b"x")

    assert set(read_files(tmp_path)) == set(RUN_FILES)


def test_a_missing_ray_is_named_with_the_way_to_get_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)

    with pytest.raises(MissingExtra, match=r"pip install 'attakit\[ray\]'"):
        RayExecutor({})


@pytest.fixture
def listening():
    """The address of somebody who listens on this machine."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield f"127.0.0.1:{server.getsockname()[1]}"


@pytest.mark.parametrize("form", ["{}", "ray://{}"])
def test_an_address_where_somebody_listens_is_accepted(listening, form):
    check_answers(form.format(listening))


@pytest.mark.parametrize("word", ["auto", "local", "nonsense"])
def test_words_are_left_to_ray(word):
    check_answers(word)


@pytest.mark.parametrize("address", ["127.0.0.1:1", "ray://127.0.0.1:1", "127.0.0.1:99999"])
def test_an_address_where_nobody_listens_is_refused_at_once(address):
    with pytest.raises(SettingError, match=r"--ray: no cluster answers at .*`ray start --head`"):
        check_answers(address)


class Refusing:
    """Stands for Ray, which says no in one of its ways."""

    def __init__(self, error):
        self.error = error

    def is_initialized(self):
        return False

    def init(self, **_):
        raise self.error


@pytest.mark.parametrize("kind", [ValueError, ConnectionError, RuntimeError])
def test_what_ray_refuses_ends_in_one_line(monkeypatch, kind):
    refusing = Refusing(kind("Invalid address format: nonsense\nand much more"))
    monkeypatch.setitem(sys.modules, "ray", refusing)

    with (
        pytest.raises(SettingError, match=r"--ray: no cluster answers at nonsense") as caught,
        RayExecutor({}, address="nonsense"),
    ):
        pass

    assert "\n" not in str(caught.value)


def test_a_cluster_that_cannot_be_started_here_is_told_without_an_address(monkeypatch):
    monkeypatch.delenv(ADDRESS_VARIABLE, raising=False)
    monkeypatch.setitem(sys.modules, "ray", Refusing(RuntimeError("no room")))

    with (
        pytest.raises(SettingError, match=r"could not start one \(no room\)"),
        RayExecutor({}),
    ):
        pass


def test_the_address_in_the_environment_is_tried_too(monkeypatch):
    monkeypatch.setenv(ADDRESS_VARIABLE, "127.0.0.1:1")
    monkeypatch.setitem(sys.modules, "ray", Refusing(AssertionError("not asked")))

    with pytest.raises(SettingError, match=r"127\.0\.0\.1:1"), RayExecutor({}):
        pass


@pytest.fixture
def cluster(monkeypatch, quick_digits):
    """A head without room for tasks, where the test runs, and one node; the test may add more."""
    import ray  # noqa: PLC0415, takes seconds that only tests on a cluster should pay
    from ray.cluster_utils import Cluster  # noqa: PLC0415

    source = Path(__file__).parents[3] / "src"
    monkeypatch.setenv("PYTHONPATH", str(source))
    # By default tasks give way to everything else, so on a busy machine they would take for ever.
    monkeypatch.setenv("RAY_worker_niceness", "0")
    found = Cluster(initialize_head=True, head_node_args={"num_cpus": 0})
    found.add_node(num_cpus=1)
    found.wait_for_nodes()
    ray.init(address=found.address, log_to_driver=False)
    yield found
    ray.shutdown()
    found.shutdown()


def run_here(cells):
    for cell in cells:
        job = Grid(cells, prepare_sources(cells))._job(cell, restart=False)
        assert do_job(job, lambda step: None).result == "finished"


@pytest.mark.ray
@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # of Ray itself
def test_a_grid_on_two_nodes_of_which_one_is_killed_loses_nothing(cluster, small_grid, results):
    base = {"stream": {"targets": ["outline"], "share": 0.5, "batch_size": 8}}
    cells = small_grid("SimATTA", "Tent", seeds=[0, 1], base=base)[:3]
    doomed = cluster.add_node(num_cpus=1)
    cluster.wait_for_nodes()
    sources, running, killed = prepare_sources(cells), set(), []
    grid = Grid(cells, sources)

    def callbacks(event):
        if isinstance(event, CellProgress) and event.done > 1:
            running.add(event.cell)
        if len(running) == 2 and not killed:
            killed.append(dict.fromkeys(running))
            cluster.remove_node(doomed, allow_graceful=False)
        if isinstance(event, CellEnd):
            running.discard(event.cell)

    with RayExecutor(sources) as executor:
        grid.run(executor, callbacks=callbacks)

    assert len(killed) == 1
    assert {name: end for name, (end, _) in grid.outcomes.items()} == {
        cell.name: "finished" for cell in cells
    }
    found = {cell.name: results(cell.folder) for cell in cells}
    settings = {cell.name: read_run(cell.folder).experiment for cell in cells}
    for cell in cells:
        for path in cell.folder.iterdir():
            path.unlink()
    run_here(cells)
    for cell in cells:
        assert results(cell.folder) == found[cell.name]
        assert read_run(cell.folder).experiment == settings[cell.name]


@pytest.mark.ray
@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # of Ray itself
def test_a_stopped_grid_brings_home_what_was_saved_and_goes_on(cluster, small_grid, results):
    base = {"stream": {"targets": ["outline"], "batch_size": 2}}
    (cell,) = small_grid("SimATTA", base=base)
    sources, stop = prepare_sources([cell]), threading.Event()
    grid = Grid([cell], sources)

    def callbacks(event):
        if isinstance(event, CellProgress) and event.done > 4:
            stop.set()

    with RayExecutor(sources) as executor:
        grid.run(executor, callbacks=callbacks, stop=stop)
    assert grid.outcomes[cell.name][0] == "stopped"
    assert cell_state(cell) == "interrupted"
    began = len(read_run(cell.folder).steps)
    seen = []

    with RayExecutor(sources) as executor:
        Grid([cell], sources).run(executor, callbacks=seen.append)

    assert cell_state(cell) == "finished"
    assert 0 < min(event.done for event in seen if isinstance(event, CellProgress)) <= began
    found = results(cell.folder)
    for path in cell.folder.iterdir():
        path.unlink()
    run_here([cell])
    assert results(cell.folder) == found
