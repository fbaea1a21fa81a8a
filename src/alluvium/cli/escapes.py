"""Text of a table on its way to a terminal: what would move the cursor, fill the clipboard or turn words around is
shown as its number instead. Names, cells and messages are the table's, hence a stranger's.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable
from typing import TypeAlias

#: Joiners shape letters and emojis, and do nothing else; a table's cell may have several lines.
_HARMLESS = frozenset("\n\t\u200c\u200d")
#: Controls, formats (such as those that change the direction of writing), surrogates, line and paragraph separators.
_CATEGORIES = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})
_Escape: TypeAlias = Callable[[int], str]


class _Escapes(dict[int, str]):
    """A table for `str.translate`, filled as characters are met: there are a million of them."""

    def __init__(self, escape: _Escape) -> None:
        super().__init__()
        self._escape = escape

    def __missing__(self, code: int) -> str:
        character = chr(code)
        acts = unicodedata.category(character) in _CATEGORIES and character not in _HARMLESS
        self[code] = shown = self._escape(code) if acts else character
        return shown


def _number(code: int) -> str:
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def _json_number(code: int) -> str:
    units = chr(code).encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[n]:02x}{units[n + 1]:02x}" for n in range(0, len(units), 2))


_TO_SHOW, _FOR_JSON = _Escapes(_number), _Escapes(_json_number)


def printable(text: str) -> str:
    """The text with every character that a terminal may act on written as its number: `\\x1b`, `\\u202e`."""
    return text if text.isprintable() else text.translate(_TO_SHOW)


def json_printable(text: str) -> str:
    """JSON that means the same, without such characters."""
    return text.translate(_FOR_JSON)


def may_be_formula(text: str) -> bool:
    """Whether a spreadsheet that opens a CSV file may take the cell for a formula, and run it."""
    return text[:1] in ("=", "@", "\t", "\r") or (text[:1] in ("+", "-") and not _is_number(text))


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
