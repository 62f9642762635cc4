from pathlib import Path

import pytest

from attakit.bench.suites.cells import expand
from attakit.errors import SettingError
from attakit.methods import BaseMethod
from attakit.settings.suite import load_suite, parse_suite

TENT = {"label": "Tent (steps=1)", "method": {"name": "tent"}, "batch_size": 16}
SIMATTA = {"label": "SimATTA", "method": {"name": "simatta"}}
RANDOM = {"label": "Random", "method": {"selector": "uniform"}, "match": "SimATTA"}


def suite(*methods, grid=(), **tables):
    return parse_suite({"name": "s", "grid": {"methods": list(methods), **dict(grid)}, **tables})


def named(cells):
    return {cell.name: cell for cell in cells}


def test_streams_budgets_and_seeds_multiply_the_methods():
    grid = {
        "seeds": [0, 1],
        "budgets": [30, 50],
        "streams": [{"label": "domain-wise"}, {"label": "mixed", "order": "random"}],
    }
    cells = named(expand(suite(TENT, SIMATTA, grid=grid)))

    assert len(cells) == 2 * (2 + 2 * 2)
    cell = cells["mixed/50/simatta-1"]
    assert (cell.stream, cell.method, cell.budget, cell.seed) == ("mixed", "SimATTA", 50, 1)
    assert cell.experiment.stream.order == "random"
    assert (cell.experiment.labels.budget, cell.experiment.seed) == (50, 1)
    assert cell.experiment.label == "SimATTA"
    assert str(cell.folder) == "results/s/mixed/50/simatta-1"
    assert cells["domain-wise/tent-steps-1-0"].budget is None


def test_a_method_may_have_fewer_seeds_and_say_whether_budgets_concern_it():
    few = {**SIMATTA, "seeds": [1]}
    never = {**SIMATTA, "label": "never", "budgets": False}
    always = {**TENT, "label": "always", "budgets": True}
    grid = {"seeds": [0, 1], "budgets": [30]}

    names = set(named(expand(suite(few, never, always, grid=grid))))

    order = "domain_after_domain"
    assert names == {
        f"{order}/30/simatta-1",
        *(f"{order}/never-{seed}" for seed in (0, 1)),
        *(f"{order}/30/always-{seed}" for seed in (0, 1)),
    }


def test_a_stream_may_have_its_own_seeds_methods_and_settings():
    streams = [
        {"label": "one", "seeds": [7], "set": {"model.name": "resnet18", "labels.budget": 4}},
        {"label": "two", "methods": ["Tent (steps=1)"], "share": 0.5},
    ]
    few = {**SIMATTA, "seeds": [1]}
    cells = named(expand(suite(TENT, few, grid={"seeds": [0, 1], "streams": streams})))

    assert {*cells} == {
        "one/tent-steps-1-7",
        "one/simatta-7",
        "two/tent-steps-1-0",
        "two/tent-steps-1-1",
    }
    experiment = cells["one/simatta-7"].experiment
    assert (experiment.model.name, experiment.labels.budget) == ("resnet18", 4)
    assert cells["two/tent-steps-1-0"].experiment.stream.share == 0.5


def test_what_a_method_sets_wins_over_what_its_stream_sets():
    half = {**SIMATTA, "set": {"labels.budget": 2}}
    grid = {"streams": [{"set": {"labels.budget": 4}}]}
    (cell,) = expand(suite(half, grid=grid))
    assert cell.experiment.labels.budget == 2


@pytest.mark.parametrize(
    ("methods", "message"),
    [
        (["SimATA"], "'here': Unknown method 'SimATA'. Did you mean 'SimATTA'"),
        (["Random"], "'Random' is matched to 'SimATTA', which is not among the stream's methods"),
        ([], "grid.streams.0.methods must be a list of at least 1"),
    ],
)
def test_methods_that_a_stream_cannot_have_are_named(methods, message):
    grid = {"streams": [{"label": "here", "methods": methods}]}
    with pytest.raises(SettingError, match=message):
        suite(SIMATTA, RANDOM, grid=grid)


def test_own_batch_sizes_count_under_the_protocol_of_the_paper_only():
    given = suite(TENT, SIMATTA)
    sizes = {
        protocol: [cell.experiment.stream.batch_size for cell in expand(given.under(protocol))]
        for protocol in (None, "fair", "paper")
    }

    assert sizes == {None: [100, 100], "fair": [100, 100], "paper": [16, 100]}


def test_another_protocol_has_a_folder_of_its_own():
    given = suite(TENT, folder="out/here")

    assert str(given.under("paper").results) == "out/here-paper"
    assert given.under("fair").results == given.results
    assert suite(TENT, protocol="paper").under("paper").results.name == "s"


@pytest.mark.parametrize(
    "changes",
    [
        {"labels.budget": 7, "method.lr": 0.5},
        {"labels": {"budget": 7}, "method": {"lr": 0.5}},
    ],
)
def test_any_setting_can_be_changed_by_its_dotted_name(changes):
    (cell,) = expand(suite({**TENT, "set": changes}, base={"labels": {"budget": 3}}))

    assert cell.experiment.labels.budget == 7
    assert cell.experiment.method.settings == {"lr": 0.5}


def test_the_base_is_shared_and_its_method_is_the_usual_one():
    base = {"stream": {"share": 0.5}, "method": {"name": "tent", "updates": 3}}
    cells = expand(suite({"label": "a"}, SIMATTA, base=base))

    assert [cell.experiment.stream.share for cell in cells] == [0.5, 0.5]
    assert cells[0].experiment.method.settings == {"updates": 3}
    assert cells[1].experiment.method.settings == {}


def test_a_matched_cell_names_its_partner_in_the_same_row():
    grid = {"seeds": [0, 1], "budgets": [30, 50]}
    cells = named(expand(suite(SIMATTA, RANDOM, grid=grid)))

    order = "domain_after_domain"
    assert cells[f"{order}/50/random-1"].match == f"{order}/50/simatta-1"
    assert cells[f"{order}/50/random-1"].experiment.labels.budget == 50
    assert sum(cell.match is not None for cell in cells.values()) == 4


@pytest.mark.parametrize(
    ("tables", "message"),
    [
        ({"name": "s"}, r"\[grid\] table is missing.*attakit run"),
        ({"grid": {"methods": [TENT]}}, "name is missing"),
        ({"name": "s", "grid": {"methods": []}}, r"grid.methods must be a list of at least 1, got"),
        ({"name": "s", "grid": {"methods": 3}}, "grid.methods must be a list, got 3"),
        ({"name": "s", "grid": {"methods": [3]}}, "grid.methods.0 must be a table, got 3"),
        ({"name": "s", "grid": {"methods": [{"label": ""}]}}, "must be a text that is not empty"),
        ({"name": "s", "grid": {"methods": [{}]}}, "grid.methods.0.label is missing"),
        (
            {"name": "s", "grid": {"methods": [{**TENT, "seed": 1}]}},
            r"unknown setting grid.methods.0.seed. Did you mean 'seeds'",
        ),
        (
            {"name": "s", "grid": {"methods": [TENT], "seeds": ["a"]}},
            "grid.seeds must be a whole number, got 'a'",
        ),
        ({"name": "s", "protocol": "unfair", "grid": {"methods": [TENT]}}, "'fair' or 'paper'"),
        ({"name": "s", "grid": {"methods": [TENT, TENT]}}, r"Tent \(steps=1\) occurs twice"),
        (
            {"name": "s", "base": {"steam": {}}, "grid": {"methods": [TENT]}},
            "base: unknown setting steam. Did you mean 'stream'",
        ),
        ({"name": "s", "grid": {"methods": [RANDOM]}}, "Unknown method to match 'SimATTA'"),
        (
            {"name": "s", "layout": "paired", "grid": {"methods": [TENT]}},
            "give both or neither, got layout = 'paired' and against = None",
        ),
        ({"name": "s", "against": "Tent", "grid": {"methods": [TENT]}}, "give both or neither"),
        (
            {"name": "s", "layout": "paired", "against": "SimATA", "grid": {"methods": [SIMATTA]}},
            "Unknown method to compare with 'SimATA'. Did you mean 'SimATTA'",
        ),
        (
            {
                "name": "s",
                "grid": {"methods": [{**SIMATTA, "seeds": [0]}, {**RANDOM, "seeds": [4]}]},
            },
            "which has no seed 4",
        ),
    ],
)
def test_a_mistake_in_a_suite_is_named(tables, message):
    with pytest.raises(SettingError, match=message):
        parse_suite(tables)


@pytest.mark.parametrize(
    ("methods", "message"),
    [
        ([{"label": "a b"}, {"label": "a-b"}], "two cells would share the folder"),
        ([{"label": "+"}], "no letter or digit"),
        ([{**TENT, "set": {"stream.bach_size": 1}}], "Did you mean 'batch_size'"),
    ],
)
def test_cells_that_cannot_be_are_named(methods, message):
    with pytest.raises(SettingError, match=message):
        expand(suite(*methods))


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ({"method": {"name": "tant"}}, "Unknown method 'tant'. Did you mean 'tent'"),
        ({"method": {"name": "tent", "rl": 1}}, "Tent: unknown setting 'rl'"),
        ({"method": {"name": "tent"}, "set": {"method.updtes": 2}}, "Did you mean 'updates'"),
        ({"method": {"selector": "unifrom"}}, "Unknown selector 'unifrom'"),
        ({"method": {"selector": {"name": "clue", "init": 1}}}, "Did you mean 'inits'"),
        ({"method": {"trainer": {"lr": -1.0}}}, "DistillingTrainer: lr must be greater than 0"),
        ({"method": {"trainer": {"weighting": {"rul": 1}}}}, "Did you mean 'rule'"),
        ({"method": {"name": "enhanced", "method": "tant"}}, "Unknown method 'tant'"),
        ({"method": {"name": "enhanced", "keep": "no"}}, "keep must be true or false"),
        ({"method": {"name": "nowhere.at_all:Method"}}, "cannot be imported"),
        ({"method": {"name": f"{__name__}:Choosy"}}, "missing a required .*argument: 'pace'"),
        ({"set": {"pool.selector": "unifrom"}}, "Unknown selector 'unifrom'"),
        ({"method": {"name": "tent"}, "set": {"pool.rounds": 2}}, r"either a \[method\]"),
        ({"method": {"name": "tent"}, "match": "SimATTA"}, "must take a selector: Tent: unknown"),
        ({"set": {"pool.rounds": 2}, "match": "SimATTA"}, "a pool .* cannot be matched"),
    ],
)
def test_a_method_that_cannot_be_is_told_before_anything_is_run(entry, message):
    with pytest.raises(SettingError, match=rf"s: grid\.methods: 'Mine': .*{message}"):
        expand(suite(SIMATTA, {"label": "Mine", **entry}))


class Choosy(BaseMethod):
    """A method of somebody else, with a setting that must be given."""

    def __init__(self, model, *, pace):
        raise AssertionError("no method is built before its cell is run")


def test_a_method_by_import_path_is_checked_but_not_built():
    (cell,) = expand(suite({"label": "a", "method": {"name": f"{__name__}:Choosy", "pace": 3}}))

    assert cell.experiment.method.settings == {"pace": 3}


@pytest.mark.parametrize(
    ("stream", "message"),
    [
        ({"order": "randm"}, "Unknown order 'randm'. Did you mean 'random'"),
        ({"order": "random", "order_settings": {"split": 2}}, "Did you mean 'splits'"),
        ({"name": "pasc"}, "Unknown data set 'pasc'. Did you mean 'pacs'"),
    ],
)
def test_a_stream_that_cannot_be_is_told_before_anything_is_run(stream, message):
    with pytest.raises(SettingError, match=rf"s: stream 'odd': .*{message}"):
        expand(suite(SIMATTA, grid={"streams": [{"label": "fine"}, {"label": "odd", **stream}]}))


def test_a_suite_file_takes_overrides(tmp_path):
    path = tmp_path / "suite.toml"
    path.write_text('name = "s"\n[base.stream]\nshare = 0.5\n[[grid.methods]]\nlabel = "a"\n')

    read = load_suite(path, ["base.stream.share=0.1", "grid.seeds=[3]"])

    assert (read.base["stream"]["share"], read.grid.seeds) == (0.1, (3,))
    with pytest.raises(SettingError, match=r"no suite file at .*Check the name"):
        load_suite(tmp_path / "nowhere.toml")


def test_the_suite_of_held_out_data_has_nothing_that_was_tuned_on():
    """Tuned on: the third of PACS that share = 0.333 takes, and digits with seeds 10 to 12."""
    file = Path(__file__).parents[2] / "experiments" / "fast" / "suite.toml"
    cells = expand(load_suite(file))
    assert not {cell.seed for cell in cells} & {10, 11, 12}
    for cell in cells:
        stream = cell.experiment.stream
        assert stream.name != "pacs" or (stream.share, stream.rest) == (0.333, True)
    orders = {cell.experiment.stream.targets for cell in cells if "ResNet" in cell.stream}
    assert len(orders) == 5
    asked = {cell.method: cell.experiment.labels.budget for cell in cells}
    assert asked["Anchor head"] == asked["SimATTA"] == 2 * asked["Anchor head (B ≤ 92)"]
