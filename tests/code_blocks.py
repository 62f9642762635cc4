"""Python examples in Markdown texts, and how to run them as a reader would."""

from pathlib import Path

from prose import PARSER

ROOT = Path(__file__).parent.parent
TEXTS = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("deploy/*.md")])
INCLUDED = "--8<--"  # a whole file of examples/, which has tests of its own


def python_blocks(markdown: str) -> list[str]:
    """The Python examples of a text, in their order.

    >>> python_blocks("``` python\\nx = 1\\n```\\n\\n```{.python}\\ny = x\\n```")
    ['x = 1\\n', 'y = x\\n']
    """
    fences = [token for token in PARSER.parse(markdown) if token.type == "fence"]
    blocks = [token.content for token in fences if token.info.strip("{ }.") == "python"]
    return [block for block in blocks if not block.startswith(INCLUDED)]


def blocks_of(page: str) -> list[str]:
    """The Python examples of a page, named by its path in the repository."""
    return python_blocks((ROOT / page).read_text(encoding="utf-8"))


def execute(page, names, **replaced):
    """Run the examples of a page one after the other, as a reader would.

    Returns the names that are defined afterwards. Words of the text can be replaced.
    """
    for number, block in enumerate(blocks_of(page), start=1):
        for word, instead in replaced.items():
            assert word in block
            block = block.replace(word, instead)
        exec(compile(block, f"{page}, example {number}", "exec"), names)
    return names
