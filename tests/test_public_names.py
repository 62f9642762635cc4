"""What each folder of the package offers."""

import importlib
import pkgutil
import types

import pytest

import attakit

FOLDERS = sorted(
    f"attakit.{module.name}" for module in pkgutil.iter_modules(attakit.__path__) if module.ispkg
)


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
