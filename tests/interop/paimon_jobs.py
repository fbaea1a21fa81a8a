"""Runs in the reference engine's Python (reference_server.py): jobs on Paimon tables, by Java in one JVM and by pypaimon.

A job is {"table", "steps"} (those of `paimon_java.py`), {"folder": of such a script.json}, or {"read": table, "out": file};
with "zone" its steps see a JVM of that zone. The step "call" is a method of Java's table with its arguments. The step "follow" is a stream of
its two columns with some "options" from its beginning to what there is now, into the file "out" of JSON. The step "patch" writes some "columns" of rows that are there, from "first" on. {"table", "find": [[column, value], ...], "key": column of INT} is answered by the
keys of the rows that each predicate leaves, and that without a file, or a look at the schema, for each of hundreds.
{"merge": [[schema file, row type, explicit], ...]} is answered by the schemas that hold such rows, too.
"""

from __future__ import annotations

import json
from contextlib import contextmanager
from pathlib import Path

import paimon_java
import pyarrow.parquet as pq
from pypaimon import CatalogFactory

NEEDS_SPARK = False


def run(spark, job):
    if "read" in job:
        read_by_python(job["read"], job["out"])
    elif "folder" in job:
        play(Path(job["folder"]))
    elif "merge" in job:
        return [merged(*case) for case in job["merge"]]
    elif "find" in job:
        return found(job["table"], job["key"], job["find"])
    else:
        with zone_of_java(job.get("zone")):
            for step in job["steps"]:
                action, given = next(iter(step.items()))
                if action == "patch":
                    patch(job["table"], **given)
                elif action == "follow":
                    follow(job["table"], **given)
                elif action == "compact_evolved":
                    compact_evolved(job["table"])
                elif action == "call":
                    name, *arguments = given
                    paimon_java.call(paimon_java.open_table(job["table"]), name, *arguments)
                else:
                    paimon_java.step(job["table"], action, given)
    return None


def compact_evolved(path: str) -> None:
    """What Spark's procedure `compact` does with a table with data evolution."""
    paimon, table = paimon_java.java(), paimon_java.open_table(path)
    coordinator = paimon.append.dataevolution.DataEvolutionCompactCoordinator(table, False, False)
    messages = [task.doCompact(table, "compacts") for task in coordinator.plan()]
    commit = paimon.table.sink.BatchWriteBuilderImpl(table).newCommit()
    commit.commit(messages)
    commit.close()


def follow(path: str, out: str, options: dict[str, str]) -> None:
    """What `StreamTableScan` plans, the first plan and those behind it: kind, number and text of each row."""
    paimon, table = paimon_java.java(), paimon_java.open_table(path, options)
    builder = paimon_java.call(table, "newReadBuilder")
    scan, rows, reached = builder.newStreamScan(), [], None
    newest = table.snapshotManager().latestSnapshotId()
    while reached is None or reached <= newest:
        for split in scan.plan().splits():
            reader = builder.newRead()
            reader.withIOManager(paimon.disk.IOManager.create(paimon_java._state["scratch"]))
            found = paimon.reader.RecordReaderIterator(reader.createReader(split))
            while found.hasNext():
                row = found.next()
                text = None if row.isNullAt(1) else row.getString(1).toString()
                rows.append([row.getRowKind().shortString(), row.getLong(0), text])
            found.close()
        if scan.checkpoint() == reached:
            break
        reached = scan.checkpoint()
    Path(out).write_text(json.dumps({"newest": newest, "rows": rows}), encoding="utf-8")


def patch(path: str, columns: list[str], rows: list, first: int) -> None:
    """A file of some columns of the rows whose ids begin at a number, as engines make it that update by row id."""
    paimon = paimon_java.java()
    table = paimon_java.open_table(path)
    row_type = table.rowType().project(columns)
    file = Path(paimon_java._state["scratch"]) / "patch.parquet"
    pq.write_table(paimon_java.rows_to_arrow(rows, paimon_java.arrow_schema(row_type)), file)
    form = paimon.format.FileFormat.fromIdentifier("parquet", paimon.options.Options())
    context = paimon.format.FormatReaderContext(
        paimon_java._state["io"], paimon.fs.Path(str(file)), file.stat().st_size
    )
    factory = form.createReaderFactory(row_type, row_type, [])
    source = paimon.reader.RecordReaderIterator(factory.createReader(context))
    builder = paimon.table.sink.BatchWriteBuilderImpl(table)
    manager = paimon.disk.IOManager.create(paimon_java._state["scratch"])
    writer = builder.newWrite().withIOManager(manager).withWriteType(row_type)
    for _ in rows:
        writer.write(source.next())
    source.close()
    messages = writer.prepareCommit()
    for message in messages:
        files = message.newFilesIncrement().newFiles()
        numbered = [each.assignFirstRowId(first) for each in files]
        paimon_java.call(files, "clear")
        for each in numbered:
            files.add(each)
    paimon_java.finish(builder, writer, messages)


def found(path: str, key: str, asked: list) -> list[list[int]]:
    """Of each predicate `column = value` the keys of the rows that Java reads with it."""
    builders = paimon_java.java().predicate.PredicateBuilder
    table = paimon_java.open_table(path)
    row_type = table.rowType()
    test, place = builders(row_type), row_type.getFieldIndex(key)
    answers = []
    for column, value in asked:
        index = row_type.getFieldIndex(column)
        is_one_of = getattr(test, "in")  # a word of Python's
        builder = paimon_java.call(table, "newReadBuilder")
        builder.withFilter(is_one_of(index, paimon_java.literals(value, row_type.getTypeAt(index))))
        rows = paimon_java.call(builder.newRead(), "createReader", builder.newScan().plan())
        rows = paimon_java.java().reader.RecordReaderIterator(rows)
        keys = []
        while rows.hasNext():
            keys.append(rows.next().getInt(place))
        rows.close()
        answers.append(keys)
    return answers


def merged(schema: str, row: dict, explicit: bool) -> str:
    """The schema file that `write.merge-schema` makes of another for rows of a type, or why it makes none."""
    java = paimon_java.java()
    before = paimon_java.parse(json.loads(schema), "schema.TableSchema")
    try:
        return java.schema.SchemaMergingUtils.mergeSchemas(
            before, paimon_java.parse(row, "types.DataType"), explicit
        ).toString()
    except Exception as error:  # noqa: BLE001 - what Java refuses is an answer
        return f"refused: {str(error)[:500]}"


@contextmanager
def zone_of_java(name):
    """Java asks for its default zone each time that it opens a file, to write or to read."""
    zones = paimon_java.java() and paimon_java._state["gateway"].jvm.java.util.TimeZone
    before = zones.getDefault()
    if name is not None:
        zones.setDefault(zones.getTimeZone(name))
    try:
        yield
    finally:
        zones.setDefault(before)


def read_by_python(path: str, out: str) -> None:
    warehouse, database, name = path.rsplit("/", 2)
    table = CatalogFactory.create({"warehouse": warehouse}).get_table(f"{database.removesuffix('.db')}.{name}")
    builder = table.new_read_builder()
    pq.write_table(builder.new_read().to_arrow(builder.new_scan().plan().splits()), out)


def play(folder: Path) -> None:
    """A scenario: reads go to files, and what Java refuses is kept as text."""
    script = json.loads((folder / "script.json").read_text(encoding="utf-8"))
    for number, entry in enumerate(script["steps"]):
        action, given = next(iter(entry.items()))
        try:
            paimon_java.step(script["table"], action, given)
        except Exception as error:  # noqa: BLE001 - what Java refuses is a finding, not the end
            (folder / f"refused-{number}.txt").write_text(f"{action}: {str(error)[:3000]}", encoding="utf-8")
            if action != "read":
                return
