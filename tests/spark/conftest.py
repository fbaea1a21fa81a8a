"""A table that is nothing but Parquet files in a directory, as a `ScanSource`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from alluvium.expr.tree import Column, Compare, Expression, conjuncts
from alluvium.expr.tree import Literal as Constant
from alluvium.plan.scan import FileConstant, OutputColumn, Physical, ScanPart, ScanPlan
from alluvium.schema.arrow import schema_from_arrow, to_arrow
from alluvium.schema.types import Field, Struct

Partition = dict[str, object]


@dataclass
class DirectorySource:
    """Files of equal schema; prunes by equality with partition values only, as a format would, and counts its calls."""

    root: Path
    plan: ScanPlan
    identity: tuple[str, ...]
    asked: list[Expression | None] = field(default_factory=list)
    failure: Exception | None = None

    @property
    def size_bytes(self) -> int:
        return sum(sum(p.files["size"].to_pylist()) for p in self.plan.parts)

    def plan_scan(self, where: Expression | None = None) -> ScanPlan:
        self.asked.append(where)
        if where is None:
            return self.plan
        if self.failure is not None:
            raise self.failure
        wanted = {
            node.left.path[0]: node.right.value
            for node in conjuncts(where)
            if isinstance(node, Compare)
            and node.op == "="
            and isinstance(node.left, Column)
            and isinstance(node.right, Constant)
            and node.left.path[0] in self.plan.partition_columns
        }
        return replace(self.plan, parts=tuple(replace(p, files=_matching(p, wanted)) for p in self.plan.parts))


def _matching(part: ScanPart, wanted: Partition) -> pa.Table:
    physical = {c.name: c.value.name for c in part.output if isinstance(c.value, FileConstant)}
    keep = [
        all(constants[physical[name]] == value for name, value in wanted.items())
        for constants in part.files["constants"].to_pylist()
    ]
    return part.files.filter(pa.array(keep, pa.bool_()))


MakeSource = Callable[..., DirectorySource]


@pytest.fixture
def make_source(tmp_path: Path) -> MakeSource:
    """Writes tables as files and returns the source; `partitions` gives each file its constants."""

    def make(
        tables: Sequence[pa.Table],
        partitions: Sequence[Partition] | None = None,
        partition_schema: Struct = Struct(),  # noqa: B008
        root: Path = tmp_path / "a table%20é",
    ) -> DirectorySource:
        root.mkdir(exist_ok=True)
        data = schema_from_arrow(tables[0].schema)
        paths = [root / f"part {number}%.parquet" for number in range(len(tables))]
        for path, table in zip(paths, tables, strict=True):
            pq.write_table(table, path, row_group_size=1000)
        constants = pa.array(partitions or [{}] * len(tables), to_arrow(partition_schema))
        files = pa.table(
            {
                "path": [p.name for p in paths],
                "size": pa.array([p.stat().st_size for p in paths], pa.int64()),
                "modification_time_ms": pa.array([p.stat().st_mtime_ns // 1_000_000 for p in paths], pa.int64()),
                "num_rows": pa.array([t.num_rows for t in tables], pa.int64()),
                "constants": constants,
                "mask": pa.nulls(len(tables), pa.binary()),
            }
        )
        output = (
            *(OutputColumn(f.name, f.type, f.nullable, Physical((f.name,), f.type)) for f in data.fields),
            *(OutputColumn(f.name, f.type, True, FileConstant(f.name, f.type)) for f in partition_schema.fields),
        )
        schema = Struct(tuple(Field(c.name, c.type, c.nullable) for c in output))
        part = ScanPart("all", files, "parquet", data, output)
        plan = ScanPlan(f"file:{root}", (part,), schema, partition_schema.names)
        return DirectorySource(root, plan, (str(root), "0"))

    return make
