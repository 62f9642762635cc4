"""The documentation site has every page and every public name."""

import importlib
import inspect
import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
API = sorted(set(DOCS.glob("api/*.md")) - {DOCS / "api/index.md"})
NAME = re.compile(r"^        - (\w+)$", re.MULTILINE)


def navigated(entries):
    """The pages of a navigation, however deep."""
    for entry in entries:
        if isinstance(entry, str):  # the first page of a section, which needs no title
            yield entry
            continue
        for target in entry.values():
            yield from [target] if isinstance(target, str) else navigated(target)


def public_names(module):
    """Classes and functions that a module lists, or defines if it lists none."""
    names = getattr(module, "__all__", None) or [
        name
        for name, value in vars(module).items()
        if not name.startswith("_") and getattr(value, "__module__", None) == module.__name__
    ]
    objects = [(name, getattr(module, name)) for name in names]
    return [name for name, value in objects if inspect.isclass(value) or inspect.isfunction(value)]


@pytest.mark.parametrize("page", API, ids=lambda page: page.stem)
def test_a_page_of_the_reference_has_every_public_name(page):
    module = importlib.import_module(f"attakit.{page.stem}")

    assert sorted(NAME.findall(page.read_text(encoding="utf-8"))) == sorted(public_names(module))


def test_every_page_can_be_reached():
    settings = tomllib.loads((ROOT / "zensical.toml").read_text(encoding="utf-8"))
    written = {str(path.relative_to(DOCS)) for path in DOCS.rglob("*.md")}
    reached = set(navigated(settings["project"]["nav"]))

    assert reached == written


def test_the_site_loads_nothing_from_other_hosts():
    settings = tomllib.loads((ROOT / "zensical.toml").read_text(encoding="utf-8"))["project"]
    worker = settings["extra"]["polyfills"][0]["path"]

    assert settings["theme"]["font"] is False
    # A file of this name is what keeps the generator from loading one of its own choice.
    assert "iframe-worker" in worker
    assert (DOCS / worker).exists()


@pytest.mark.parametrize("page", API, ids=lambda page: page.stem)
def test_a_function_named_like_its_module_has_an_entry_of_its_own(page):
    """The generator takes `attakit.engine.adapt` for the module, and leaves the function out."""
    text = page.read_text(encoding="utf-8")
    folder = ROOT / "src/attakit" / page.stem
    hidden = [name for name in NAME.findall(text) if (folder / f"{name}.py").exists()]

    entries = [f"::: attakit.{page.stem}.{name}.{name}\n" for name in hidden]
    assert [entry for entry in entries if entry not in text] == []


def test_the_reference_shows_the_members_of_classes():
    """In a list, "public" is a pattern, which the names of most members do not match."""
    settings = tomllib.loads((ROOT / "zensical.toml").read_text(encoding="utf-8"))["project"]

    assert (
        settings["plugins"]["mkdocstrings"]["handlers"]["python"]["options"]["filters"] == "public"
    )


def test_every_example_that_a_page_includes_exists():
    texts = [path.read_text(encoding="utf-8") for path in DOCS.rglob("*.md")]
    lines = [line for text in texts for line in text.splitlines() if line.startswith("--8")]

    assert len(lines) >= 3
    for line in lines:
        included = re.fullmatch(r'--8<-- "(.+)"', line)  # formatters like to change it
        assert included, line
        assert (ROOT / included[1]).exists()
