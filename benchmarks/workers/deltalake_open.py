"""deltalake (delta-rs), in the environment of ../shared/reference."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import deltalake
import pyarrow as pa
import pyarrow.parquet as pq
from first_answers import answer_of

from protocol import serve


def count(request: Mapping[str, Any]) -> object:
    return deltalake.DeltaTable(request["path"]).count()


def query(request: Mapping[str, Any], sql: str) -> list[dict[str, Any]]:
    rows = deltalake.QueryBuilder().register("t", deltalake.DeltaTable(request["path"])).execute(sql)
    return pa.table(rows.read_all()).to_pylist()


def lookup(request: Mapping[str, Any]) -> object:
    rows = query(request, f"select * from t where id = {request['id']}")
    return [{"id": row["id"], "customer": row["customer"]} for row in rows]


def total(request: Mapping[str, Any]) -> object:
    return query(request, "select sum(customer) as n from t where quantity >= 20 and paid")[0]["n"]


def groups(request: Mapping[str, Any]) -> object:
    rows = query(request, "select country, sum(quantity) as n from t group by country")
    return sorted([row["country"], row["n"]] for row in rows)


def first(request: Mapping[str, Any]) -> object:
    return answer_of("import deltalake; print(len(deltalake.DeltaTable({!r}).file_uris()))", request["path"])


def load(request: Mapping[str, Any]) -> object:
    # the cheapest list of files that it has
    return len(deltalake.DeltaTable(request["path"]).file_uris())


def plan(request: Mapping[str, Any]) -> object:
    table = deltalake.DeltaTable(request["path"])
    return len(table.file_uris(file_pruning_predicate=f"id = {request['id']}"))


def checkpoint(request: Mapping[str, Any]) -> object:
    return deltalake.DeltaTable(request["path"]).create_checkpoint()


def appends(request: Mapping[str, Any]) -> object:
    rows = pa.table({"id": range(100), "text": [str(n) for n in range(100)]})
    for _ in range(request["times"]):
        deltalake.write_deltalake(request["path"], rows, mode="append")
    return None


def delete(request: Mapping[str, Any]) -> object:
    deltalake.DeltaTable(request["path"]).delete(request["where"])
    return None


def update(request: Mapping[str, Any]) -> object:
    deltalake.DeltaTable(request["path"]).update(updates=request["set"], predicate=request["where"])
    return None


def merge(request: Mapping[str, Any]) -> object:
    table, source = deltalake.DeltaTable(request["path"]), pq.read_table(request["source"])
    builder = table.merge(source, "t.id = s.id", source_alias="s", target_alias="t")
    builder.when_matched_update_all().when_not_matched_insert_all().execute()
    return None


def digest(request: Mapping[str, Any]) -> object:
    query = "select count(*), sum(id), sum(quantity), sum(length(name)), count(discount) from t"
    rows = deltalake.QueryBuilder().register("t", deltalake.DeltaTable(request["path"])).execute(query).read_all()
    return [int(column[0].as_py()) for column in rows.columns]


if __name__ == "__main__":
    verbs = {"count": count, "load": load, "plan": plan, "checkpoint": checkpoint, "appends": appends}
    verbs |= {"delete": delete, "update": update, "merge": merge, "digest": digest}
    verbs |= {"lookup": lookup, "total": total, "groups": groups, "first": first}
    serve(verbs, lambda: {"deltalake": deltalake.__version__})
