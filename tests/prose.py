"""Prose in Markdown: its sentences, its paragraphs and its table cells, without code."""

import ast
import re
from collections.abc import Iterator

from markdown_it import MarkdownIt
from markdown_it.token import Token

WIDTH = 100  # of a line
PARSER = MarkdownIt("commonmark").enable("table")
# A full stop, then a space; a bracket or a quote may come between.
SENTENCE_END = re.compile(r"(?<=[.!?])[\"')”*]*\s+")
ABBREVIATION = re.compile(r"\b(et al|e\.g|i\.e|vs|cf)\.", re.IGNORECASE)
# An entry of the API reference ends at the next line that is not indented.
API_ENTRY = re.compile(r"^::: .*\n(?:[ ]+.*\n?)*", re.MULTILINE)

# Paragraphs, list items, and descriptions of parameters.
DOCSTRING_BLOCK = re.compile(r"\n\s*\n|\n(?=\s*- )|\n(?=    )|\n(?=\w+(?:, \w+)*\n    )")
# The parameters of a docstring, and one of them with its indented description.
PARAMETERS = re.compile(
    r"^(?:Parameters|Attributes)\n-+\n(.+?)(?=\n\w[^\n]*\n---|\Z)", re.DOTALL | re.MULTILINE
)
PARAMETER = re.compile(r"^\w+(?:, \w+)*\n((?:    [^\n]*\n?)+)", re.MULTILINE)
# Examples, headings, drawings, and references with a year.
NOT_PROSE = re.compile(r">>>|---|├|\b(?:19|20)\d\d\b")


def sentences(markdown: str) -> list[str]:
    """The sentences of paragraphs, list items and captions.

    >>> sentences("One sentence. Another with `a. b` in it.\\n\\n    code. here.")
    ['One sentence.', 'Another with code in it.']
    """
    blocks = [text for text, in_table in _texts(markdown) if not in_table]
    return [sentence for block in blocks for sentence in _split(block)]


def cells(markdown: str) -> list[str]:
    """The texts of all table cells.

    >>> cells("| a | b |\\n|---|---|\\n| one | two words |")
    ['a', 'b', 'one', 'two words']
    """
    return [text for text, in_table in _texts(markdown) if in_table]


def paragraphs(markdown: str) -> list[tuple[int, int]]:
    """First line and end of every paragraph outside tables, headings not counted.

    >>> paragraphs("# Heading\\n\\nOne,\\ntwo.")
    [(2, 4)]
    """
    blank = API_ENTRY.sub(lambda entry: "\n" * entry[0].count("\n"), markdown)
    tokens = PARSER.parse(blank)
    opened = [token for token in tokens if token.type == "paragraph_open" and token.map]
    return [(token.map[0], token.map[1]) for token in opened if token.map]


def docstring_sentences(source: str) -> list[str]:
    """The sentences of a module's docstrings, without examples and references.

    >>> docstring_sentences("'One. Two: three.'")
    ['One.', 'Two: three.']
    """
    blocks = [block for text in _docstrings(source) for block in DOCSTRING_BLOCK.split(text)]
    kept = [" ".join(block.split()) for block in blocks if not NOT_PROSE.search(block)]
    return [sentence for block in kept for sentence in _split(block)]


def meanings(markdown: str) -> list[str]:
    """Descriptions of settings: the last cells of tables whose last column is "Meaning".

    >>> meanings("| Key | Meaning |\\n|---|---|\\n| a | First letter. |")
    ['First letter.']
    """
    tables = [table for table in _tables(markdown) if table[0][-1] == "Meaning"]
    return [row[-1] for table in tables for row in table[1:]]


def parameters(source: str) -> list[str]:
    """Descriptions of parameters and attributes in a module's docstrings.

    >>> text = "Do it.\\n\\nParameters\\n----------\\nseed\\n    Seed of the draw."
    >>> parameters(repr(text))
    ['Seed of the draw.']
    """
    sections = [part for text in _docstrings(source) for part in PARAMETERS.findall(text)]
    return [" ".join(each.split()) for part in sections for each in PARAMETER.findall(part)]


def words(text: str) -> int:
    """How many words a text has; a piece of code counts as one.

    >>> words("two – words")
    2
    """
    return sum(any(letter.isalnum() for letter in word) for word in text.split())


def _texts(markdown: str) -> Iterator[tuple[str, bool]]:
    in_table = False
    for token in PARSER.parse(API_ENTRY.sub("", markdown)):
        if token.type in ("table_open", "table_close"):
            in_table = token.type == "table_open"
        elif token.type == "inline":
            yield "".join(map(_text, token.children or [])), in_table


def _docstrings(source: str) -> list[str]:
    owners = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    nodes = [node for node in ast.walk(ast.parse(source)) if isinstance(node, owners)]
    return [text for node in nodes if (text := ast.get_docstring(node))]


def _tables(markdown: str) -> list[list[list[str]]]:
    """Tables as rows of cells, the heading first."""
    tables: list[list[list[str]]] = []
    row: list[str] | None = None
    for token in PARSER.parse(markdown):
        if token.type == "table_open":
            tables.append([])
        elif token.type == "tr_open":
            tables[-1].append(row := [])
        elif token.type == "tr_close":
            row = None
        elif token.type == "inline" and row is not None:
            row.append("".join(map(_text, token.children or [])))
    return tables


def _text(token: Token) -> str:
    if token.type == "code_inline":
        return "code"
    if token.type in ("softbreak", "hardbreak"):
        return " "
    return "" if token.type in ("html_inline", "image") else token.content


def _split(block: str) -> list[str]:
    kept = ABBREVIATION.sub(r"\1", block)
    return [sentence.strip() for sentence in SENTENCE_END.split(kept) if sentence.strip()]
