"""Texts as inputs of a service: a tokenizer by import path turns them into token ids."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from attakit.build.sets.tokenizers import imported_tokenizer, tokenize
from attakit.errors import SettingError, StreamError
from attakit.settings.service import InputTable
from attakit.stream.texts import NgramTokenizer, Tokenizer, pad_tokens

NGRAMS = "ngrams"
LONGEST = 20_000  # characters


class TextReader:
    """Turns texts into rows of token ids, all of the same length.

    Parameters
    ----------
    table
        The description of an input, with `tokenizer`, `vocabulary` and `length`.

    Examples
    --------
    >>> reader = TextReader(InputTable(kind="text", tokenizer="ngrams", length=4))
    >>> reader.read(["a cat"]).shape
    torch.Size([1, 4])
    """

    def __init__(self, table: InputTable) -> None:
        if table.tokenizer is None:
            raise SettingError(
                'Inputs: [input] kind = "text" needs a tokenizer, such as "mylab.text:encode", or '
                '"ngrams".'
            )
        self._name = table.tokenizer
        self._length, self._vocabulary = table.length, table.vocabulary
        self._tokenizer: Tokenizer
        if self._name == NGRAMS:
            self._tokenizer = NgramTokenizer(table.vocabulary)
        elif ":" in self._name:
            self._tokenizer = imported_tokenizer(self._name)
        else:
            raise SettingError(
                f"Inputs: [input] tokenizer must be an import path such as "
                f'"mylab.text:encode", or "ngrams", got {self._name!r}.'
            )

    def read(self, texts: Sequence[object]) -> Tensor:
        """Return the token ids of texts: one row each, cut or padded to the length."""
        checked = [_checked(text) for text in texts]
        found = tokenize(self._name, self._tokenizer, checked)
        padded = pad_tokens(
            found, length=self._length, vocabulary=self._vocabulary, who="input.tokenizer"
        )
        return torch.from_numpy(padded)


def _checked(text: object) -> str:
    if not isinstance(text, str):
        raise StreamError(
            f"A text must be a string, got {type(text).__name__}. Send JSON with 'texts'."
        )
    if len(text) > LONGEST:
        raise StreamError(
            f"A text has {len(text):,} characters, and at most {LONGEST:,} are allowed. Shorten it."
        )
    return text
