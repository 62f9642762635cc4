"""What each folder of the package offers."""

import importlib
import pkgutil
import re
import types
from pathlib import Path

import pytest

import attakit

FOLDERS = sorted(
    f"attakit.{module.name}" for module in pkgutil.iter_modules(attakit.__path__) if module.ispkg
)

ROOT = Path(__file__).parent.parent
TEXTS = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])
VOCABULARY = {
    f"attakit.{name}" for name in ("errors", "protocols", "queries", "randomness", "records")
}
IMPORT = re.compile(r"^(?:>>> )?\s*from (attakit[\w.]*) import (\([^)]*\)|[^\n]*)", re.MULTILINE)


def by_kind(name):
    """Constants first, then classes, then functions, as the linter wants it."""
    kind = 0 if name.isupper() else 1 if name[0].isupper() else 2
    return kind, name


def test_there_are_folders_to_look_at():
    assert {"attakit.engine", "attakit.label", "attakit.methods"} <= set(FOLDERS)


@pytest.mark.parametrize("folder", FOLDERS)
def test_every_listed_name_exists_once_and_in_order(folder):
    module = importlib.import_module(folder)

    assert [name for name in module.__all__ if not hasattr(module, name)] == []
    assert module.__all__ == sorted(set(module.__all__), key=by_kind)


@pytest.mark.parametrize("folder", FOLDERS)
def test_every_public_name_is_listed(folder):
    module = importlib.import_module(folder)
    found = {
        name
        for name, value in vars(module).items()
        if not name.startswith("_") and not isinstance(value, types.ModuleType)
    }

    assert found - {"annotations", "Any"} == set(module.__all__)


@pytest.mark.parametrize("folder", FOLDERS)
def test_every_folder_says_what_it_is_for(folder):
    assert importlib.import_module(folder).__doc__


def imported(text):
    """What the examples of a text import from the package: pairs of module and name."""
    return [
        (module, name)
        for module, names in IMPORT.findall(text)
        for name in re.findall(r"\w+", re.sub(r" as \w+|#.*", "", names))
    ]


def is_public(module, name):
    listed = getattr(importlib.import_module(module), "__all__", None)
    return module in VOCABULARY if listed is None else name in listed


def test_the_texts_have_examples_that_import_something():
    assert ("attakit.engine", "adapt") in imported((ROOT / "README.md").read_text(encoding="utf-8"))


@pytest.mark.parametrize("path", TEXTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_the_texts_import_public_names_only(path):
    found = imported(path.read_text(encoding="utf-8"))

    assert [pair for pair in found if not is_public(*pair)] == []
