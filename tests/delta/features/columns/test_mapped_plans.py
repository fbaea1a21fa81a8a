"""Plans over mapped columns: the names that files have, under which nothing of the table's own is to be found."""

from __future__ import annotations

import uuid

import pyarrow as pa
import pytest
from delta_values import make_config, make_files
from mapped_table import features, mapped

from alluvium.delta.features.columns.column_mapping import FEATURE, is_used, on_scan, on_write
from alluvium.delta.features.feature import ScanContext
from alluvium.delta.terms.config import TableConfig
from alluvium.delta.view.scan import scan_files
from alluvium.delta.write.write import plan_write
from alluvium.plan.scan import FIELD_ID, LABEL, FileConstant, Literal, OutputColumn, Physical, ScanPart, ScanPlan
from alluvium.schema.types import LONG, STRING, Array, DataType, Field, Map, Struct
from alluvium.storage.stores.memory import MemoryStore

MADE = [f"col-{uuid.UUID(int=n)}" for n in range(9)]


def config_of(mode: str, names: list[str]) -> TableConfig:
    """A table of `a`, a struct `s` with `x` within arrays and maps, and the partition column `b`, by their names in files."""
    inner = Struct((mapped("x", LONG, names[2], 3),))
    kind: DataType = Array(Map(STRING, inner)) if mode != "plain" else inner
    schema = Struct((mapped("a", LONG, names[0], 1), mapped("s", kind, names[1], 2), mapped("b", STRING, names[3], 4)))
    told = {} if mode in ("none", "plain") else {"delta.columnMapping.mode": mode}
    return make_config(schema, ("b",), told, features("columnMapping"))


def planned(config: TableConfig) -> tuple[ScanPlan, ScanContext]:
    files = make_files({"path": "f", "partitionValues": {config.physical_names["b"]: "v"}})
    output = (
        OutputColumn("b", STRING, True, FileConstant("b", STRING)), OutputColumn("a", LONG, False, Physical(("a",), LONG)),
        OutputColumn("s", config.schema.fields[1].type, True, Physical(("s",), config.schema.fields[1].type)),
        OutputColumn("other", LONG, True, Physical(("other",), LONG)), OutputColumn("a", LONG, True, Literal(None, LONG)),
    )  # fmt: skip
    read = Struct((*config.data_columns.fields, Field("other", LONG)))
    part = ScanPart("files", scan_files(files, config, "UTC"), "parquet", read, output)
    context = ScanContext(config, files, MemoryStore(uuid.uuid4().hex, "/t"), "UTC")
    return ScanPlan("memory://t", (part,), config.schema, ("b",)), context


@pytest.mark.parametrize("mode", ["name", "id"])
def test_names_of_the_files(mode: str) -> None:
    config = config_of(mode, MADE)
    plan, context = planned(config)
    found = on_scan(plan, context)
    (part,) = found.parts
    assert part.read_schema.names == (MADE[0], MADE[1], "other")
    assert part.read_schema.fields[:2] == config.physical_schema.fields[:2]
    values = [(column.name, column.value) for column in part.output]
    assert values == [
        ("b", FileConstant(MADE[3], STRING)), ("a", Physical((MADE[0],), LONG)), ("s", Physical((MADE[1],), config.physical_schema.fields[1].type)),
        ("other", Physical(("other",), LONG)), ("a", Literal(None, LONG)),
    ]  # fmt: skip
    assert [column.nullable for column in part.output] == [True, False, True, True, True]
    assert part.files["constants"].to_pylist() == [{MADE[3]: "v"}]
    # Those who read see nothing of it, at any depth.
    assert found.schema == Struct(
        (Field("a", LONG), Field("s", Array(Map(STRING, Struct((Field("x", LONG),))))), Field("b", STRING))
    )
    assert found.partition_columns == ("b",)


@pytest.mark.parametrize("odd", range(4))
@pytest.mark.parametrize("mode", ["name", "id"])
def test_names_that_another_column_may_have_had(mode: str, odd: int) -> None:
    """Found by id, all of them get names that no file has; made-up ones are nobody else's."""
    names = [*MADE[:4]]
    names[odd] = "a" if odd else "col-1"
    config = config_of(mode, names)
    plan, context = planned(config)
    part = on_scan(plan, context).parts[0]
    if mode == "name":
        assert part.read_schema.fields[:2] == config.physical_schema.fields[:2]
        return
    shown = [f"{name}#{number}" for number, name in enumerate(names, 1)]
    first, second = part.read_schema.fields[:2]
    assert (first.name, dict(first.metadata)) == (shown[0], {FIELD_ID: 1, LABEL: True})
    assert (second.name, second.metadata[FIELD_ID]) == (shown[1], 2)
    deep = Struct((Field(shown[2], LONG, True, {FIELD_ID: 3, LABEL: True}),))
    assert second.type == Array(Map(STRING, deep))
    assert [column.value for column in part.output[:3]] == [
        FileConstant(shown[3], STRING), Physical((shown[0],), LONG), Physical((shown[1],), Array(Map(STRING, deep))),
    ]  # fmt: skip
    assert part.files["constants"].to_pylist() == [{shown[3]: "v"}]


@pytest.mark.parametrize(
    "name", [f"col-{uuid.UUID(int=5)}x", f"xcol-{uuid.UUID(int=5)}", f"col-{str(uuid.UUID(int=171)).upper()}", "col-"]
)
def test_names_that_are_nearly_made_up(name: str) -> None:
    plan, context = planned(config_of("id", [name, *MADE[1:4]]))
    assert on_scan(plan, context).parts[0].read_schema.names[0] == f"{name}#1"


def test_a_table_that_maps_nothing() -> None:
    plan, context = planned(config_of("none", ["a", "s", "x", "b"]))
    assert on_scan(plan, context) is plan
    written = plan_write(context.config, "memory://t")
    assert on_write(written, context.config) is written
    bare = make_config(Struct((Field("a", LONG),)), (), {}, features("columnMapping"))
    assert not is_used(bare)
    for text, used in (("name", True), ("ID", True), ("none", False), ("NONE", False)):
        assert is_used(make_config(properties={"delta.columnMapping.mode": text})) == used


def test_a_table_without_partitions_has_no_constants() -> None:
    config = make_config(
        Struct((mapped("a", LONG, "p", 1),)), (), {"delta.columnMapping.mode": "name"}, features("columnMapping")
    )
    files = make_files({"path": "f"}, {"path": "g"})
    part = ScanPart("files", scan_files(files, config, "UTC"), "parquet", config.data_columns, ())
    plan = ScanPlan("memory://t", (part, part), config.schema)
    found = on_scan(plan, ScanContext(config, files, MemoryStore(uuid.uuid4().hex, "/t"), "UTC"))
    assert [one.files["constants"].to_pylist() for one in found.parts] == [[{}, {}]] * 2
    assert found.parts[0].files.num_rows == 2 and isinstance(found.parts[0].files, pa.Table)


@pytest.mark.parametrize("mode", ["name", "id"])
def test_what_is_written_has_the_files_names(mode: str) -> None:
    """And so have their statistics."""
    config = config_of("plain", MADE)
    config = make_config(config.schema, ("b",), {"delta.columnMapping.mode": mode}, features("columnMapping"))
    plan = plan_write(config, "memory://t")
    assert plan.stored is not None
    assert [(f.name, dict(f.metadata)) for f in plan.stored.fields] == [
        (MADE[0], {FIELD_ID: 1}),
        (MADE[1], {FIELD_ID: 2}),
        (MADE[3], {FIELD_ID: 4}),
    ]
    assert [leaf.path for leaf in plan.stats_columns] == [(MADE[0],), (MADE[1], MADE[2])]
    assert FEATURE.on_write is on_write and FEATURE.on_scan is on_scan
