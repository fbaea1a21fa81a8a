"""Writes of many rows: plain, and with what a table asks of its writers."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import data
from workloads.bench import PAIRED_ENGINES, SPARK_ENGINES, Bench, Request, Workload


def _write(bench: Bench, engine: str, turn: int) -> Request:
    target = bench.output(engine, "write")
    shutil.rmtree(target, ignore_errors=True)
    return {"do": "copy", "source": str(bench.scan_table()), "path": str(target)}


_GENERATION = "id * 2 + hash(customer)"
_IDENTITY = {"delta.identity.start": 1, "delta.identity.step": 1, "delta.identity.allowExplicitInsert": False}
_CONSTRAINTS = {
    "delta.constraints.amounts": "amount > -1000 and amount < 1000",
    "delta.constraints.countries": "country <> 'XX' and length(name) > 3",
    "delta.constraints.quantities": "quantity between 0 and 100",
}
_MAPPED = {
    name: {"delta.columnMapping.id": n, "delta.columnMapping.physicalName": f"col-{n}"}
    for n, name in enumerate(data.columns(), 1)
}
_MAPPING = {"delta.columnMapping.mode": "name", "delta.columnMapping.maxColumnId": str(len(_MAPPED))}
_TRACKING = {
    "delta.enableRowTracking": "true",
    "delta.rowTracking.materializedRowIdColumnName": "_row-id-col",
    "delta.rowTracking.materializedRowCommitVersionColumnName": "_row-commit-version-col",
}


@dataclass(frozen=True)
class _Table:
    """What a table asks of its writers.

    Attributes:
        metadata: Of its columns, also of those that `data.rows` does not make.
        properties: Of the table.
        reader_features: What readers must know; with `writer_features` the table is of versions 3 and 7.
        writer_features: What writers must know.
        brought: The column that the data brings where the table does not make it.
    """

    metadata: dict[str, dict[str, Any]] = field(default_factory=dict)
    properties: dict[str, str] = field(default_factory=dict)
    reader_features: tuple[str, ...] = ()
    writer_features: tuple[str, ...] = ()
    brought: str | None = None


_TABLES = {
    "constraints": _Table(properties=_CONSTRAINTS),
    "generated": _Table({"made": {"delta.generationExpression": _GENERATION}}, brought=f"{_GENERATION} as made"),
    "identity": _Table({"made": _IDENTITY}, brought="id as made"),
    "mapping": _Table(_MAPPED, _MAPPING, ("columnMapping",), ("columnMapping",)),
    "tracking": _Table(properties=_TRACKING, writer_features=("rowTracking", "domainMetadata")),
}


def _fill(feature: str, where: str = "true") -> Callable[[Bench, str, int], Request]:
    """Rows into a table that asks for something; the peer has none of it, but a filter by the condition given."""

    def request(bench: Bench, engine: str, turn: int) -> Request:
        table = _TABLES[feature]
        target = bench.output(engine, feature)
        condition = "true"
        if engine.endswith("-plain"):
            condition = where
            data.make_empty(target, {name: {} for name in table.metadata}, {})
            columns = ["*"] if table.brought is None else ["*", table.brought]
        else:
            data.make_empty(target, table.metadata, table.properties, table.reader_features, table.writer_features)
            columns = ["*"]
        source = str(bench.scan_table())
        return {"do": "fill", "source": source, "path": str(target), "columns": columns, "where": condition}

    return request


def _filled(feature: str, title: str) -> Workload:
    return Workload(
        f"write-{feature}",
        f"write of 8 M rows: {title}",
        PAIRED_ENGINES,
        "alluvium",
        1.10,
        _fill(feature),
        rounds=5,
        quick_rounds=2,
        checks=False,
    )


WORKLOADS = (
    Workload(
        "write", "write of 8 M rows", SPARK_ENGINES, "alluvium", 1.05, _write, rounds=5, quick_rounds=2, checks=False
    ),
    _filled("constraints", "3 CHECK constraints / none"),
    # The least that a look at each row costs: Spark's own filter by the same conditions, which all rows pass.
    Workload(
        "constraints-limit",
        "write of 8 M rows: 3 CHECK constraints / a filter by the same conditions",
        PAIRED_ENGINES[:2],
        "alluvium",
        1.05,
        _fill("constraints", " and ".join(_CONSTRAINTS.values())),
        rounds=9,
        quick_rounds=2,
        checks=False,
    ),
    _filled("generated", "generated column / the same brought by the data"),
    _filled("identity", "identity column / numbers brought by the data"),
    _filled("mapping", "columns mapped by name / as they are called"),
    _filled("tracking", "row tracking / none"),
)
