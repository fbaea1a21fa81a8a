"""What rows have of a column that their file lacks: nulls, unless the schema says otherwise."""

from __future__ import annotations

import pyarrow as pa

from alluvium.codecs.columns import repeated
from alluvium.errors import InvalidRequest, UnsupportedFeature
from alluvium.expr.evaluate import evaluate
from alluvium.expr.sql.parse import parse_value
from alluvium.expr.tree import is_understood
from alluvium.plan.scan import BEFORE, Physical
from alluvium.schema.arrow import to_arrow
from alluvium.schema.types import Struct


def lacking_column(value: Physical, read_schema: Struct, count: int, name: str, time_zone: str) -> pa.Array:
    """The values of a column that is not in the file.

    Args:
        value: The column.
        read_schema: Of the plan's part; its field may say what rows have (`BEFORE`).
        count: How many rows.
        name: What the table calls it, for errors.
        time_zone: In which a time without a zone is read.

    Raises:
        UnsupportedFeature: Spark alone knows what the text means (`needs-spark`).
    """
    found = next((f for f in read_schema.fields if (f.name,) == value.path), None)
    text = None if found is None else found.metadata.get(BEFORE)
    if not isinstance(text, str):
        return pa.nulls(count, to_arrow(value.type))
    rows = pa.table({"": repeated(True, count)})
    try:
        parsed = parse_value(text, Struct(), value.type, time_zone)
        if is_understood(parsed):
            return evaluate(parsed, rows, time_zone)
    except InvalidRequest as error:
        raise _unknown(name, text) from error
    raise _unknown(name, text)


def _unknown(name: str, text: str) -> UnsupportedFeature:
    return UnsupportedFeature(
        f"rows that were there before column {name!r} have {text!r} in it, which is not understood without Spark",
        code="needs-spark",
        column=name,
        hint="read the table with Spark, or write its files anew (OPTIMIZE)",
    )
