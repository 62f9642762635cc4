"""Format numbers in the gate's reasons so that they never look contradictory."""

from __future__ import annotations

import math

_MINUS = "\N{MINUS SIGN}"
_SPACE = "\N{NO-BREAK SPACE}"  # as on the pages: keep the sign and the number together
_MOST_DIGITS = 4
_STEPS = ((10, 1), (50, 5), (200, 10), (math.inf, 50))  # up to a number, round to multiples


def percent(share: float, digits: int = 0, *, other: float | None = None) -> str:
    """Format a share in percent, with enough digits to distinguish it from another one.

    >>> percent(0.437), percent(0.84996, 1, other=0.85)
    ('44\\xa0%', '84.996\\xa0%')
    """
    found = f"{100 * share:.{digits}f}"
    if other is None or digits >= _MOST_DIGITS or found != f"{100 * other:.{digits}f}":
        return f"{found}{_SPACE}%"
    return percent(share, digits + 1, other=other)


def points(difference: float, other: float) -> str:
    """Format a difference of shares in points, with enough digits to distinguish it from another.

    >>> points(-0.0504, -0.05).replace("\\N{MINUS SIGN}", "-"), points(0.4, -0.05)
    ('-5.04', '+40.0')
    """
    digits = 1
    while digits < _MOST_DIGITS and _signed(difference, digits) == _signed(other, digits):
        digits += 1
    return _signed(difference, digits)


def allowed(margin: float) -> str:
    """Format a margin by which a difference may fall below zero, in points.

    >>> allowed(0.05).replace("\\N{MINUS SIGN}", "-"), allowed(0.0)
    ('-5', '0')
    """
    return f"{_MINUS if margin else ''}{100 * margin:g}"


def about(count: int) -> str:
    """Format an estimated number.

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
