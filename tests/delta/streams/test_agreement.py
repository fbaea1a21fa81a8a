"""What a reader agrees to, case by case: options, settings of all streams and of one."""

from __future__ import annotations

import pytest

from alluvium.delta.streams.agreement import DROP, RENAME, TYPE_CHANGE, Agreement, ensure_agreed, java_hash
from alluvium.delta.streams.column_changes import ColumnChanges
from alluvium.errors import InvalidRequest
from alluvium.schema import types as t

PLACE = "file:/c/sources/0"
SQL = "spark.databricks.delta.streaming."
ONE = f".ckpt_{java_hash(PLACE)}"


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("", 0), ("a", 97), ("hello", 99162322), ("polygenelubricants", -(2**31)), ("Aa", 2112), ("BB", 2112),
        ("ä", 228), ("€", 8364), ("😀", 1772899), ("z" * 100, 921283200),
    ],
)  # fmt: skip
def test_hashes_are_javas(text: str, number: int) -> None:
    expected = 0
    for unit in memoryview(text.encode("utf-16-le")).cast("H"):
        expected = (expected * 31 + unit + 2**31) % 2**32 - 2**31
    assert java_hash(text) == number == expected


@pytest.mark.parametrize(
    ("options", "settings", "covered"),
    [
        ({}, {}, ()),
        ({RENAME: "always"}, {}, (RENAME,)), ({DROP: " Always "}, {}, (DROP,)), ({TYPE_CHANGE: "7"}, {}, (TYPE_CHANGE,)),
        ({RENAME: "6", DROP: "8", TYPE_CHANGE: "77"}, {}, ()), ({RENAME: "true"}, {}, ()),
        ({}, {f"{SQL}allowSourceColumnRename": "always"}, (RENAME,)), ({}, {f"{SQL}allowSourceColumnDrop": "Always"}, (DROP,)),
        ({}, {f"{SQL}allowSourceColumnTypeChange": "ALWAYS"}, (TYPE_CHANGE,)),
        ({}, {f"{SQL}allowSourceColumnRenameAndDrop": "always"}, (RENAME, DROP)),
        # A version is one of a single stream, whose setting has its name.
        ({}, {f"{SQL}allowSourceColumnRename": "7"}, ()),
        ({}, {f"{SQL}allowSourceColumnRename{ONE}": "7"}, (RENAME,)), ({}, {f"{SQL}allowSourceColumnRename{ONE}": "6"}, ()),
        ({}, {f"{SQL}allowSourceColumnDrop{ONE}": "always"}, (DROP,)),
        ({}, {f"{SQL}allowSourceColumnRenameAndDrop{ONE}": "7"}, (RENAME, DROP)),
        ({}, {f"{SQL}allowSourceColumnTypeChange.ckpt_1": "always"}, ()),
        ({DROP: "no"}, {f"{SQL}allowSourceColumnDrop": "always"}, (DROP,)),
    ],
)  # fmt: skip
def test_what_is_agreed_to(options: dict[str, str], settings: dict[str, str], covered: tuple[str, ...]) -> None:
    agreement = Agreement(options, settings.get)
    assert tuple(kind for kind in (RENAME, DROP, TYPE_CHANGE) if agreement.covers(kind, 7, PLACE)) == covered
    parts = {
        RENAME: ((("a", "b"),), (), (), ()),
        DROP: ((), ("a",), (), ()),
        TYPE_CHANGE: ((), (), (("a", t.BYTE, t.SHORT),), ()),
    }
    for kind, changed in parts.items():
        changes = ColumnChanges(*changed)  # type: ignore[arg-type]
        if kind in covered:
            ensure_agreed(changes, (5, 7), PLACE, agreement)
            continue
        with pytest.raises(InvalidRequest) as caught:
            ensure_agreed(changes, (5, 7), PLACE, agreement)
        assert (caught.value.code, caught.value.version) == ("stream-change-not-agreed", 7)
        assert f'.option("{kind}", "7")' in (caught.value.hint or "") and f"{SQL}{kind}{ONE}" in (
            caught.value.hint or ""
        )


def test_all_that_is_missing_is_named() -> None:
    changes = ColumnChanges((("a", "b"),), ("c",), (("d", t.BYTE, t.SHORT),), ())
    with pytest.raises(InvalidRequest) as caught:
        ensure_agreed(changes, (5, 7), PLACE, Agreement({DROP: "always"}, {}.get))
    hint = caught.value.hint or ""
    assert [kind in hint for kind in (RENAME, DROP, TYPE_CHANGE)] == [True, False, True]
    ensure_agreed(ColumnChanges((), (), (), ()), (5, 7), PLACE, Agreement({}, {}.get))


def test_types_that_clash_cannot_be_agreed_to() -> None:
    agreement = Agreement(dict.fromkeys((RENAME, DROP, TYPE_CHANGE), "always"), {}.get)
    with pytest.raises(InvalidRequest) as caught:
        ensure_agreed(ColumnChanges((), (), (), ("x", "y")), (5, 7), PLACE, agreement)
    assert (caught.value.code, caught.value.version, caught.value.column) == ("stream-schema-changed", 7, "x")


@pytest.mark.parametrize(
    ("location", "place", "settings", "fits"),
    [
        ("/c", "file:/c/sources/0", {}, True), ("file:///c/", "file:/c/sources/0", {}, True), ("/c/log", PLACE, {}, True),
        ("file:/c/log", "/c/sources/0", {}, True), ("//c/log", PLACE, {}, True), ("/cc", PLACE, {}, False),
        ("/", PLACE, {}, False), ("/d", PLACE, {}, False), ("s3://b/c/log", "s3://b/c/sources/1", {}, True),
        ("s3://b/d", "s3://b/c/sources/1", {}, False), ("c/log", "c/sources/0", {}, True), ("/c/log", "c/sources/0", {}, False),
        ("/d", PLACE, {f"{SQL}allowSchemaLocationOutsideCheckpointLocation": "True"}, True),
        ("/d", PLACE, {f"{SQL}allowSchemaLocationOutsideCheckpointLocation": "false"}, False),
        ("/a/sources/1/x", "/a/sources/1/sources/0", {}, True), ("/a", "/a/sources/1/sources/0", {}, False),
    ],
)  # fmt: skip
def test_the_log_of_columns_lies_in_the_checkpoint(
    location: str, place: str, settings: dict[str, str], fits: bool
) -> None:
    agreement = Agreement({}, settings.get)
    if fits:
        agreement.ensure_under(location, place)
        return
    with pytest.raises(InvalidRequest) as caught:
        agreement.ensure_under(location, place)
    assert (caught.value.code, caught.value.path) == ("tracking-location-outside", location)
