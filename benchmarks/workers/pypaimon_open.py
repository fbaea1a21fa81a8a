"""pypaimon, in the environment of ../shared/reference."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pyarrow as pa
from arrow_queries import COLUMNS, SMALL, scan_answer
from pypaimon import CatalogFactory, Schema
from pypaimon.schema.table_schema import TableSchema

from protocol import serve


def open_table(path: str) -> Any:
    place = Path(path)
    catalog = CatalogFactory.create({"warehouse": str(place.parent.parent)})
    return catalog.get_table(f"{place.parent.name.removesuffix('.db')}.{place.name}")


def read(path: str, columns: Sequence[str] | None = None) -> pa.Table:
    builder = open_table(path).new_read_builder()
    if columns is not None:
        builder = builder.with_projection(list(columns))
    return builder.new_read().to_arrow(builder.new_scan().plan().splits())


def scan(request: Mapping[str, Any]) -> object:
    return scan_answer(read(request["path"], COLUMNS))


def rows(request: Mapping[str, Any]) -> object:
    return read(request["path"]).num_rows


def files(request: Mapping[str, Any]) -> object:
    splits = open_table(request["path"]).new_read_builder().new_scan().plan().splits()
    return sum(len(split.files) for split in splits)


def schemas(request: Mapping[str, Any]) -> object:
    text = Path(request["path"]).read_text(encoding="utf-8")
    return sum(len(TableSchema.from_json(text).fields) for _ in range(request["times"]))


def commits(request: Mapping[str, Any]) -> object:
    place = Path(request["path"])
    catalog = CatalogFactory.create({"warehouse": str(place.parent.parent)})
    name = f"{place.parent.name.removesuffix('.db')}.{place.name}"
    catalog.create_database(name.partition(".")[0], True)
    catalog.create_table(name, Schema.from_pyarrow_schema(SMALL.schema), True)
    for _ in range(request["times"]):
        builder = catalog.get_table(name).new_batch_write_builder()
        writer, commit = builder.new_write(), builder.new_commit()
        writer.write_arrow(SMALL)
        commit.commit(writer.prepare_commit())
        writer.close()
        commit.close()
    return len(list((place / "snapshot").glob("snapshot-*")))


if __name__ == "__main__":
    verbs = {"scan": scan, "rows": rows, "files": files, "schemas": schemas, "commits": commits}
    serve(verbs, lambda: {"pypaimon": version("pypaimon")})
