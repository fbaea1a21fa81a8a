"""Arguments of types that a method does not take: told by their names, and nothing is written."""

from __future__ import annotations

import enum
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import alluvium
from alluvium.api.delta.portable.delta_table import PortableDeltaTable
from alluvium.delta.view.snapshot import load_snapshot
from alluvium.errors import InvalidRequest, WrongType
from alluvium.storage.open import open_store

#: What is given to them is wrong, which type checkers see.
library: Any = alluvium
DeltaTable: Any = PortableDeltaTable
ROWS = pa.table({"n": [1, 2], "s": ["a", "b"]})
#: What is asked, and what the error says of it.
CALLS: dict[str, tuple[Callable[[str], object], str]] = {
    "open": (lambda url: library.open(5), "a table's place must be text or a path, not 5 of type int"),
    "open, bytes": (lambda url: library.open(b"/t"), "a table's place"),
    "open, access": (lambda url: library.open(url, storage_options=["k"]), "storage_options must map"),
    "open, access by numbers": (lambda url: library.open(url, storage_options={1: "k"}), "storage_options must map"),
    "where": (lambda url: library.open(url).to_arrow(where=True), "a condition must be SQL text, not True"),
    "columns": (lambda url: library.open(url).to_arrow(columns=[1]), "columns must be a list of texts"),
    "metadata": (lambda url: library.open(url).metadata(5), "name must be text"),
    "write, format": (lambda url: library.write(ROWS, url, mode="append", format=5), "format must be text"),
    "write, partitions": (lambda url: library.write(ROWS, url, partition_by=[5]), "partition_by must be a list"),
    "add": (lambda url: library.alter(url).add_columns([5]), "columns must map names to types"),
    "add, a name": (lambda url: library.alter(url).add_columns({5: "int"}), "the name of a column must be text"),
    "rename": (lambda url: library.alter(url).rename_column("n", 5), "new_name must be text"),
    "drop": (lambda url: library.alter(url).drop_columns(["n"]), "the name of a column must be text"),
    "comment": (
        lambda url: library.alter(url).alter_column("n", comment=5),
        "comment must be text, not 5 of type int",
    ),
    "nullable": (lambda url: library.alter(url).alter_column("n", nullable="false"), "nullable must be True or False"),
    "place": (lambda url: library.alter(url).alter_column("n", position=5), "a place must be"),
    "constraint": (lambda url: DeltaTable.forPath(url).addConstraint(5, "n > 0"), "name must be text"),
    "constraint's condition": (lambda url: DeltaTable.forPath(url).addConstraint("c", 5), "expr must be text"),
    "no constraint": (lambda url: library.alter(url).drop_constraint(None), "name must be text, not None"),
    "properties": (
        lambda url: library.alter(url).set_properties(["delta.appendOnly"]),
        "properties must be a mapping",
    ),
    "a property": (lambda url: library.alter(url).set_properties({"k": None}), "the value of 'k' must be text"),
    "a property's name": (lambda url: library.alter(url).set_properties({5: "k"}), "a property's name must be text"),
    "unset": (lambda url: library.alter(url).unset_properties(["k"]), "names must be a list of texts"),
    "unset if": (lambda url: library.alter(url).unset_properties("k", if_exists="no"), "if_exists must be True or"),
    "cluster": (lambda url: library.alter(url).cluster_by(["n"]), "the name of a column must be text"),
    "feature": (lambda url: library.alter(url).add_feature(5), "name must be text"),
    "no feature": (lambda url: library.alter(url).drop_feature(None), "name must be text"),
    "generate": (lambda url: DeltaTable.forPath(url).generate(5), "mode must be text"),
    "alias": (lambda url: DeltaTable.forPath(url).alias(5), "aliasName must be text"),
    "clone": (lambda url: DeltaTable.forPath(url).clone(5), "a table's place"),
    "clone in its place": (
        lambda url: DeltaTable.forPath(url).clone(url + "2", replace="false"),
        "replace must be True",
    ),
    "vacuum": (lambda url: DeltaTable.forPath(url).vacuum("168"), "a retention of so many hours is none: '168'"),
    "vacuum, clones": (lambda url: DeltaTable.forPath(url).vacuum(clones=[5]), "clones must be a list of texts"),
}


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> str:
    url = str(tmp_path_factory.mktemp("arguments") / "t")
    library.write(ROWS, url)
    return url


@pytest.mark.parametrize("name", CALLS)
def test_it_is_told_and_nothing_is_written(url: str, name: str) -> None:
    call, said = CALLS[name]
    with pytest.raises(InvalidRequest) as caught:
        call(url)
    assert isinstance(caught.value, TypeError) and caught.value.code == "wrong-type"
    assert caught.value.message.startswith(said)
    assert library.open(url).version == 0 and not Path(url + "2").exists()


def test_an_access_that_is_none_is_not_shown(url: str) -> None:
    with pytest.raises(WrongType) as caught:
        library.open(url, storage_options="AKIA-and-its-secret")
    assert "secret" not in str(caught.value)


def test_what_is_taken(url: str) -> None:
    """Names in any collection; numbers and truth values of properties."""
    table = library.open(url)
    for columns in (("n",), {"n"}, {"n": 1}, iter(["n"])):
        assert table.to_arrow(columns).column_names == ["n"]
    library.alter(url).set_properties({"k": 1, "delta.appendOnly": False}, dry_run=True)
    DeltaTable.forPath(url).vacuum(np.int64(200), dry_run=True)


class Count(int, enum.Enum):
    THREE = 3


class Name(str, enum.Enum):
    """Texts of a kind of their own, as projects name their columns, conditions and properties."""

    COLUMN = "n"
    PLACE = "day"
    CONDITION = "n = 1"
    VALUE = "n + 1"
    KEY = "team"
    MODE = "append"


def test_texts_of_a_kind_of_their_own(tmp_path: Path) -> None:
    """They are written as what they are: encoders of JSON take Python's own texts alone."""
    url, rows = str(tmp_path / "t"), pa.table({"n": [1, 2, 3], "day": [1, 1, 2]})
    library.write(rows, url, partition_by=Name.PLACE, userMetadata=Name.KEY)
    library.write(rows, url, mode=Name.MODE)
    table = DeltaTable.forPath(url)
    table.optimize().where(np.str_("day = 1")).executeCompaction()
    table.update(Name.CONDITION, {Name.COLUMN: Name.VALUE})
    table.alias(np.str_("t")).merge(rows, np.str_("t.n = s.n"), np.str_("s")).whenMatchedDelete(
        np.str_("s.n = 3")
    ).execute()
    table.delete(np.str_("n = 1"))
    assert sorted(library.open(url).to_arrow().column("n").to_pylist()) == [2, 2, 2, 2]
    change = library.alter(url)
    change.set_properties({Name.KEY: Name.MODE, "three": Count.THREE, "true": True})
    change.alter_column(Name.COLUMN, comment=Name.KEY)
    config = load_snapshot(open_store(url)).config
    assert config.metadata.configuration == {"team": "append", "three": "3", "true": "true"}
    assert config.schema.fields[0].metadata["comment"] == "team"
    change.unset_properties(Name.KEY, np.str_("three"), np.str_("true"))
    table.clone(np.str_(url + "2"), properties={Name.KEY: np.str_("x")})
    assert load_snapshot(open_store(url + "2")).config.metadata.configuration == {"team": "x"}


def test_versions_of_other_libraries(tmp_path: Path) -> None:
    """As a column of pandas or Arrow gives them."""
    url = str(tmp_path / "t")
    library.write(ROWS, url)
    library.write(ROWS, url, mode="append")
    assert library.open(url, version=np.int64(0)).to_arrow().num_rows == 2
    DeltaTable.forPath(url).restoreToVersion(np.int64(0))
    DeltaTable.forPath(url).cloneAtVersion(np.int32(1), url + "2")
    assert library.open(url).to_arrow().num_rows == 2 and library.open(url + "2").to_arrow().num_rows == 4
    for wrong in (np.float64(1), np.bool_(True), 1.0):
        with pytest.raises(InvalidRequest, match="version must be a whole number"):
            library.open(url, version=wrong)


def test_paths_of_other_libraries(url: str) -> None:
    """Such as universal_pathlib's, which are no paths of the local disk, but tell their URL as text."""

    class StorePath:
        def as_uri(self) -> str:
            raise AssertionError("text is asked for")

        def __str__(self) -> str:
            return url

    assert library.open(StorePath()).version == library.open(Path(url)).version == 0
