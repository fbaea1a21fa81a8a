"""Types that delta-spark's Python API has names for."""

from __future__ import annotations

from typing import TypeAlias

from pyspark.sql import Column

ExpressionOrColumn: TypeAlias = str | Column
OptionalExpressionOrColumn: TypeAlias = ExpressionOrColumn | None
ColumnMapping: TypeAlias = dict[str, ExpressionOrColumn]
OptionalColumnMapping: TypeAlias = ColumnMapping | None
