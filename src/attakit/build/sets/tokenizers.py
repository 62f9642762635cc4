"""Tokenizers by name or import path, and the token ids of the rows of a file."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from attakit.build.construct import import_named
from attakit.errors import SettingError, StreamError, unknown_name
from attakit.settings.experiment import TextTable
from attakit.stream.row_files import RowFile, as_text, is_missing
from attakit.stream.texts import NgramTokenizer, Tokenizer, WordTokenizer, pad_tokens

TOKENIZERS = ("words", "ngrams")


def read_tokens(
    rows: RowFile, own: TextTable, source: Sequence[int]
) -> Callable[[Sequence[int]], NDArray[np.int64]]:
    """Return a function from row positions to padded token ids; words are the source's."""
    if own.tokens is not None:
        ids = rows.column(own.tokens)
        found = [_given_ids(rows, position, cell) for position, cell in enumerate(ids)]
        return lambda positions: _pad([found[position] for position in positions], own)
    texts = rows.column(own.text)
    tokenizer = _tokenizer(own, [as_text(texts[position]) for position in source])

    def encode(positions: Sequence[int]) -> NDArray[np.int64]:
        given = [_text(rows, position, texts[position]) for position in positions]
        return _pad(tokenize(own.tokenizer, tokenizer, given), own)

    return encode


def check_tokenizer(name: str) -> None:
    """Raise `SettingError` for an invalid tokenizer, before any is called."""
    if ":" in name:
        imported_tokenizer(name)
    elif name not in TOKENIZERS:
        raise unknown_name("tokenizer", name, TOKENIZERS)


def _tokenizer(own: TextTable, source: Sequence[str]) -> Tokenizer:
    check_tokenizer(own.tokenizer)
    if ":" in own.tokenizer:
        return imported_tokenizer(own.tokenizer)
    if own.tokenizer == "words":
        return WordTokenizer.fit(source, own.vocabulary)
    return NgramTokenizer(own.vocabulary)


def imported_tokenizer(name: str) -> Tokenizer:
    """Return the tokenizer at an import path; `SettingError` if it cannot be one."""
    found = import_named(name, "tokenizer")
    if isinstance(found, type) or inspect.isbuiltin(found):
        raise SettingError(
            f"The tokenizer {name!r} must be a Python function, or an object to call, that takes a "
            f"list of texts and returns a list of token ids for each, got a {type(found).__name__}."
        )
    try:
        inspect.signature(found).bind([])
    except TypeError as error:
        raise SettingError(
            f"The tokenizer {name!r} is called with one argument, a list of texts, but it does not "
            f"accept that ({error})."
        ) from error
    return found


def tokenize(name: str, tokenizer: Tokenizer, texts: list[str]) -> Sequence[Sequence[int]]:
    """Return the token ids of each text; `StreamError` if the tokenizer fails."""
    try:
        found = [list(tokens) for tokens in tokenizer(texts)]
    except Exception as error:  # the user's code may raise anything
        raise StreamError(
            f"The tokenizer {name!r} fails on {len(texts):,} texts ({type(error).__name__}: "
            f"{error}). It must return a list of token ids for each text."
        ) from error
    if len(found) != len(texts):
        raise StreamError(
            f"The tokenizer {name!r} must return a list of token ids for each text, got "
            f"{len(found):,} for {len(texts):,} texts."
        )
    return found


def _given_ids(rows: RowFile, position: int, cell: Any) -> list[int]:
    given = cell if isinstance(cell, list) else as_text(cell).replace(",", " ").strip("[]").split()
    try:
        return [int(token) for token in given]
    except (TypeError, ValueError) as error:
        raise StreamError(
            f"{rows.where(position)}: token ids must be whole numbers with spaces between, or a "
            f"list of them, got {as_text(cell)[:40]!r}."
        ) from error


def _text(rows: RowFile, position: int, cell: Any) -> str:
    if is_missing(cell):
        raise StreamError(f"{rows.where(position)} has no text. Write one, or leave the row out.")
    return as_text(cell)


def _pad(found: Sequence[Sequence[int]], own: TextTable) -> NDArray[np.int64]:
    return pad_tokens(found, length=own.length, vocabulary=own.vocabulary, who="stream.text")
