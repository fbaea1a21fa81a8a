"""A session that knows Delta tables, by whomever: Alluvium on classic Spark, over Connect, or delta-spark in its own environment.

The same program for all of them; it imports nothing of the project. Three ways in: DataFrames and `DeltaTable`, or SQL.
"""

import datetime as dt
import shutil
import tempfile
import uuid
from decimal import Decimal
from pathlib import Path

from model.engines.refused import Refused

SQL_TYPES = {"long": "bigint", "short": "smallint", "byte": "tinyint"}


def sql_type(name):
    return SQL_TYPES.get(name, name)


def quoted(name):
    return f"`{name}`"


def literal(value):
    """A value of a call, in VALUES: the column's type is cast to."""
    if value is None:
        return "null"
    if isinstance(value, str):
        return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"
    return str(value)


def value_of(value, kind):
    """A value of a call as Python has it."""
    if value is None:
        return None
    if kind == "date":
        return dt.date.fromisoformat(value)
    if kind == "timestamp":
        return dt.datetime.fromisoformat(value).replace(tzinfo=dt.timezone.utc)
    return Decimal(value) if kind.startswith("decimal") else value


def told(row):
    """A row of Spark's; instants come by the clock of this process."""
    return {
        name: value.astimezone(dt.timezone.utc) if isinstance(value, dt.datetime) else value
        for name, value in row.asDict(True).items()
    }


def frame(spark, call):
    """The rows of a call."""
    schema = ", ".join(f"{quoted(name)} {sql_type(kind)}" for name, kind in call["columns"])
    kinds = [kind for _, kind in call["columns"]]
    rows = [[value_of(v, kind) for v, kind in zip(row, kinds)] for row in call["rows"]]  # noqa: B905
    return spark.createDataFrame(rows, schema).coalesce(call.get("files", 1))


class SparkEngine:
    """Carries calls out in a session.

    Args:
        name: As counts tell it.
        spark: The session.
        tables: Where its `DeltaTable` and `IdentityGenerator` are.
        by_sql: Whether statements are used wherever there is one.
        known: Codes of errors that are an answer.
    """

    reads = True
    #: What only a library without Spark, or only one engine, can do.
    NOT = frozenset({"compact_log", "clean_log", "repair", "checkpoint"})

    def __init__(self, name, spark, tables, by_sql=False, known=()):
        self.name = name
        self._spark = spark
        self._class = tables.DeltaTable
        self._numbers = tables.IdentityGenerator(1, 2)
        self._by_sql = by_sql
        self._known = frozenset(known)

    def can(self, call, constrained):
        return call["verb"] not in self.NOT

    def do(self, url, call):
        verb = call["verb"]
        way = getattr(self, "_sql_" + verb, None) if self._by_sql else None
        try:
            (way or getattr(self, "_" + verb))(url, call)
        except Exception as error:
            # Ours have a code; what it says is an answer.
            if getattr(error, "code", None) in self._known:
                raise Refused(error.code) from error
            raise

    def rows(self, url, version):
        """How it reads a table."""
        df = self._spark.read.format("delta").option("versionAsOf", version).load(url)
        return [told(row) for row in df.collect()]

    def changes(self, url, start):
        """How it reads the feed."""
        df = (
            self._spark.read.format("delta").option("readChangeFeed", "true").option("startingVersion", start).load(url)
        )
        return [told(row) for row in df.drop("_commit_timestamp").collect()]

    def streamed(self, url, start=None):
        """What its streaming source tells of a table until now: all rows, or the feed from a version on."""
        feed = {} if start is None else {"readChangeFeed": "true", "startingVersion": start}
        df = self._spark.readStream.format("delta").options(**feed).load(url)
        return self._streamed(df.drop("_commit_timestamp"))

    def _streamed(self, df):
        name = f"model_stream_{uuid.uuid4().hex}"
        df.writeStream.format("memory").queryName(name).trigger(availableNow=True).start().awaitTermination()
        try:
            return [told(row) for row in self._spark.table(name).collect()]
        finally:
            self._spark.catalog.dropTempView(name)

    def row_ids(self, url, name):
        """No names of ours for them are asked here: what delta-spark calls them."""

    # --- frames ---

    def _table(self, url):
        return self._class.forPath(self._spark, url)

    def _frame(self, call):
        return frame(self._spark, call)

    def _create(self, url, call):
        builder = self._class.create(self._spark).location(url)
        for name, kind in call["columns"]:
            made = {"generatedAlwaysAs": self._numbers} if name == call["numbered"] else {}
            builder = builder.addColumn(name, sql_type(kind), **made)
        for name, value in call["properties"].items():
            builder = builder.property(name, value)
        if call["partition"]:
            builder = builder.partitionedBy(*call["partition"])
        if call["clustered"]:
            builder = builder.clusterBy(*call["clustered"])
        builder.execute()

    def _save(self, url, call, mode, **options):
        self._frame(call).write.format("delta").mode(mode).options(**options).save(url)

    def _append(self, url, call):
        if call.get("streams"):
            self._stream(url, call)
        else:
            self._save(url, call, "append")

    def _stream(self, url, call):
        """The rows as a batch of a stream."""
        folder = Path(tempfile.mkdtemp(prefix="model-stream-"))
        try:
            df = self._frame(call)
            df.write.parquet(str(folder / "rows"))
            source = self._spark.readStream.schema(df.schema).parquet(str(folder / "rows"))
            writer = source.writeStream.format("delta").option("checkpointLocation", str(folder / "checkpoint"))
            writer.trigger(availableNow=True).start(url).awaitTermination()
        finally:
            shutil.rmtree(folder)

    def _overwrite(self, url, call):
        self._save(url, call, "overwrite")

    def _replace_where(self, url, call):
        self._save(url, call, "overwrite", replaceWhere=call["where"])

    def _dynamic_overwrite(self, url, call):
        self._save(url, call, "overwrite", partitionOverwriteMode="dynamic")

    def _replace_using(self, url, call):
        self._save(url, call, "overwrite", replaceUsing=call["using"])

    def _delete(self, url, call):
        self._table(url).delete(call["where"])

    def _update(self, url, call):
        self._table(url).update(call["where"], call["set"])

    def _merge(self, url, call):
        merge = self._table(url).alias("t").merge(self._frame(call).alias("s"), call["on"])
        if call["verb"] == "merge_wider":
            merge = merge.withSchemaEvolution()
        for clause in call["clauses"]:
            kind, condition, sets = clause["clause"], clause.get("if"), clause.get("set")
            if kind == "matched delete":
                merge = merge.whenMatchedDelete(condition)
            elif kind == "matched update all":
                merge = merge.whenMatchedUpdateAll() if call["stars"] else merge.whenMatchedUpdate(set=_all(call))
            elif kind == "matched update":
                merge = merge.whenMatchedUpdate(condition, sets)
            elif kind == "insert all":
                if call["stars"]:
                    merge = merge.whenNotMatchedInsertAll(condition)
                else:
                    merge = merge.whenNotMatchedInsert(condition, _all(call))
            elif kind == "by source delete":
                merge = merge.whenNotMatchedBySourceDelete(condition)
            else:
                merge = merge.whenNotMatchedBySourceUpdate(condition, sets)
        merge.execute()

    def _append_wider(self, url, call):
        self._save(url, call, "append", mergeSchema="true")

    def _overwrite_wider(self, url, call):
        self._save(url, call, "overwrite", overwriteSchema="true")

    def _merge_wider(self, url, call):
        self._merge(url, call)

    def _optimize(self, url, call):
        self._table(url).optimize().executeCompaction()

    def _z_order(self, url, call):
        self._table(url).optimize().executeZOrderBy(*call["names"])

    def _vacuum(self, url, call):
        table = self._table(url)
        _ = table.vacuum() if call["hours"] is None else table.vacuum(call["hours"])

    def _restore(self, url, call):
        self._table(url).restoreToVersion(call["version"])

    # --- statements: what has no method, and all of them by SQL ---

    def _sql(self, url, text):
        return self._spark.sql(text.replace("{t}", f"delta.`{url}`"))

    def _values(self, call, name):
        self._frame(call).createOrReplaceTempView(name)

    def _sql_append(self, url, call):
        if call.get("streams"):
            self._stream(url, call)
            return
        self._values(call, "model_rows")
        names = ", ".join(quoted(name) for name, _ in call["columns"])
        self._sql(url, f"INSERT INTO {{t}} ({names}) SELECT {names} FROM model_rows")

    def _sql_overwrite(self, url, call):
        self._values(call, "model_rows")
        names = ", ".join(quoted(name) for name, _ in call["columns"])
        self._sql(url, f"INSERT OVERWRITE {{t}} ({names}) SELECT {names} FROM model_rows")

    def _sql_delete(self, url, call):
        self._sql(url, "DELETE FROM {t}" + ("" if call["where"] is None else f" WHERE {call['where']}"))

    def _sql_update(self, url, call):
        sets = ", ".join(f"{name} = {value}" for name, value in call["set"].items())
        self._sql(url, f"UPDATE {{t}} SET {sets}" + ("" if call["where"] is None else f" WHERE {call['where']}"))

    def _sql_merge(self, url, call):
        self._values(call, "model_rows")
        evolving = "WITH SCHEMA EVOLUTION " if call["verb"] == "merge_wider" else ""
        text = f"MERGE {evolving}INTO {{t}} t USING model_rows s ON {call['on']}"
        every = _all(call)
        update = "*" if call["stars"] else ", ".join(f"{n} = {v}" for n, v in every.items())
        insert = "*" if call["stars"] else f"({', '.join(every)}) VALUES ({', '.join(every.values())})"
        for clause in call["clauses"]:
            kind, sets = clause["clause"], clause.get("set")
            condition = f" AND ({clause['if']})" if clause.get("if") else ""
            assigned = "" if sets is None else ", ".join(f"{n} = {v}" for n, v in sets.items())
            text += {
                "matched delete": f" WHEN MATCHED{condition} THEN DELETE",
                "matched update all": f" WHEN MATCHED THEN UPDATE SET {update}",
                "matched update": f" WHEN MATCHED{condition} THEN UPDATE SET {assigned}",
                "insert all": f" WHEN NOT MATCHED{condition} THEN INSERT {insert}",
                "by source delete": f" WHEN NOT MATCHED BY SOURCE{condition} THEN DELETE",
                "by source update": f" WHEN NOT MATCHED BY SOURCE{condition} THEN UPDATE SET {assigned}",
            }[kind]
        self._sql(url, text)

    def _sql_merge_wider(self, url, call):
        self._sql_merge(url, call)

    def _sql_optimize(self, url, call):
        full = call["full"] and call.get("is_clustered")
        self._sql(url, "OPTIMIZE {t}" + (" FULL" if full else ""))

    def _sql_z_order(self, url, call):
        self._sql(url, f"OPTIMIZE {{t}} ZORDER BY ({', '.join(call['names'])})")

    def _purge(self, url, call):
        self._sql(url, "REORG TABLE {t} APPLY (PURGE)")

    def _sql_vacuum(self, url, call):
        self._sql(url, "VACUUM {t}" + ("" if call["hours"] is None else f" RETAIN {call['hours']} HOURS"))

    def _sql_restore(self, url, call):
        self._sql(url, f"RESTORE TABLE {{t}} TO VERSION AS OF {call['version']}")

    def _clone(self, url, call):
        kind = "SHALLOW" if call["shallow"] else "DEEP"
        verb = "CREATE OR REPLACE TABLE" if call["replace"] else "CREATE TABLE"
        self._sql(url, f"{verb} delta.`{call['target']}` {kind} CLONE {{t}} VERSION AS OF {call['version']}")

    def _add_column(self, url, call):
        self._sql(url, f"ALTER TABLE {{t}} ADD COLUMNS ({quoted(call['name'])} {sql_type(call['type'])})")

    def _rename_column(self, url, call):
        self._sql(url, f"ALTER TABLE {{t}} RENAME COLUMN {call['name']} TO {quoted(call['to'])}")

    def _drop_column(self, url, call):
        self._sql(url, f"ALTER TABLE {{t}} DROP COLUMN {call['name']}")

    def _widen(self, url, call):
        self._sql(url, f"ALTER TABLE {{t}} ALTER COLUMN {call['name']} TYPE {sql_type(call['type'])}")

    def _set_property(self, url, call):
        self._sql(url, f"ALTER TABLE {{t}} SET TBLPROPERTIES ('{call['name']}' = '{call['value']}')")

    def _add_constraint(self, url, call):
        self._sql(url, f"ALTER TABLE {{t}} ADD CONSTRAINT {call['name']} CHECK ({call['sql']})")

    def _drop_constraint(self, url, call):
        self._sql(url, f"ALTER TABLE {{t}} DROP CONSTRAINT {call['name']}")

    def _drop_feature(self, url, call):
        self._sql(url, f"ALTER TABLE {{t}} DROP FEATURE {call['feature']}")

    def _cluster_by(self, url, call):
        names = ", ".join(call["names"])
        self._sql(url, "ALTER TABLE {t} CLUSTER BY " + (f"({names})" if names else "NONE"))


class DeltaSparkEngine(SparkEngine):
    """delta-spark, which can write checkpoints, and has its own reasons to refuse."""

    NOT = frozenset({"compact_log", "clean_log", "repair"})

    def row_ids(self, url, name):
        """Pairs: JSON has no keys that are numbers."""
        df = self._spark.read.format("delta").load(url)
        found = df.select(df[quoted(name)], "_metadata.row_id", "_metadata.row_commit_version").collect()
        return [list(row) for row in found]

    def _replace_using(self, url, call):
        """Rows whose size Spark knows: they are broadcast. Behind any other join 4.4 cannot tell which file a row is of, and
        refuses (`DELTA_FILE_TO_OVERWRITE_NOT_FOUND`).
        """
        folder = tempfile.mkdtemp(prefix="model-rows-")
        try:
            self._frame(call).write.parquet(f"{folder}/rows")
            df = self._spark.read.parquet(f"{folder}/rows")
            df.write.format("delta").mode("overwrite").option("replaceUsing", call["using"]).save(url)
        finally:
            shutil.rmtree(folder)

    def _checkpoint(self, url, call):
        jvm = self._spark._jvm
        jvm.org.apache.spark.sql.delta.DeltaLog.forTable(self._spark._jsparkSession, url).checkpoint()


def _all(call):
    """All columns that the source brings, each out of it."""
    return {quoted(name): f"s.{quoted(name)}" for name, _ in call["columns"]}
