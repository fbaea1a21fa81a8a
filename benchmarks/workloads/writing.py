"""Writes of many rows: plain, and with what a table asks of its writers."""

from __future__ import annotations

import shutil
from collections.abc import Callable
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
#: By feature: what the table is, and the column that the data brings where the table does not make it.
_FEATURES: dict[str, tuple[dict[str, dict[str, Any]], dict[str, str], str | None]] = {
    "constraints": ({}, _CONSTRAINTS, None),
    "generated": ({"made": {"delta.generationExpression": _GENERATION}}, {}, f"{_GENERATION} as made"),
    "identity": ({"made": _IDENTITY}, {}, "id as made"),
}


def _fill(feature: str) -> Callable[[Bench, str, int], Request]:
    def request(bench: Bench, engine: str, turn: int) -> Request:
        metadata, properties, brought = _FEATURES[feature]
        target = bench.output(engine, feature)
        plain = engine.endswith("-plain")
        data.make_empty(target, {name: {} if plain else m for name, m in metadata.items()}, {} if plain else properties)
        columns = ["*", brought] if plain and brought is not None else ["*"]
        return {"do": "fill", "source": str(bench.scan_table()), "path": str(target), "columns": columns}

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
    _filled("generated", "generated column / the same brought by the data"),
    _filled("identity", "identity column / numbers brought by the data"),
)
