"""Wrap the prose of Markdown files: `python tests/wrap_prose.py README.md docs/*.md`.

Only paragraphs with a line that is too long change. Tables, code and headings stay as they are.
"""

import re
import sys
from pathlib import Path

from prose import WIDTH, paragraphs

# Markers of lists and quotes, and the spaces around them.
PREFIX = re.compile(r"^(?:\s*(?:[-*+]|\d+[.)]|>)\s+)*\s*")
# A word; code and the address of a link stay in one piece.
WORD = re.compile(r"(?:`[^`]*`|[^\s`])+")
# At the start of a line this would begin a list, a heading or a quote.
MARKER = re.compile(r"(?:[-+*#>=]+|\d+[.)])$")


def wrap(markdown: str, width: int = WIDTH) -> str:
    """The same text with lines of at most `width` characters where they can be broken.

    >>> print(wrap("- one two three", width=9))
    - one two
      three
    """
    lines = markdown.splitlines()
    for start, end in reversed(paragraphs(markdown)):
        if any(len(line) > width for line in lines[start:end]):
            lines[start:end] = _wrapped(lines[start:end], width)
    return "\n".join(lines) + "\n"


def _wrapped(lines: list[str], width: int) -> list[str]:
    found = PREFIX.match(lines[0])
    prefix = found[0] if found else ""
    rest = re.sub(r"[^>\s]", " ", prefix)
    text = " ".join([lines[0][len(prefix) :], *(line.lstrip("> ") for line in lines[1:])])
    first, *others = _words(text)
    wrapped = [prefix + first]
    for word in others:
        if len(wrapped[-1]) + 1 + len(word) <= width:
            wrapped[-1] += " " + word
        else:
            wrapped.append(rest + word)
    return wrapped


def _words(text: str) -> list[str]:
    words: list[str] = []
    for word in WORD.findall(text):
        if words and MARKER.match(word):
            words[-1] += " " + word
        else:
            words.append(word)
    return words


if __name__ == "__main__":
    for name in sys.argv[1:]:
        path = Path(name)
        before = path.read_text(encoding="utf-8")
        if (after := wrap(before)) != before:
            path.write_text(after, encoding="utf-8")
