"""Numbers in the reasons that the gate gives, so that a reader never sees a contradiction."""

from __future__ import annotations

import math

_MINUS = "\N{MINUS SIGN}"
_SPACE = "\N{NO-BREAK SPACE}"  # as on the pages: a sign is never parted from its number
_MOST_DIGITS = 4
_STEPS = ((10, 1), (50, 5), (200, 10), (math.inf, 50))  # up to a number, round to multiples


def percent(share: float, digits: int = 0, *, other: float | None = None) -> str:
    """A share in percent, with more digits if it takes them to tell it from another one.

    >>> percent(0.437), percent(0.84996, 1, other=0.85)
    ('44\\xa0%', '84.996\\xa0%')
    """
    found = f"{100 * share:.{digits}f}"
    if other is None or digits >= _MOST_DIGITS or found != f"{100 * other:.{digits}f}":
        return f"{found}{_SPACE}%"
    return percent(share, digits + 1, other=other)


def points(difference: float, other: float) -> str:
    """A difference of shares in points, with as many digits as tell it from another one.

    >>> points(-0.0504, -0.05).replace("\\N{MINUS SIGN}", "-"), points(0.4, -0.05)
    ('-5.04', '+40.0')
    """
    digits = 1
    while digits < _MOST_DIGITS and _signed(difference, digits) == _signed(other, digits):
        digits += 1
    return _signed(difference, digits)


def allowed(margin: float) -> str:
    """A margin that a difference may fall below zero, in points.

    >>> allowed(0.05).replace("\\N{MINUS SIGN}", "-"), allowed(0.0)
    ('-5', '0')
    """
    return f"{_MINUS if margin else ''}{100 * margin:g}"


def about(count: int) -> str:
    """A number that is only estimated.

    >>> about(7), about(37), about(103), about(1234)
    ('7', '40', '110', '1250')
    """
    step = next(step for most, step in _STEPS if count <= most)
    return str(math.ceil(count / step) * step)


def _signed(difference: float, digits: int) -> str:
    rounded = f"{100 * difference:+.{digits}f}"
    if float(rounded) == 0:
        return rounded[1:]
    return rounded.replace("-", _MINUS)
