"""generatedColumns: columns whose value is computed from the row's other columns.

Specification: "Generated Columns".
"""

from __future__ import annotations

from dataclasses import replace

from alluvium.delta.features.feature import Feature, ScanContext, is_supported_for_writers
from alluvium.delta.terms.config import TableConfig
from alluvium.errors import InvalidRequest, UnsupportedFeature
from alluvium.expr.sql.not_null import quote
from alluvium.expr.sql.row_functions import ROW
from alluvium.expr.sql.row_sql import parse_row_expression
from alluvium.plan.scan import ScanPlan
from alluvium.plan.write import Check, Derived, WritePlan
from alluvium.schema.types import Field, Struct
from alluvium.schema.walk import drop_metadata, fields_within

KEY = "delta.generationExpression"


def generation_expressions(schema: Struct) -> dict[str, str]:
    """The SQL of each generated column, by the column's name.

    Raises:
        UnsupportedFeature: Text is none, or stands at a member of a struct (code `"unsupported-generation"`).
    """
    for path, f in fields_within(schema):
        if len(path) > 1 and KEY in f.metadata:
            raise _refused(path, "only columns at the top level can be generated")
    return {f.name: _text(f) for f in schema.fields if KEY in f.metadata}


def _text(f: Field) -> str:
    """ "The value of `delta.generationExpression` SHOULD be parsed as a SQL expression." """
    stored = f.metadata[KEY]
    if not isinstance(stored, str):
        raise _refused((f.name,), f"{KEY} is not text")
    return stored


def _refused(path: tuple[str, ...], problem: str) -> UnsupportedFeature:
    return UnsupportedFeature(
        f"the generated column {'.'.join(path)!r} cannot be computed: {problem}",
        code="unsupported-generation",
        features=(FEATURE.name,),
        column=".".join(path),
        hint="write to the table with the engine that made it",
    )


def derived_columns(schema: Struct) -> tuple[Derived, ...]:
    """The generated columns, each computed where the data lacks it, and checked where the data brings it.

    Args:
        schema: Of the table.

    Raises:
        UnsupportedFeature: An expression is more than one over the row's columns that are not generated themselves.
    """
    texts = generation_expressions(schema)
    derived = []
    for name, sql in texts.items():
        try:
            parsed = parse_row_expression(sql, schema, ROW)
        except InvalidRequest as error:
            raise _refused((name,), error.message) from None
        if others := sorted(parsed.roots & texts.keys()):
            raise _refused((name,), f"it is computed from the generated column {others[0]!r}")
        # "Writers MUST enforce that any data writing to the table satisfy the condition
        # `(<value> <=> <generation expression>) IS TRUE`."
        check = Check(
            f"generated column {name}",
            f"{quote((name,))} <=> ({sql})",
            (name, *(".".join(path) for path in parsed.columns)),
            "generated-column-violated",
            f"{quote((name,))} <=> ( {parsed.canonical} )",
        )
        derived.append(Derived(name, sql, parsed.canonical, check=check))
    return tuple(derived)


def is_used(config: TableConfig) -> bool:
    """ "The `metadata` for a column in the table schema MAY contain the key `delta.generationExpression`." """
    return any(KEY in f.metadata for _, f in fields_within(config.schema))


def derive(plan: WritePlan, config: TableConfig) -> WritePlan:
    if not is_supported_for_writers(FEATURE, config.protocol):
        # The key means nothing there, and the reference takes the column as any other.
        return plan
    return replace(plan, derived=plan.derived + derived_columns(config.schema))


def on_scan(plan: ScanPlan, context: ScanContext) -> ScanPlan:
    """Keeps the expressions from those who read: a copy of the column is not generated."""
    return replace(plan, schema=drop_metadata(plan.schema, lambda key: key == KEY)) if is_used(context.config) else plan


FEATURE = Feature(
    name="generatedColumns",
    reader=False,
    spec="Generated Columns",
    legacy_writer=4,
    is_used=is_used,
    on_scan=on_scan,
    on_write=derive,
)
