"""Wheel and sdist: built without network, complete, and usable away from the repository."""

import os
import re
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from importlib.metadata import PackageNotFoundError, PathDistribution, requires
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from attakit import __version__

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "src" / "attakit"


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """A folder with an sdist, and the wheel that was made from it."""
    folder = tmp_path_factory.mktemp("dist")
    command = ["-m", "build", "--no-isolation", "--outdir", str(folder), str(ROOT)]
    done = subprocess.run([sys.executable, *command], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr or done.stdout
    return folder


@pytest.fixture(scope="module")
def unpacked(built, tmp_path_factory):
    """A folder that holds what a user's site-packages would."""
    folder = tmp_path_factory.mktemp("wheel") / "unpacked"
    (wheel,) = built.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder)
    return folder


@pytest.fixture(scope="module")
def distribution(unpacked):
    (information,) = unpacked.glob("*.dist-info")
    return PathDistribution(information)


def run_away_from_the_repository(unpacked, *arguments):
    environment = {**os.environ, "PYTHONPATH": str(unpacked)}
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=unpacked.parent,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_wheel_holds_every_file_of_the_package_and_nothing_else(unpacked):
    def files(folder):
        found = (path.relative_to(folder) for path in folder.rglob("*") if path.is_file())
        return {str(path) for path in found if "__pycache__" not in path.parts}

    assert files(unpacked / "attakit") == files(PACKAGE)
    assert {path.name for path in unpacked.iterdir()} == {
        "attakit",
        f"attakit-{__version__}.dist-info",
    }


def test_types_and_report_templates_are_in_the_wheel(unpacked):
    report = {path.name for path in (unpacked / "attakit/report/templates").iterdir()}
    paper = {path.name for path in (unpacked / "attakit/paper/templates").iterdir()}
    charts = {path.name for path in (unpacked / "attakit/charts").iterdir()}

    assert (unpacked / "attakit/py.typed").exists()
    assert report == {"report.css", "report.html.j2", "report.js"}
    assert paper == {"analysis.html.j2"}
    assert {"charts.css", "charts.js", "colours.css", "dom.js"} <= charts


def test_the_wheel_says_what_it_is(distribution):
    licences = {Path(name).name for name in distribution.metadata.get_all("License-File")}

    assert distribution.version == __version__
    assert distribution.metadata["License-Expression"] == "Apache-2.0"
    assert licences == {"LICENSE", "NOTICE"}
    assert "Adapt your model" in distribution.metadata.get_payload()


def test_an_index_would_accept_both_files(built):
    files = sorted(map(str, built.iterdir()))
    command = [sys.executable, "-m", "twine", "--no-color", "check", "--strict", *files]
    checked = subprocess.run(command, capture_output=True, text=True, check=False)

    assert checked.stdout.count("PASSED") == 2, checked.stdout + checked.stderr


def test_the_sdist_has_licences_tests_docs_and_examples(built):
    (sdist,) = built.glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}

    assert {"LICENSE", "NOTICE", "README.md", "CHANGELOG.md", "constraints.txt"} <= names
    assert {"tests/test_packaging.py", "docs/index.md", "examples/images.py"} <= names


def test_no_script_or_style_sheet_is_somebody_elses():
    foreign = re.compile(r"@license|copyright|SPDX|\bMIT\b", re.IGNORECASE)
    texts = [*PACKAGE.rglob("*.js"), *PACKAGE.rglob("*.css"), *ROOT.glob("docs/assets/*")]

    assert len(texts) > 20
    assert [path.name for path in texts if foreign.search(path.read_text(encoding="utf-8"))] == []
    assert list(PACKAGE.rglob("*.woff*")) == []


def test_the_newest_release_in_the_changelog_is_this_version():
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    headings = re.findall(r"^## \[(.+?)\]", text, re.MULTILINE)

    assert next(each for each in headings if each != "Unreleased") == __version__


def test_the_command_is_the_main_function(distribution):
    (command,) = distribution.entry_points.select(group="console_scripts")

    assert (command.name, command.value) == ("attakit", "attakit.cli:main")
    assert callable(command.load())


def test_the_unpacked_wheel_tells_its_version(unpacked):
    told = run_away_from_the_repository(unpacked, "-m", "attakit", "--version")

    assert (told.stdout, told.returncode) == (f"attakit {__version__}\n", 0), told.stderr


def test_it_is_the_unpacked_package_that_runs(unpacked):
    told = run_away_from_the_repository(unpacked, "-c", "import attakit; print(attakit.__file__)")

    assert Path(told.stdout.strip()) == unpacked / "attakit/__init__.py", told.stderr


def test_the_readme_names_the_python_versions_of_the_package():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    named = [each.rpartition(" ")[2] for each in project["classifiers"] if "Python :: 3" in each]
    badge = "badge/python-" + "_|_".join(named) + "-blue"

    assert badge in (ROOT / "README.md").read_text(encoding="utf-8")


def test_every_dependency_and_tool_has_a_pin():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    needs = [project["dependencies"], *project["optional-dependencies"].values()]
    wanted = {_name(line) for lines in needs for line in lines}
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    pinned = {_name(line) for line in lines if "==" in line}

    assert wanted - {"attakit"} <= pinned


def test_the_core_needs_neither_pandas_nor_matplotlib():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    found, left = set(), {_name(line) for line in project["dependencies"]}
    while left:
        package = left.pop()
        found.add(package)
        left |= set(_requirements(package)) - found

    assert {"torch", "scikit-learn", "numpy"} <= found
    assert found & {"pandas", "matplotlib", "mlxtend"} == set()


def _requirements(package):
    """Names of the packages that an installed one needs on this machine, without its extras."""
    try:
        lines = map(Requirement, requires(package) or [])
    except PackageNotFoundError:  # for another system
        return []
    return [canonicalize_name(r.name) for r in lines if r.marker is None or r.marker.evaluate()]


def _name(requirement):
    name = requirement.partition("[")[0].partition(">")[0].partition("=")[0]
    return name.strip().lower().replace("_", "-")
