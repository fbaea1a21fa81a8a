"""allowColumnDefaults: what a column is where a row says nothing of it.

Specification: "Default Columns". Readers never look at it: rows that were written before a default was set stay null.
"""

from __future__ import annotations

from dataclasses import replace

from alluvium.delta.features.feature import Feature, is_supported_for_writers
from alluvium.delta.terms.config import TableConfig
from alluvium.errors import InvalidRequest, UnsupportedFeature
from alluvium.expr.sql.row_functions import JOB, ROW
from alluvium.expr.sql.row_sql import parse_row_expression
from alluvium.plan.scan import BEFORE
from alluvium.plan.write import Derived, WritePlan
from alluvium.schema.types import VARIANT, Field, Struct
from alluvium.schema.walk import drop_metadata

KEY = "CURRENT_DEFAULT"


def defaults(schema: Struct) -> tuple[Derived, ...]:
    """The columns that have a default.

    Raises:
        UnsupportedFeature: A default is not a constant expression (code `"unsupported-default"`).
    """
    return tuple(default_of(f) for f in schema.fields if KEY in f.metadata)


def default_of(f: Field) -> Derived:
    """ "The value of `CURRENT_DEFAULT` SHOULD be parsed as a SQL expression."

    Raises:
        UnsupportedFeature: It is not a constant expression (code `"unsupported-default"`).
    """
    sql = f.metadata[KEY]
    if not isinstance(sql, str):
        raise _refused(f.name, f"{KEY} is not text")
    # "All columns of `variant` type must default to null."
    if f.type == VARIANT and sql.strip().lower() != "null":
        raise _refused(f.name, "a variant can only default to null")
    try:
        # A default names no column: there is no row yet.
        parsed = parse_row_expression(sql, Struct(), ROW | JOB)
    except InvalidRequest as error:
        raise _refused(f.name, error.message) from None
    return Derived(f.name, sql, parsed.canonical, is_constant=True)


def _refused(column: str, problem: str) -> UnsupportedFeature:
    return UnsupportedFeature(
        f"the default of column {column!r} cannot be computed: {problem}",
        code="unsupported-default",
        features=(FEATURE.name,),
        column=column,
        hint="drop the default with the engine that made it, or write with that engine",
    )


def is_used(config: TableConfig) -> bool:
    """ "The `metadata` for the column in the table schema MAY contain the key `CURRENT_DEFAULT`." """
    return any(KEY in f.metadata for f in config.schema.fields)


def without_defaults(schema: Struct) -> Struct:
    """The columns of rows without the defaults that their own table gives them: a promise that not every table keeps.

    What Spark says of rows that were there before the column goes, too.
    """
    return drop_metadata(schema, frozenset((KEY, BEFORE)).__contains__)


def without_past(schema: Struct) -> Struct:
    """The columns without what Spark says of rows that were there before them: in another table there were none."""
    return drop_metadata(schema, lambda key: key == BEFORE)


def derive(plan: WritePlan, config: TableConfig) -> WritePlan:
    """ "Writers MUST enforce that before writing any rows to the table, for each such requested row that lacks any
    explicit value (including NULL) for columns with default values, the writing system will assign the result of
    evaluating the default value expression for each such column as the value for that column in the row."

    "The table must be on Writer Version 7, and a feature name `allowColumnDefaults` must exist in the table
    `protocol`'s `writerFeatures`."
    """
    if not is_supported_for_writers(FEATURE, config.protocol):
        return plan
    return replace(plan, derived=plan.derived + defaults(config.schema))


FEATURE = Feature(
    name="allowColumnDefaults",
    reader=False,
    spec="Default Columns",
    is_used=is_used,
    # By name alone, as the reference: `upgrade.configure` refuses a default without it.
    is_requested=lambda config: False,
    on_write=derive,
)
