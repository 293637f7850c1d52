"""Words for a missing outcome or probability, as forecasting platforms and language models write them."""

from typing import Any

# Text that stands for a missing number, date or truth value, without case and surrounding spaces.
MISSING_WORDS = ("", "na", "n/a", "#n/a", "nan", "-nan", "null", "none", "#na")
# Compared without case and surrounding spaces.
_VOID_WORDS = {*MISSING_WORDS, "-", "missing"}
_VOID_WORDS |= {"void", "voided", "annulled", "cancelled", "canceled", "ambiguous", "unresolved", "pending"}
_VOID_WORDS |= {"abandoned", "postponed", "suspended", "no contest", "no result"}
# Words for an outcome that is neither of two.
_TIES = {"draw", "drawn", "tie", "tied", "push"}


def is_void(value: Any) -> bool:
    """Whether a value stands for no outcome or no probability: null, nan, or a word such as "void"."""
    if isinstance(value, str):
        return value.strip().casefold() in _VOID_WORDS
    return value is None or bool(value != value)


def is_null_word(text: str) -> bool:
    """Whether a text stands for a missing number, as programs write it: an empty one, NA, nan, null."""
    return text.strip().casefold() in MISSING_WORDS


def first_tie(values: Any) -> str:
    """Return the first text that stands for a tie, such as "draw"; "" if there is none."""
    return next((value for value in values if isinstance(value, str) and value.strip().casefold() in _TIES), "")


def first_void_word(values: Any) -> str:
    """Return the first text that stands for no outcome, other than an empty one; "" if there is none."""
    return next((value for value in values if isinstance(value, str) and value.strip() and is_void(value)), "")
