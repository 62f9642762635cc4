"""The texts are in plain English: short sentences, and no phrase that reads as translated."""

import re
import subprocess
from pathlib import Path

import pytest

from prose import cells, docstring_sentences, meanings, parameters, sentences, words
from wrap_prose import wrap

ROOT = Path(__file__).parent.parent
SENTENCE_WORDS = 30
CELL_WORDS = 25

# What to avoid, and what to write in its place.
BANNED = {
    r"(?:is|are|was|were|be|been) told": "is shown, gets, knows",
    r"tells": "prints, reports, says, shows",
    r"so (?:many|long|often)": "this many, as long as, a number",
    r"anew": "again",
    r"once more": "again",
    r"go(?:es)? on": "continues",
    r"besides?": "next to, with, also, except",
    r"whoever": "anyone who",
    r"whichever": "the one that",
    r"of timm": "timm's",
    r"of the paper(?!')": "the paper's",
    r"mends?": "fix",
    r"give the command": "run the command",
    r"nobody": "no one, or say who",
    r"in all(?=[.,;:)]|$)": "in total",
    r"by itself": "alone, automatically",
    r"stands? in(?! for)": "is in",
    r"wants": "needs, expects",
    r"(?:labels|answers) (?:buy|bought)": "gain, help",
    r"(?:some|any|every)body": "someone, anyone, everyone",
    r"found by themselves": "say who finds them",
    r"(?:takes no|without a) word": "say what happens",
    r"whence|thereof|therein|hereby|wherein": "say it in two sentences",
    r"but for": "except for",
    r"foret(?:ell|ells|old)": "predict",
    r"knows? nothing of": "does not know, does not import",
    r"(?:is|are) looked for": "say who looks for it",
    r"likewise": "also, the same",
    r"the very(?! first)": "the same",
    r"for ever|at hand|altogether": "never, here, in total",
    r"learnt": "learned",
    r"some (?:seconds|minutes)": "a few seconds",
    r"speaks? (?:for|against)": "supports, contradicts",
    r"(?:may be|were) had": "say how many there are",
    r"equally (?:many|long)": "the same number, the same length",
    r"data are": "data is",
    r"so (?:short|small|large|little|few|big|high|low) an?": "such a",
}

# A description that needs the name before it to be a phrase: "Of the stream."
FRAGMENT = re.compile(r"(?:Of|As of|Or|By|Likewise|Instead of|In place of|Under|From|As above)\b|…")


def compiled(phrase):
    """A pattern that finds a phrase across lines, but not inside a file name."""
    spaced = phrase.replace(" ", r"[\s#]+")  # a comment of several lines has a # on each
    return re.compile(rf"(?<![-\w])(?:{spaced})(?![-\w])", re.IGNORECASE)


PHRASES = {compiled(phrase): instead for phrase, instead in BANNED.items()}
# A field of the service's API, so it is in its code and in texts about it.
FIELD = re.compile(r"\bbesides\b")

# Texts that users or maintainers read. The tests' own names and strings are left out.
KINDS = (".md", ".toml", ".html", ".j2", ".js", ".css", ".py", ".yaml", ".yml", ".ipynb")
PLACES = ("benchmarks/", "deploy/", "docs/", "examples/", "experiments/", "results/", "src/")


def tracked(*kinds):
    """Names of tracked files at the top and in `PLACES`."""
    listed = subprocess.run(
        ["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.splitlines()
    return [
        name
        for name in listed
        if name.endswith(kinds) and ("/" not in name or name.startswith(PLACES))
    ]


def read(name):
    text = (ROOT / name).read_text(encoding="utf-8")
    return FIELD.sub("others", text) if name.startswith("src/attakit/service/") else text


@pytest.fixture(scope="module", autouse=True)
def _in_a_repository():
    if not (ROOT / ".git").exists():
        pytest.skip("only a git repository knows which files are tracked")


def test_no_tracked_text_has_a_banned_phrase():
    found = [
        f"{name}: {hit[0]!r}; write: {instead}"
        for name in tracked(*KINDS)
        for phrase, instead in PHRASES.items()
        for hit in phrase.finditer(read(name))
    ]

    assert found == []


def long_parts(names, parts, most):
    """Parts of files that have too many words, with the file and the number of words."""
    return [
        (name, words(part), part)
        for name in names
        for part in parts(read(name))
        if words(part) > most
    ]


def test_no_sentence_of_a_page_is_long():
    assert long_parts(tracked(".md"), sentences, SENTENCE_WORDS) == []


def test_no_sentence_of_a_docstring_is_long():
    names = [name for name in tracked(".py") if not name.startswith("tests/")]

    assert long_parts(names, docstring_sentences, SENTENCE_WORDS) == []


def test_no_table_cell_holds_a_paragraph():
    assert long_parts(tracked(".md"), cells, CELL_WORDS) == []


def test_every_setting_is_described_by_a_whole_phrase():
    found = [(name, each) for name in tracked(".md") for each in meanings(read(name))]

    assert len(found) > 300
    assert [each for each in found if FRAGMENT.match(each[1])] == []


def test_every_parameter_is_described_by_a_whole_phrase():
    found = [(name, each) for name in tracked(".py") for each in parameters(read(name))]

    assert len(found) > 500
    assert [each for each in found if FRAGMENT.match(each[1])] == []


def test_prose_is_wrapped():
    found = [name for name in tracked(".md") if wrap(read(name)) != read(name)]

    assert found == [], "`make format` wraps them"


@pytest.mark.parametrize("phrase", ["The error is told in one line.", "It goes\non.", "Besides,"])
def test_a_banned_phrase_is_found_across_lines_and_in_capitals(phrase):
    assert any(pattern.search(phrase) for pattern in PHRASES)


def test_a_file_name_is_not_prose():
    assert not any(pattern.search("0008-a-ledger-beside-the-budget.md") for pattern in PHRASES)
