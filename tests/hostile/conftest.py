"""Tables whose log says what no honest writer says."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import pytest
from fuzz_tables import FuzzTable, add, column, metadata, protocol, stats

Build = Callable[..., "Hostile"]


class Hostile:
    """Two commits of one row each, and what is put on top of them."""

    def __init__(self, root: Path, table: FuzzTable) -> None:
        self.root = root
        self.table = table

    def commit(self, version: int, *actions: Mapping[str, object]) -> Hostile:
        self.table.commit(version, *actions)
        return self

    def put(self, path: str, data: bytes) -> Hostile:
        self.table.files[path] = data
        return self

    def write(self) -> str:
        for path, data in self.table.files.items():
            target = self.root / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(data)
        return str(self.root)


@pytest.fixture
def build(tmp_path: Path) -> Build:
    """Makes a table of rows `id` 0 and 1."""

    def make(
        columns: Sequence[object] = (),
        partition_by: Sequence[str] = (),
        features: Sequence[str] = (),
        configuration: Mapping[str, str] | None = None,
        id_metadata: Mapping[str, object] | None = None,
    ) -> Hostile:
        table = FuzzTable("hostile")
        for version in range(2):
            size = table.data(f"f{version}.parquet", {"id": [version]})
            actions = [add(f"f{version}.parquet", size, dict.fromkeys(partition_by), stats=stats([version]))]
            if version == 0:
                schema = [column("id", "long", **(id_metadata or {})), *columns]
                actions = [protocol(*features), metadata(schema, partition_by, **(configuration or {})), *actions]
            table.commit(version, *actions)
        return Hostile(tmp_path / "table", table)

    return make
