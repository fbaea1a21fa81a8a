"""A missing file is a conflict where the state that it is of has expired, and what it is where it is another table's."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from paimon_rows import append, open_target

from alluvium.commands.paimon.expired_state import expiry_as_conflict
from alluvium.errors import CommitConflict, NotFound
from alluvium.paimon import PaimonTable
from alluvium.paimon.log.snapshot import Snapshot, load_snapshot
from alluvium.paimon.log.travel import At
from alluvium.storage.open import open_store


def state(path: Path) -> Snapshot:
    """Of a table that has a newer one."""
    PaimonTable.create(str(path), pa.schema([("k", pa.int64())]))
    store = open_store(str(path))
    append(open_target(store), [{"k": 1}])
    base = load_snapshot(store, At())
    append(open_target(store), [{"k": 2}])
    return base


def missing(base: Snapshot, url: str | None) -> None:
    with expiry_as_conflict(base):
        raise NotFound("a data file that the table names is gone", code="missing-file", url=url, path="data-1.parquet")


def test_whose_file_is_missing(tmp_path: Path) -> None:
    base, other = state(tmp_path / "t"), tmp_path / "other"
    other.mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "t")
    for own in (base.store.url, str(tmp_path / "t"), str(tmp_path / "link"), None):
        with pytest.raises(CommitConflict) as conflict:
            missing(base, own)
        assert conflict.value.code == "base-expired" and conflict.value.path == "data-1.parquet"
    with pytest.raises(NotFound) as caught:
        missing(base, str(other))
    assert caught.value.url == str(other)


def test_nothing_has_expired_where_the_state_is_the_newest(tmp_path: Path) -> None:
    base = load_snapshot(state(tmp_path / "t").store, At())
    with pytest.raises(NotFound):
        missing(base, base.store.url)
