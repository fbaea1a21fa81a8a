"""pypaimon: it reads the newest state, and appends. It imports nothing of the project."""

import datetime as dt
from decimal import Decimal

import pyarrow as pa
from pypaimon import CatalogFactory


def table_at(url):
    warehouse, database, name = url.rsplit("/", 2)
    return CatalogFactory.create({"warehouse": warehouse}).get_table(f"{database.removesuffix('.db')}.{name}")


def value_of(value, kind):
    """A value of a call as Arrow takes it."""
    if value is None:
        return None
    if pa.types.is_date(kind):
        return dt.date.fromisoformat(value)
    if pa.types.is_timestamp(kind):
        return dt.datetime.fromisoformat(value)
    if pa.types.is_decimal(kind):
        return Decimal(value)
    return list(value.items()) if pa.types.is_map(kind) else value


class PypaimonEngine:
    """Carries calls out."""

    name = "pypaimon"

    def do(self, url, call):
        assert call["verb"] == "append"
        table = table_at(url)
        builder = table.new_batch_write_builder()
        schema = table_schema(table)
        columns = {}
        for n, (name, _) in enumerate(call["columns"]):
            kind = schema.field(name).type
            columns[name] = pa.array([value_of(row[n], kind) for row in call["rows"]], kind)
        write, commit = builder.new_write(), builder.new_commit()
        write.write_arrow(pa.table(columns, schema=schema))
        commit.commit(write.prepare_commit())
        write.close()
        commit.close()

    def rows(self, url, version):
        builder = table_at(url).new_read_builder()
        rows = builder.new_read().to_arrow(builder.new_scan().plan().splits()).to_pylist()
        return [{name: told(value) for name, value in row.items()} for row in rows]


def told(value):
    """Arrow's pairs of a map as JSON can hold them."""
    return dict(value) if isinstance(value, list) and value and isinstance(value[0], tuple) else value


def table_schema(table):
    """As pypaimon itself has it in Arrow."""
    from pypaimon.schema.data_types import PyarrowFieldParser  # noqa: PLC0415

    return PyarrowFieldParser.from_paimon_schema(table.table_schema.fields)
