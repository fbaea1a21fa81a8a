"""Arguments of public methods, of the types that these take: told at the door, by their names, not from the depths."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from numbers import Integral, Number

from alluvium.errors import WrongType


def text_of(given: object, name: str) -> str:
    """A text.

    Raises:
        WrongType: It is none.
    """
    if isinstance(given, str):
        return plain(given)
    raise _wrong(given, name, "text")


def plain(text: str) -> str:
    """Python's own text of one of a kind of its own (a member of an enumeration, NumPy's): encoders take no other."""
    return str.__str__(text)


def texts_of(given: object, name: str) -> tuple[str, ...]:
    """Texts. One alone is none: its letters are not meant.

    Raises:
        WrongType: They are none.
    """
    if isinstance(given, Iterable) and not isinstance(given, (str, bytes)):
        found = tuple(given)
        if all(isinstance(each, str) for each in found):
            return tuple(map(plain, found))
    raise _wrong(given, name, "a list of texts")


def flag_of(given: object, name: str) -> bool:
    """True or false, and nothing that Python only takes for one: the text "false" would be true.

    Raises:
        WrongType: It is neither.
    """
    if isinstance(given, bool):
        return given
    raise _wrong(given, name, "True or False")


def property_texts(given: object) -> dict[str, str]:
    """Properties as the log has them: texts; numbers and truth values become such.

    Raises:
        WrongType: They are no mapping, or of other types.
    """
    if not isinstance(given, Mapping):
        raise _wrong(given, "properties", "a mapping of names to texts")
    found = {}
    for name, value in given.items():
        if not isinstance(value, (str, Number)):
            raise _wrong(value, f"the value of {name!r}", "text")
        found[text_of(name, "a property's name")] = _property_text(value)
    return found


def _property_text(value: object) -> str:
    if isinstance(value, str):
        return plain(value)
    if isinstance(value, bool):
        return str(value).lower()
    # A member of an enumeration of numbers is printed by its name.
    return str(int(value)) if isinstance(value, Integral) else str(value)


def _wrong(given: object, name: str, kind: str) -> WrongType:
    return WrongType(f"{name} must be {kind}, not {given!r:.80} of type {type(given).__name__}")
