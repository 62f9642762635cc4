import inspect
import sys

import pytest
import torch

from attakit.build.construct import construct
from attakit.build.methods import build_method, build_rate
from attakit.build.oracles import build_ledger, build_oracle
from attakit.errors import SettingError, UnknownName
from attakit.label import Delayed, Expiring, KnownLabels, Noisy, Skipping, Terminal
from attakit.methods import METHODS, AskingMethod, ReferenceSimATTA, SimATTA, SourceOnly, Tent
from attakit.queries import Allowance, Query
from attakit.select import SELECTORS, IncrementalClustering, LabelRate, Uniform
from attakit.settings.experiment import LabelsTable, MethodTable
from attakit.settings.load import load_experiment, parse_experiment
from attakit.stream import ArraySamples, Truth
from attakit.testing import tiny_batch, tiny_classifier
from attakit.train import TRAINERS, DistillingTrainer

TRUTH = Truth({"a": 1}, {"a": "night"}, {"a": "night"}, ("cat", "dog"))


def method_from(seed=0, **settings):
    return build_method(MethodTable(**settings), tiny_classifier(), seed)


@pytest.mark.parametrize("name", METHODS)
def test_every_method_is_built_by_its_name(name):
    assert type(method_from(name=name)) is METHODS[name]


class NeedsSource(SourceOnly):
    def __init__(self, model, *, source_inputs=None):
        super().__init__(model)
        self.inputs = source_inputs

    @staticmethod
    def source_input_count(settings):
        return settings.get("count", 2000)


def test_a_method_that_wants_source_inputs_gets_a_seeded_draw():
    source = ArraySamples(torch.arange(2500.0).reshape(-1, 1), [0] * 2500)
    table = MethodTable(name=f"{__name__}:NeedsSource")

    def drawn(seed):
        return build_method(table, tiny_classifier(), seed, source).inputs

    assert drawn(1).shape == (2000, 1)
    assert len(drawn(1).unique()) == 2000
    assert torch.equal(drawn(1), drawn(1))
    assert not torch.equal(drawn(1), drawn(2))
    assert build_method(table, tiny_classifier(), 0).inputs is None


def test_eata_is_regularised_where_there_are_source_samples():
    source = ArraySamples(tiny_batch(size=30).inputs, [0] * 30)
    with_source, without = (
        build_method(MethodTable(name="eata"), tiny_classifier(), 0, given)
        for given in (source, None)
    )
    assert (len(with_source.penalty), len(without.penalty)) == (2, 0)


class Counted(ArraySamples):
    """Samples that note how many of them were loaded."""

    loaded = 0

    def load(self, positions):
        self.loaded += len(positions)
        return super().load(positions)


@pytest.mark.parametrize(
    ("settings", "loaded"),
    [
        ({}, 2000),
        ({"fisher_samples": 4000}, 4000),
        ({"fisher_samples": 100}, 100),
        ({"fisher_samples": 9000}, 5000),
        ({"fisher_alpha": 0}, 0),
        ({"source_inputs": tiny_batch().inputs}, 0),
    ],
)
@pytest.mark.parametrize("wrapped", [False, True])
def test_as_many_source_inputs_are_loaded_as_eata_has_a_use_for(settings, loaded, wrapped):
    source = Counted(torch.randn(5000, 4), [0] * 5000)
    tables = {"name": "eata", **settings}

    table = {"name": "enhanced", "method": tables} if wrapped else tables
    build_method(MethodTable(**table), tiny_classifier(), 0, source)

    assert source.loaded == loaded


@pytest.mark.parametrize("wrong", [0, -5, 1.5, "many"])
def test_a_wrong_number_of_source_inputs_is_the_methods_to_refuse(wrong):
    source = Counted(torch.randn(30, 4), [0] * 30)

    with pytest.raises(SettingError, match="EATA: fisher_samples must be"):
        build_method(MethodTable(name="eata", fisher_samples=wrong), tiny_classifier(), 0, source)

    assert source.loaded == 0


def test_source_samples_do_not_bother_other_methods():
    source = ArraySamples(tiny_batch(size=30).inputs, [0] * 30)
    assert isinstance(build_method(MethodTable(name="tent"), tiny_classifier(), 0, source), Tent)


def test_settings_reach_the_method():
    method = method_from(name="tent", lr=0.5, updates=3, label="shown in tables only")
    assert method.optimizer.param_groups[0]["lr"] == 0.5
    assert method.updates == 3


def test_the_seed_of_the_experiment_reaches_every_part():
    method = method_from(seed=7, name="simatta", selector={}, trainer={})
    assert (method.selector.seed, method.trainer.seed) == (7, 7)
    plain = method_from(seed=7, name="simatta")
    assert (plain.selector.seed, plain.trainer.seed) == (7, 7)


def test_a_part_may_have_a_seed_of_its_own():
    assert method_from(seed=7, name="simatta", selector={"seed": 1}).selector.seed == 1


def test_selector_trainer_and_weighting_are_tables_inside():
    method = method_from(
        name="simatta",
        selector={"name": "incremental", "initial_clusters": 4, "cluster_growth": 1},
        trainer={"lr": 0.5, "weighting": {"rule": "optimal", "divergence": 0.1}},
    )
    assert isinstance(method.selector, IncrementalClustering)
    assert isinstance(method.trainer, DistillingTrainer)
    assert method.trainer.lr == 0.5
    assert (method.trainer.weighting.rule, method.trainer.weighting.divergence) == ("optimal", 0.1)


def plain(part):
    """The settings of a part of a method, and of the parts inside."""
    if not type(part).__module__.startswith("attakit"):
        return part
    names = getattr(part, "__slots__", ()) or vars(part)
    return {name: plain(getattr(part, name)) for name in names} | {"is": type(part).__name__}


def test_as_in_the_paper_a_file_has_the_settings_of_the_python_method():
    written = method_from(seed=7, as_in_paper=True)
    made = SimATTA.as_in_paper(tiny_classifier(), seed=7)
    for part in ("selector", "trainer", "bounds", "include_bound", "trust_asked"):
        assert plain(getattr(written, part)) == plain(getattr(made, part))
    assert written.model.norm == made.model.norm == "frozen"
    assert written.source_like_anchors.capacity is made.source_like_anchors.capacity is None
    assert all(each.requires_grad for each in written.model.parameters())


def test_as_in_the_paper_the_clusters_set_the_pace():
    paper = method_from(as_in_paper=True, high_entropy_bound=0.0)
    asked = [
        len(paper.step(tiny_batch(step, size=40), Allowance(100)).queries) for step in range(3)
    ]
    assert asked == [10, 1, 1]


@pytest.mark.parametrize("name", TRAINERS)
def test_a_trainer_may_be_given_by_name_alone_or_in_its_table(name):
    for given in (name, {"name": name}):
        assert type(method_from(name="simatta", trainer=given).trainer) is TRAINERS[name]


@pytest.mark.parametrize("name", SELECTORS)
def test_a_selector_may_be_given_by_name_alone(name):
    assert type(method_from(name="simatta", selector=name).selector) is SELECTORS[name]


def test_a_method_is_built_by_its_import_path(tmp_path, monkeypatch):
    (tmp_path / "labs_method.py").write_text(
        "from attakit.methods import SourceOnly\n"
        "class Mine(SourceOnly):\n"
        "    def __init__(self, model, *, strength=1.0):\n"
        "        super().__init__(model)\n"
        "        self.strength = strength\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    method = method_from(name="labs_method:Mine", strength=2.0)
    assert isinstance(method, SourceOnly)
    assert method.strength == 2.0
    del sys.modules["labs_method"]


def test_a_selector_is_built_by_its_import_path():
    method = method_from(name="simatta", selector={"name": "attakit.select.uniform:Uniform"})
    assert isinstance(method.selector, Uniform)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("class Mine(:", "its module fails: SyntaxError: .*Fix the module"),
        ("1 / 0", "its module fails: ZeroDivisionError: division by zero"),
        ("raise SystemExit(3)", "its module fails: SystemExit: 3"),
        ("class Mine: pass", "must be a class with predict, step, .* but it has no predict, step"),
        ("def Mine(model): 1 / 0", "must be a class with predict, .* but it is a function"),
        (
            "from attakit.methods import Tent\nclass Mine(Tent):\n    def __init__(self): pass",
            "Mine cannot be created from the given settings: too many positional",
        ),
        (
            "from attakit.methods import Tent\n"
            "class Mine(Tent):\n    def __init__(self, model, *, lr): pass",
            "Mine cannot be created .* 'lr'",
        ),
    ],
)
def test_a_module_that_holds_no_method_is_told(text, message, tmp_path, monkeypatch):
    (tmp_path / "my_faulty_module.py").write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "my_faulty_module", raising=False)

    with pytest.raises(SettingError, match=message):
        method_from(name="my_faulty_module:Mine")


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"name": "simata"}, r"Unknown method 'simata'\. Did you mean 'simatta'\?"),
        ({"name": "nowhere.at_all:Mine"}, r"'nowhere.at_all:Mine' cannot be imported"),
        ({"name": "attakit.methods:Mine"}, r"cannot be imported: .*Mine.*package\.module:Class"),
        ({"name": ":Mine"}, "cannot be imported"),
        ({"name": "attakit.methods:METHODS"}, "must be a class, but it is a dict"),
        ({"name": "tent", "lrr": 1}, r"Tent: unknown setting 'lrr'\. Did you mean 'lr'\?"),
        ({"name": "source_only", "lr": 1}, r"SourceOnly: unknown setting 'lr'\. Known: none"),
        ({"name": "tent", "model": 1}, "Tent: unknown setting 'model'"),
        ({"name": "tent", "selector": "uniform"}, "Tent: unknown setting 'selector'"),
        ({"name": "tent", "lr": "fast"}, "Tent: lr must be a number, got 'fast'"),
        ({"selector": "unifrom"}, r"Unknown selector 'unifrom'\. Did you mean 'uniform'\?"),
        ({"selector": {"name": 3}}, "name of a selector must be a text, got 3"),
        ({"selector": {"name": ["uniform"]}}, "name of a selector must be a text"),
        ({"include_bound": "false"}, "include_bound must be true or false, got 'false'"),
        ({"low_entropy_capacity": 2.5}, r"low_entropy_capacity must be a whole number, got 2\.5"),
        ({"selector": {"inits": 1.5}}, r"inits must be a whole number, got 1\.5"),
        ({"rate": {"per_1000": 3}}, r"method.rate cannot be set .* Set the pace in \[labels\]"),
        ({"trainer": {"max_updates": 2.5}}, "max_updates must be a whole number"),
        ({"trainer": {"name": "balanced", "window": 2.5}}, "window must be a whole number"),
        (
            {"selector": {"name": "entropy", "per_step": 2}},
            r"method.selector: entropy does not set the pace. Set the pace in \[labels\]",
        ),
        ({"selector": 3}, "method.selector must be a name or a table, got 3"),
        ({"selector": {"clusters": 3}}, "IncrementalClustering: unknown setting 'clusters'"),
        (
            {"selector": {"name": "uniform", "seed": 1, "first": 2}},
            "uniform does not set the pace",
        ),
        ({"trainer": 3}, "method.trainer must be a name or a table, got 3"),
        ({"trainer": "balancd"}, r"Unknown trainer 'balancd'\. Did you mean 'balanced'\?"),
        ({"trainer": {"name": 3}}, "name of a trainer must be a text, got 3"),
        (
            {"trainer": {"name": "balanced", "momentun": 3}},
            r"BalancedTrainer: unknown setting 'momentun'\. Did you mean 'momentum'",
        ),
        ({"trainer": {"weighting": 0.5}}, r"Weighting: settings must be a table, got 0\.5"),
        (
            {"trainer": {"weighting": {"rul": 1}}},
            r"Weighting: unknown setting 'rul'\. Did you mean 'rule'",
        ),
    ],
)
def test_a_wrong_method_table_is_named(settings, message):
    with pytest.raises(SettingError, match=message):
        method_from(**settings)


def test_an_unknown_method_is_an_unknown_name():
    with pytest.raises(UnknownName):
        method_from(name="nothing like it")


def test_construct_leaves_the_seed_out_where_there_is_none():
    assert isinstance(construct(Tent, {}, tiny_classifier(), seed=3), Tent)


def test_known_labels_answer_by_default():
    assert type(build_oracle(LabelsTable(), TRUTH, seed=0)) is KnownLabels


def test_wrappers_stand_in_the_order_in_which_answers_pass():
    table = LabelsTable(noise=0.1, skips=0.2, delay=3, jitter=1, expiry=5)
    oracle, kinds = build_oracle(table, TRUTH, seed=4), []
    while not isinstance(oracle, KnownLabels):
        kinds.append(type(oracle))
        assert getattr(oracle, "seed", 4) == 4
        oracle = oracle.oracle
    assert kinds == [Expiring, Delayed, Skipping, Noisy]


def test_a_person_is_asked_where_a_person_answers(monkeypatch, capsys):
    monkeypatch.setattr("builtins.input", lambda *prompt: "dog" if not prompt else "")
    lines = []
    oracle = build_oracle(
        LabelsTable(oracle="ask"), TRUTH, 0, where=lambda name: f"at/{name}", write=lines.append
    )
    assert isinstance(oracle, Terminal)
    oracle.ask([Query("a", 0)])
    assert [answer.label for answer in oracle.collect()] == [1]
    assert lines[0] == "Which class is at/a?"
    told = capsys.readouterr()
    assert (told.out, "Class (Enter skips" in told.err) == ("", True)


@pytest.mark.parametrize(("budget", "limit"), [(5, 5), (0, 0), ("unlimited", None)])
def test_the_ledger_has_the_budget_of_the_experiment(budget, limit):
    assert build_ledger(parse_experiment({"labels": {"budget": budget}})).budget.limit == limit


def sample_files(root):
    files = sorted((root / "experiments").rglob("*.toml"))
    return [file for file in files if "[grid]" not in file.read_text(encoding="utf-8")]


def test_every_sample_experiment_builds_its_method(pytestconfig):
    files = sample_files(pytestconfig.rootpath)
    assert {file.parent.name for file in files} >= {"digits", "pacs", "reference"}
    for file in files:
        experiment = load_experiment(file)
        build_method(experiment.method, tiny_classifier(), experiment.seed)
        build_oracle(experiment.labels, TRUTH, experiment.seed)
        build_ledger(experiment)


def test_the_reference_experiment_has_the_settings_of_the_public_code(pytestconfig):
    experiment = load_experiment(pytestconfig.rootpath / "experiments/reference/simatta.toml")
    defaults = inspect.signature(ReferenceSimATTA).parameters

    assert experiment.method.name == "simatta_reference"
    given = experiment.method.settings
    assert given == {name: defaults[name].default for name in given}
    assert set(defaults) - set(given) == {"model", "seed"}
    assert experiment.labels.budget == "unlimited"


class SlowAsker(AskingMethod):
    """A method of somebody else, which says nothing of the pace."""

    def __init__(self, model):
        super().__init__(model, selector=Uniform())


@pytest.mark.parametrize(
    "name", ["simatta", "anchor_head", "enhanced", "eatta", f"{__name__}:SlowAsker"]
)
def test_every_method_that_asks_gets_the_pace_of_the_labels_table(name):
    labels = {"per_1000": 12.5, "first": 3, "at_drift": 1}
    rate = build_rate(parse_experiment({"labels": labels}).labels)

    method = build_method(MethodTable(name=name), tiny_classifier(), 0, rate=rate)

    assert method.rate is rate
    assert (rate.per_1000, rate.spread_over, rate.first, rate.at_drift) == (12.5, None, 3, 1)


@pytest.mark.parametrize(
    ("labels", "kept"), [({}, True), ({"per_1000": 9.0}, False), ({"matched": 40}, False)]
)
def test_a_method_with_a_pace_of_its_own_keeps_it_unless_the_file_says_more(labels, kept):
    rate = build_rate(parse_experiment({"labels": {"budget": 40, **labels}}).labels)

    method = build_method(MethodTable(name="eatta"), tiny_classifier(), 0, rate=rate)

    assert (method.rate.per_batch == 1) == kept


def test_the_pace_of_an_empty_file_is_that_of_the_library():
    rate, usual = build_rate(parse_experiment({}).labels), LabelRate()

    assert vars(rate) == vars(usual)


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        ({"per_1000": -1.0}, r"labels\.per_1000"),
        ({"per_1000": 3.0, "spread_over": 100}, r"labels\.spread_over .*if per_1000 is given"),
        ({"budget": "unlimited", "spread_over": 9}, r"spread_over .*the budget is unlimited"),
        ({"spread_over": 0}, r"labels\.spread_over"),
        ({"first": 0.5}, r"labels\.first"),
    ],
)
def test_a_pace_that_cannot_be_is_refused(labels, message):
    with pytest.raises(SettingError, match=message):
        parse_experiment({"labels": labels})
