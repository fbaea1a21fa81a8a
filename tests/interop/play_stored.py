"""Stores values in columns of other types, by us and by delta-spark (reference_server.py), and tells what came of each.

A job has `settings` of the session, `pairs` of a value and a column, `verbs`, a `root` and a `name` for its tables: one a
pair. Each verb has a row of its own there, so that the table is read once. With `every` and `first` only some of the pairs
of a value and a verb are played.
"""

import importlib
import sys

import stored_pairs


def run(spark, job):
    told = {}
    for n, (value, column) in enumerate(job["pairs"]):
        here = n * len(job["verbs"])
        verbs = [v for k, v in enumerate(job["verbs"], here) if k % job.get("every", 1) == job.get("first", 0)]
        if verbs:
            told[f"{value} -> {column}"] = played(spark, {**job, "verbs": verbs}, n)
    return told


def played(spark, job, number):
    """By verb: what stands in the row, or that it was refused."""
    value, column = job["pairs"][number]
    place = (f"{job['root']}/t{number}", f"{job['name']}_{number}")
    made(spark, place, column, [k for k, verb in enumerate(job["verbs"]) if verb in stored_pairs.ON_ROWS])
    refused = {}
    before = {name: spark.conf.get(name, None) for name in job["settings"]}
    for name, said in job["settings"].items():
        spark.conf.set(name, said)
    for k, verb in enumerate(job["verbs"]):
        try:
            store(spark, verb, place, k, value)
        except Exception as error:  # noqa: BLE001  # whether it is refused is what is asked
            refused[verb] = {"refused": True, "text": f"{type(error).__name__}: {str(error)[:300]}"}
    for name, said in before.items():
        if said is None:
            spark.conf.unset(name)
        else:
            spark.conf.set(name, said)
    rows = stored(spark, place[0])
    spark.sql(f"drop table {place[1]}")
    return {verb: refused.get(verb, rows.get(k)) for k, verb in enumerate(job["verbs"])}


def made(spark, place, column, rows):
    path, name = place
    spark.sql(
        f"create table {name} (id int, v {column}) using delta partitioned by (id) location '{path}'"
        " tblproperties ('delta.checkpointInterval' = '1000', 'delta.feature.timestampNtz' = 'supported')"
    )
    if rows:
        given = {"int not null": "0", "struct<a:int not null>": "named_struct('a', 0)"}.get(column, "null")
        spark.sql(f"insert into {name} select id, {given} from values {', '.join(f'({k})' for k in rows)} as s(id)")


def store(spark, verb, place, k, value):
    path, name = place
    if verb in stored_pairs.STATEMENTS:
        spark.sql(stored_pairs.STATEMENTS[verb].format(t=name, k=k, v=value)).collect()
        return
    if verb == "DeltaTable.update":
        module = importlib.import_module("alluvium" if "alluvium" in sys.modules else "delta.tables")
        module.DeltaTable.forPath(spark, path).update(f"id = {k}", {"v": value})
        return
    rows = spark.sql(f"select {k} as id, {value} as v")
    if verb == "save":
        rows.write.format("delta").mode("append").save(path)
    elif verb == "saveAsTable":
        rows.write.format("delta").mode("append").saveAsTable(name)
    elif verb == "insertInto":
        rows.write.insertInto(name)
    elif verb == "writeTo":
        rows.writeTo(name).append()
    else:
        rows.writeTo(name).overwritePartitions()


def stored(spark, path):
    """By row, how many there are and the value: all of it as text."""
    found = {}
    for row in spark.read.format("delta").load(path).selectExpr("id", "cast(v as string) as v").collect():
        found.setdefault(row["id"], []).append(row["v"])
    return {k: found[k] for k in sorted(found)}
