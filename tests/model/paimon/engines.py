"""Engines of Paimon tables by name."""

from __future__ import annotations

from typing import TYPE_CHECKING

from model.engines.reference import ReferenceEngine
from model.paimon.python_engine import PaimonPython

if TYPE_CHECKING:
    from model.script import Engine

#: What pypaimon 2.1 says of what it does not do.
KNOWN = ("",)


def paimon_engines(names: list[str]) -> dict[str, Engine]:
    """Engines, each started."""
    found: dict[str, Engine] = {}
    for name in names:
        found[name] = PaimonPython() if name == "python" else ReferenceEngine(name, frozenset({"append"}), KNOWN)
    return found
