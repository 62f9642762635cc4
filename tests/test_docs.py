"""The texts agree with the code and with each other."""

import inspect
import re
import tomllib
from pathlib import Path

import pytest
from pydantic import BaseModel

from attakit import errors, select
from attakit.bench.suites.cells import expand
from attakit.methods import (
    CMF,
    EATA,
    LAME,
    NOTE,
    ROID,
    SAR,
    AnchorHead,
    BatchNorm,
    BiTTA,
    CoTTA,
    DeYO,
    Enhanced,
    RDumb,
    ReferenceSimATTA,
    RoTTA,
    SimATTA,
    Tent,
)
from attakit.paper.tables.layouts import check_suite
from attakit.select import HighestEntropy, IncrementalClustering, Uniform
from attakit.settings import Experiment, parse_experiment
from attakit.settings.experiment import (
    CrowdTable,
    ModelOracleTable,
    PoolTable,
    TabularTable,
    TextTable,
)
from attakit.settings.load import load_experiment, parse_service
from attakit.settings.service import ServiceSettings
from attakit.settings.suite import GridTable, MethodEntry, Suite, load_suite, parse_suite
from attakit.train import BalancedTrainer, DistillingTrainer, Weighting

ROOT = Path(__file__).parent.parent
TEXTS = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])
LINK = re.compile(r"\]\(([^)\s]+)\)")
TOML_BLOCK = re.compile(r"^```toml\n(.*?)^```$", re.DOTALL | re.MULTILINE)
KEY_ROW = re.compile(r"^\| `(\w+)` \| (?:`(.+?)`|none) \|", re.MULTILINE)
FROM_THE_RUN = {"model", "seed", "source_inputs", "rate", "question"}

PARTS = {
    "`simatta`": SimATTA,
    "`anchor_head`": AnchorHead,
    "`simatta_reference`": ReferenceSimATTA,
    "`bitta`": BiTTA,
    "`tent`": Tent,
    "`cotta`": CoTTA,
    "`enhanced`": Enhanced,
    "`eata`": EATA,
    "`sar`": SAR,
    "`rdumb`": RDumb,
    "`deyo`": DeYO,
    "`roid`": ROID,
    "`cmf`": CMF,
    "`rotta`": RoTTA,
    "`note`": NOTE,
    "`lame`": LAME,
    "`batch_norm`": BatchNorm,
    "`incremental`": IncrementalClustering,
    "`entropy`": HighestEntropy,
    "`uniform`": Uniform,
    "`distilling`": DistillingTrainer,
    "`balanced`": BalancedTrainer,
    "`[method.trainer.weighting]`": Weighting,
}
TABLES = ["stream", "model", "method", "labels", "training", "report"]


def read(name):
    return (ROOT / name).read_text(encoding="utf-8")


def sections(text):
    """The text below each heading, up to the next heading of any level."""
    parts = re.split(r"^#+ (.+)$", text, flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def documented(heading, page="docs/experiments.md"):
    """Names and defaults in the table below a heading of a page."""
    rows = KEY_ROW.findall(sections(read(page))[heading])
    return {name: _value(text) for name, text in rows}


def _value(text):
    return tomllib.loads(f"value = {text}")["value"] if text else None


def declared(table):
    """Names and defaults of a pydantic table, tables inside left out."""
    plain = table.model_dump(mode="json")
    return {
        name: plain[name]
        for name in type(table).model_fields
        if not isinstance(getattr(table, name), BaseModel)
    }


def settings_of(kind):
    parameters = inspect.signature(kind).parameters.items()
    return {name: each.default for name, each in parameters if name not in FROM_THE_RUN}


@pytest.mark.parametrize("text", TEXTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_relative_link_leads_somewhere(text):
    links = [link for link in LINK.findall(text.read_text(encoding="utf-8")) if "://" not in link]

    broken = [link for link in links if not (text.parent / link.partition("#")[0]).exists()]

    assert broken == []


@pytest.mark.parametrize("table", TABLES)
def test_every_key_of_an_experiment_is_documented_with_its_default(table):
    assert documented(f"`[{table}]`") == declared(getattr(Experiment(), table))


@pytest.mark.parametrize(("name", "table"), [("table", TabularTable), ("text", TextTable)])
def test_every_key_of_rows_is_documented_with_its_default(name, table):
    told = documented(f"`[stream.{name}]`")

    assert {**told, "file": "rows.csv"} == declared(table(file="rows.csv"))


def test_every_key_of_a_pool_is_documented_with_its_default():
    assert documented("`[pool]`") == declared(PoolTable())


def test_every_key_of_a_model_that_answers_is_documented_with_its_default():
    keys = declared(ModelOracleTable(url="http://localhost"))

    assert documented("`[labels.model]`") == {**keys, "url": None}


def test_every_key_of_a_crowd_is_documented_with_its_default():
    assert documented("`[labels.crowd]`") == declared(CrowdTable())


def test_no_table_of_an_experiment_is_forgotten():
    inside = {
        name
        for name in Experiment.model_fields
        if isinstance(getattr(Experiment(), name), BaseModel)
    }

    assert inside == set(TABLES)
    assert documented("Top level") == declared(Experiment())


@pytest.mark.parametrize(
    "table", ["input", "labels", "learning", "gate", "drift", "retention", "server"]
)
def test_every_key_of_a_service_is_documented_with_its_default(table):
    settings = getattr(ServiceSettings(classes=("cat", "dog")), table)

    assert documented(f"`[{table}]`", "docs/serving.md") == declared(settings)


def test_no_table_of_a_service_is_forgotten():
    settings = ServiceSettings(classes=("cat", "dog"))
    inside = {
        f"`[{name}]`"
        for name in ServiceSettings.model_fields
        if isinstance(getattr(settings, name), BaseModel) and name not in ("model", "method")
    }
    told = documented("Top level", "docs/serving.md")

    assert inside <= set(sections(read("docs/serving.md")))
    assert told == declared(settings) | {"classes": None}


@pytest.mark.parametrize("name", select.SELECTORS)
def test_every_setting_of_a_selector_is_documented_with_its_default(name):
    assert documented(f"`{name}`") == settings_of(select.SELECTORS[name])


@pytest.mark.parametrize("heading", PARTS)
def test_every_setting_of_a_part_is_documented_with_its_default(heading):
    assert documented(heading) == settings_of(PARTS[heading])


def test_every_error_has_a_section():
    classes = {
        name
        for name, value in vars(errors).items()
        if isinstance(value, type) and issubclass(value, errors.AttaError)
    }

    assert set(sections(read("docs/errors.md"))) - {"Errors"} == classes


@pytest.mark.parametrize("text", TEXTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_experiment_in_a_text_is_valid(text):
    for block in TOML_BLOCK.findall(text.read_text(encoding="utf-8")):
        tables = tomllib.loads(block)
        if "grid" in tables:
            suite = parse_suite(tables)
            check_suite(suite)
            assert expand(suite)
        elif "classes" in tables or text.name == "serving.md":
            parse_service({"classes": ["dog", "horse"], **tables})
        else:
            parse_experiment(tables)


def is_suite(path):
    return "grid" in tomllib.loads(path.read_text(encoding="utf-8"))


EXPERIMENTS = [path for path in sorted(ROOT.glob("experiments/**/*.toml")) if not is_suite(path)]


@pytest.mark.parametrize("path", EXPERIMENTS, ids=lambda path: path.stem)
def test_every_experiment_file_is_valid(path):
    if "grid" in tomllib.loads(path.read_text(encoding="utf-8")):
        assert expand(load_suite(path))
    else:
        load_experiment(path)


@pytest.mark.parametrize(
    ("heading", "table"),
    [("Top level", Suite), ("`[grid]`", GridTable), ("`[[grid.methods]]`", MethodEntry)],
)
def test_every_key_of_a_suite_is_documented(heading, table):
    rows = KEY_ROW.findall(sections(read("docs/bench.md"))[heading])

    names = [field.alias or name for name, field in table.model_fields.items()]
    assert sorted(name for name, _ in rows) == sorted(names)


def test_the_reference_file_and_its_page_name_the_same_settings():
    page = read("docs/reference-settings.md")
    method = load_experiment(ROOT / "experiments/reference/simatta.toml").method

    assert [name for name in method.settings if f"`reference.{name}`" not in page] == []


def test_the_pages_switches_exist():
    known = {
        "method": settings_of(SimATTA),
        "reference": settings_of(ReferenceSimATTA),
        "selector": {"name": None, **settings_of(IncrementalClustering)},
        "trainer": {"name": None, **settings_of(BalancedTrainer)},
        "weighting": settings_of(Weighting),
        "labels": declared(Experiment().labels),
    }
    switches = re.findall(r"`(\w+)\.(\w+)(?: = [^`]+)?`", read("docs/reference-settings.md"))

    assert len(switches) > 20
    assert [(part, name) for part, name in switches if name not in known[part]] == []


def test_readme_names_make_targets_that_exist():
    targets = set(re.findall(r"^([a-z]+):", read("Makefile"), re.MULTILINE))
    named = set(re.findall(r"^    make ([a-z]+)", read("README.md"), re.MULTILINE))

    assert named == {"demo", "serve", "test"}
    assert set(re.findall(r"`make ([a-z]+)`", read("CONTRIBUTING.md"))) | named <= targets


def test_every_decision_is_listed():
    folder = ROOT / "docs/decisions"
    pages = {path.name for path in folder.glob("0*.md")}

    assert set(LINK.findall(read("docs/decisions/README.md"))) == pages
    for page in pages:
        assert {"Context", "Choice", "Consequences"} <= set(sections((folder / page).read_text()))
