"""Commands that Markdown texts show: lines of code blocks, and pieces of code within sentences."""

import re
import shlex
from dataclasses import dataclass

from prose import PARSER

PROGRAMS = ("attakit", "make", "pip", "python")
SHELLS = ("", "sh", "bash", "console")


@dataclass(frozen=True)
class Shown:
    """A command as a text shows it; `whole` if a reader can paste it as it is."""

    words: tuple[str, ...]
    whole: bool

    @property
    def options(self) -> list[str]:
        """Names of its options, without their values.

        >>> Shown(("attakit", "plot", "--kind=labels"), whole=False).options
        ['--kind']
        """
        return [word.partition("=")[0] for word in self.words if word.startswith("--")]

    def __str__(self) -> str:
        return shlex.join(self.words)


def commands(markdown: str) -> list[Shown]:
    """All commands of a text.

    >>> [str(each) for each in commands("    make demo  # quick\\n\\nOr `attakit list`.")]
    ['make demo', 'attakit list']
    """
    found = []
    for token in PARSER.parse(markdown):
        if token.type == "code_block" or (token.type == "fence" and token.info in SHELLS):
            lines = token.content.replace("\\\n", " ").splitlines()
            found += [_shown(line, whole=True) for line in lines]
        for piece in token.children or []:
            if piece.type == "code_inline":
                found.append(_shown(piece.content, whole=False))
    return [each for each in found if each is not None]


def _shown(line: str, *, whole: bool) -> Shown | None:
    if not re.match(rf"({'|'.join(PROGRAMS)}) \S", line):
        return None
    return Shown(tuple(shlex.split(line, comments=True)), whole)
