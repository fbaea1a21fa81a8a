"""The registry of doors: what is above it names no format, and one entry more opens one format more."""

from __future__ import annotations

import ast
import inspect
import sys
from pathlib import Path
from types import ModuleType

import pyarrow as pa
import pytest
from paimon_rows import make

import alluvium
from alluvium.api import doors
from alluvium.api.doors import DELTA, FORMATS, PAIMON, Door, Format, FrameDoor, format_at, format_named, has_table
from alluvium.api.views.explanation import Explanation
from alluvium.errors import InvalidRequest, NotFound, UnsupportedFeature
from alluvium.storage.open import open_store

ROOM = Path(doors.__file__).parent
#: They ask the registry; whatever only one format has stands behind its door.
ABOVE = ("calls", "explain", "open", "reader", "server_scan", "writer")


def imported(path: Path) -> set[str]:
    """Modules that are imported when the module is, those for type checkers left out."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return {node.module or "" for node in tree.body if isinstance(node, ast.ImportFrom)}


@pytest.mark.parametrize("name", ABOVE)
def test_nobody_else_knows_a_format(name: str) -> None:
    known = tuple(f"alluvium.{room}" for room in ("api.delta", "api.paimon", "delta", "paimon"))
    assert not [module for module in imported(ROOM / f"{name}.py") if module.startswith(known)]


def asked(protocol: type) -> dict[str, list[str]]:
    """The arguments of each function of a door."""
    return {
        name: list(inspect.signature(function).parameters)[1:]
        for name, function in vars(protocol).items()
        if inspect.isfunction(function) and not name.startswith("_")
    }


@pytest.mark.parametrize("each", FORMATS, ids=lambda each: each.name)
def test_doors_have_what_is_asked_of_them(each: Format) -> None:
    pytest.importorskip("pyspark")
    for protocol, door in ((Door, each.door), (FrameDoor, each.frame_door)):
        assert len(asked(protocol)) >= 3
        for name, arguments in asked(protocol).items():
            assert list(inspect.signature(getattr(door, name)).parameters) == arguments, name


def test_what_lies_at_a_place(tmp_path: Path) -> None:
    store = open_store(str(tmp_path))
    assert (format_at(store), has_table(store)) == (DELTA, False)
    store.put_if_absent("schema/schema-0", b"{}")
    assert (format_at(store), has_table(store)) == (PAIMON, True)
    store.put_if_absent("_delta_log/00000000000000000000.json", b"{}")
    assert (format_at(store), has_table(store)) == (DELTA, True)


def test_a_table_of_another_format_says_what_to_say_instead(tmp_path: Path) -> None:
    make(str(tmp_path / "t"))
    with pytest.raises(UnsupportedFeature) as caught:
        alluvium.write(pa.table({"k": [1]}), str(tmp_path / "t"), mode="append")
    assert "it is a Paimon table" in caught.value.message and caught.value.features == ("paimon",)
    assert 'format="paimon"' in str(caught.value.hint) and "PaimonTable.forPath" in str(caught.value.hint)


def test_a_name_that_is_no_format() -> None:
    assert format_named("PAIMON") is PAIMON
    with pytest.raises(InvalidRequest) as caught:
        format_named("deltas")
    assert caught.value.code == "unknown-format" and "delta" in (caught.value.hint or "")


@pytest.fixture
def lines(monkeypatch: pytest.MonkeyPatch) -> Format:
    """A third format: its tables are folders with a file `lines/...`."""

    class LinesDoor(ModuleType):
        @staticmethod
        def open_view(store, asked, access):
            return (store.url, asked.tag)

        @staticmethod
        def explain(store, where):
            return Explanation("portable", "line by line", store.url, "0", 1, 2, {})

    monkeypatch.setitem(sys.modules, "lines_door", LinesDoor("lines_door"))
    entry = Format("lines", "Lines", "lines_door", "lines_frame_door", ("lines", ""))
    monkeypatch.setattr(doors, "FORMATS", (*FORMATS, entry))
    return entry


def test_a_third_format_is_one_more_entry(lines: Format, tmp_path: Path) -> None:
    store = open_store(str(tmp_path / "t"))
    store.put_if_absent("lines/1", b"x")
    assert alluvium.open(store.url) == (store.url, None)
    assert alluvium.open(store.url, tag="x") == (store.url, "x")
    assert alluvium.explain(store.url).why == "line by line"
    assert format_named("Lines") is lines
    with pytest.raises(NotFound):
        alluvium.open(str(tmp_path / "nothing"))
