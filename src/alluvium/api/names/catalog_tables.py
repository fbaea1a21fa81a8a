"""`spark.catalog.createTable` for tables of ours."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from alluvium.api.delta.creation.create import create
from alluvium.api.delta.creation.request import Mode, Wanted
from alluvium.api.delta.delta_columns import fields_of
from alluvium.api.reader import WHERE_POSSIBLE, read
from alluvium.errors import InvalidRequest
from alluvium.spark.statements.resolve import named_rows


def create_in_catalog(
    spark: SparkSession,
    name: str,
    path: str | None,
    schema: StructType | None,
    description: str | None,
    options: Mapping[str, object],
) -> DataFrame:
    """A table by its name, new or one that lies at the path; options that are `delta.*` are properties of it.

    Returns:
        Its rows.

    Raises:
        InvalidRequest: There is a table of that name, or another at the path than the one that is described.
    """
    given = dict(options)
    place = path if path is not None else given.pop("path", None)
    if place is not None and not isinstance(place, str):
        raise InvalidRequest(f"a path must be text, not {place!r}", code="no-path")
    access, _ = create(
        spark,
        Wanted(
            Mode.CREATE,
            name,
            location=place,
            columns=() if schema is None else fields_of(schema),
            properties={key: str(value) for key, value in given.items()},
            comment=description or None,
            compares=True,
        ),
    )
    assert access.entry is not None, "a table with a name"
    return named_rows(read(spark, access.url, follow=WHERE_POSSIBLE), access.entry.parts)
