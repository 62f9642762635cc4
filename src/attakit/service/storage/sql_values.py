"""What both databases can keep, so that odd texts and numbers are told apart from odd failures."""

from __future__ import annotations

_LARGEST = 2**63 - 1


def is_text(value: str) -> bool:
    """Whether a text has neither the zero character nor halves of characters.

    >>> is_text("cat"), is_text("c\\x00t"), is_text("\\ud800")
    (True, False, False)
    """
    if "\x00" in value:
        return False
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def is_number(value: int) -> bool:
    """Whether a number can be one that the database gave.

    >>> is_number(7), is_number(-1), is_number(10**30)
    (True, False, False)
    """
    return 0 <= value <= _LARGEST
