"""delta-rs by its Python package. It imports nothing of the project."""

import datetime as dt
from decimal import Decimal

import pyarrow as pa
from deltalake import DeltaTable, WriterProperties, write_deltalake

TYPES = {
    "long": pa.int64(), "int": pa.int32(), "short": pa.int16(), "byte": pa.int8(), "string": pa.string(),
    "double": pa.float64(), "boolean": pa.bool_(), "date": pa.date32(), "decimal(9,2)": pa.decimal128(9, 2),
    "timestamp": pa.timestamp("us", "UTC"), "array<int>": pa.list_(pa.int32()),
    "struct<a:int,b:string>": pa.struct([("a", pa.int32()), ("b", pa.string())]),
    "map<string,int>": pa.map_(pa.string(), pa.int32()),
}  # fmt: skip


def value_of(value, kind):
    """A value of a call as Arrow takes it."""
    if value is None:
        return None
    if kind == "date":
        return dt.date.fromisoformat(value)
    if kind == "timestamp":
        return dt.datetime.fromisoformat(value).replace(tzinfo=dt.timezone.utc)
    if kind.startswith("decimal"):
        return Decimal(value)
    return list(value.items()) if kind.startswith("map") else value


def arrow(call):
    columns = {}
    for n, (name, kind) in enumerate(call["columns"]):
        values = [value_of(row[n], kind) for row in call["rows"]]
        columns[name] = pa.array(values, TYPES[kind])
    return pa.table(columns)


class DeltalakeEngine:
    """Carries calls out; tables with features that it does not write are refused by itself."""

    name = "deltalake"
    VERBS = frozenset(
        {"append", "overwrite", "delete", "update", "merge", "optimize", "vacuum", "restore", "checkpoint"}
    )

    def can(self, call, constrained):
        return call["verb"] in self.VERBS

    def do(self, url, call):
        getattr(self, "_" + call["verb"])(url, call)

    def rows(self, url, version):
        return pa.table(DeltaTable(url, version=version).to_pyarrow_table()).to_pylist()

    def changes(self, url, start):
        """Its feed has other types of times, and no part in this."""

    def row_ids(self, url, name):
        """It knows none."""

    def _append(self, url, call):
        write_deltalake(url, arrow(call), mode="append", writer_properties=WriterProperties(compression="SNAPPY"))

    def _overwrite(self, url, call):
        write_deltalake(url, arrow(call), mode="overwrite")

    def _delete(self, url, call):
        DeltaTable(url).delete(call["where"])

    def _update(self, url, call):
        DeltaTable(url).update(predicate=call["where"], updates=call["set"])

    def _merge(self, url, call):
        merge = DeltaTable(url).merge(arrow(call), call["on"], source_alias="s", target_alias="t")
        for clause in call["clauses"]:
            kind, condition, sets = clause["clause"], clause.get("if"), clause.get("set")
            if kind == "matched delete":
                merge = merge.when_matched_delete(condition)
            elif kind == "matched update all":
                merge = merge.when_matched_update_all()
            elif kind == "matched update":
                merge = merge.when_matched_update(sets, condition)
            elif kind == "insert all":
                merge = merge.when_not_matched_insert_all(condition)
            elif kind == "by source delete":
                merge = merge.when_not_matched_by_source_delete(condition)
            else:
                merge = merge.when_not_matched_by_source_update(sets, condition)
        merge.execute()

    def _optimize(self, url, call):
        DeltaTable(url).optimize.compact()

    def _vacuum(self, url, call):
        hours = {} if call["hours"] is None else {"retention_hours": call["hours"], "enforce_retention_duration": False}
        DeltaTable(url).vacuum(dry_run=False, **hours)

    def _restore(self, url, call):
        DeltaTable(url).restore(call["version"])

    def _checkpoint(self, url, call):
        DeltaTable(url).create_checkpoint()
