"""Tables that are to be compatible with Iceberg, of either version."""

from __future__ import annotations

import pytest

from alluvium.delta.description.create import NewTable, table_config
from alluvium.delta.terms.config import TableConfig
from alluvium.delta.write.write import plan_write
from alluvium.errors import InvalidRequest
from alluvium.schema.types import LONG, STRING, Field, Struct

SCHEMA = Struct((Field("id", LONG), Field("p", STRING)))


def enabling(version: int) -> str:
    return f"delta.enableIcebergCompatV{version}"


def config_of(
    version: int, schema: Struct = SCHEMA, partition_by: tuple[str, ...] = (), **properties: str
) -> TableConfig:
    return table_config(NewTable(schema, partition_by, {enabling(version): "true", **properties}))


def refusal(config: TableConfig) -> InvalidRequest:
    """What a writer of the table is told."""
    with pytest.raises(InvalidRequest) as caught:
        plan_write(config, "url")
    assert caught.value.code == "iceberg-compat" and "delta.enableIcebergCompatV" in (caught.value.hint or "")
    return caught.value
