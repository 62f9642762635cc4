"""Texts as rows of token ids: two tokenizers, and padding. Id 0 is padding everywhere."""

from __future__ import annotations

import re
import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from numbers import Integral

import numpy as np
from numpy.typing import NDArray

from attakit.errors import StreamError

PADDING, UNKNOWN = 0, 1
_FIRST = 2  # id of the first token that is neither

_WORD = re.compile(r"\w+|[^\w\s]")

Tokenizer = Callable[[list[str]], Sequence[Sequence[int]]]


@dataclass(frozen=True)
class WordTokenizer:
    """Lower-case words, numbered by their frequency in the source. Others are unknown.

    Examples
    --------
    >>> tokenizer = WordTokenizer.fit(["the cat", "The dog, the fox"], vocabulary=4)
    >>> tokenizer(["the cat and the dog"])
    [[2, 1, 1, 2, 1]]
    """

    words: dict[str, int] = field(repr=False)

    @staticmethod
    def fit(texts: Sequence[str], vocabulary: int) -> WordTokenizer:
        """Number the most frequent words, up to the number of free ids."""
        counts = Counter(word for text in texts for word in split_words(text))
        ranked = sorted(counts, key=lambda word: (-counts[word], word))[: vocabulary - _FIRST]
        return WordTokenizer({word: place for place, word in enumerate(ranked, start=_FIRST)})

    def __call__(self, texts: list[str]) -> list[list[int]]:
        return [[self.words.get(word, UNKNOWN) for word in split_words(text)] for text in texts]


@dataclass(frozen=True)
class NgramTokenizer:
    """Words and their pieces of three letters, each hashed to an id. Needs no source.

    Words that look alike share pieces, within a text or between related languages.

    Examples
    --------
    >>> tokens = NgramTokenizer(1000)(["tea"])[0]
    >>> len(tokens), tokens == NgramTokenizer(1000)(["Tea"])[0]
    (4, True)
    """

    vocabulary: int

    def __call__(self, texts: list[str]) -> list[list[int]]:
        return [[self._id(piece) for piece in _pieces(text)] for text in texts]

    def _id(self, piece: str) -> int:
        # Not hash(), which differs between processes.
        return _FIRST + zlib.crc32(piece.encode()) % (self.vocabulary - _FIRST)


def split_words(text: str) -> list[str]:
    """Return the words and punctuation marks of a text, in lower case.

    >>> split_words("Isn't it?")
    ['isn', "'", 't', 'it', '?']
    """
    return _WORD.findall(text.lower())


def _pieces(text: str) -> Iterator[str]:
    for word in split_words(text):
        yield word
        marked = f"<{word}>"
        yield from (marked[start : start + 3] for start in range(max(1, len(marked) - 2)))


def pad_tokens(
    found: Sequence[Sequence[int]], *, length: int, vocabulary: int, who: str
) -> NDArray[np.int64]:
    """Return rows of equal length: longer ones are cut, shorter ones are padded.

    >>> pad_tokens([[5, 6, 7], [8]], length=2, vocabulary=10, who="tokens").tolist()
    [[5, 6], [8, 0]]
    """
    padded = np.full((len(found), length), PADDING, dtype=np.int64)
    for row, tokens in enumerate(found):
        kept = list(tokens)[:length]
        for token in kept:
            if not isinstance(token, Integral) or not 0 <= token < vocabulary:
                raise StreamError(
                    f"{who}: token ids must be whole numbers from 0 to {vocabulary - 1}, got "
                    f"{token!r}. Set vocabulary to the number of ids."
                )
        padded[row, : len(kept)] = kept
    return padded
