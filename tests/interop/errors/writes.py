"""Rows that do not fit, options that contradict each other, and tables that cannot be made."""

from __future__ import annotations

from .place import Place, call, calls

ROW = "select 1L id, 1 p, 'x' v"


@calls("save", there=(ROW, {"mode": "error"}), new_column=("select 1L id, 1 p, 'x' v, 2 w", {}),
       other_type=("select 1L id, 1 p, array(1) v", {}), other_type_evolving=("select 1L id, 1 p, array(1) v", {"mergeSchema": True}),
       partitioned_otherwise=(ROW, {"by": ("v",)}), outside=(ROW, {"mode": "overwrite", "replaceWhere": "p = 0"}),
       where_unknown=(ROW, {"mode": "overwrite", "replaceWhere": "nope = 0"}),
       where_unparsable=(ROW, {"mode": "overwrite", "replaceWhere": "p = "}),
       where_and_dynamic=(ROW, {"mode": "overwrite", "replaceWhere": "p = 1", "partitionOverwriteMode": "dynamic"}),
       schema_and_dynamic=(ROW, {"mode": "overwrite", "overwriteSchema": True, "partitionOverwriteMode": "dynamic"}),
       schema_and_where=(ROW, {"mode": "overwrite", "overwriteSchema": True, "replaceWhere": "p = 1"}),
       overwrite_other_type=("select 1L id, 1 p, array(1) v", {"mode": "overwrite"}),
       bad_flag=(ROW, {"mergeSchema": "maybe"}), bad_mode=(ROW, {"mode": "overwrite", "partitionOverwriteMode": "maybe"}),
       twice=("select 1L id, 2L ID, 1 p, 'x' v", {}), txn_alone=(ROW, {"txnAppId": "a"}), txn_no_number=(ROW, {"txnAppId": "a", "txnVersion": "x"}),
       feed_column=("select 1L id, 1 p, 'x' v, 'y' _change_type", {"name": "fed", "mergeSchema": True}),
       append_only=(ROW, {"name": "appends", "mode": "overwrite"}), null=("select cast(null as bigint) id, 1 n, 'c' c", {"name": "strict"}),
       missing=("select 1 n, 'c' c", {"name": "strict"}), checked=("select 1L id, -1 n, 'c' c", {"name": "strict"}),
       too_long=("select 1L id, 1 n, 'long' c", {"name": "strict"}), generated=("select 1L id, 3L twice", {"name": "made"}),
       numbered=("select 'x' v, 7L id", {"name": "numbered"}), into_parquet=(ROW, {"name": "parquet"}),
       )  # fmt: skip
def save(p: Place, said: tuple[str, dict]) -> object:
    return p.write(said[0], **{**said[1], "name": p.copy(said[1].get("name", "plain"))})


@calls("save_new", spaced=("select 1 `a b`", {}), all_partitions=("select 1 a", {"by": ("a",)}),
       partition_unknown=("select 1 a, 2 b", {"by": ("c",)}), partition_array=("select 1 a, array(1) b", {"by": ("b",)}),
       twice=("select 1 a, 2 A", {}), unknown_property=("select 1 a", {"delta.noSuch": "1"}),
       bad_property=("select 1 a", {"delta.appendOnly": "maybe"}), void=("select null a", {}), interval=("select interval 1 month a", {}),
       )  # fmt: skip
def save_new(p: Place, said: tuple[str, dict]) -> object:
    return p.write(said[0], p.fresh(), **said[1])


@call
def bad_save_mode(p: Place) -> object:
    return p.rows(ROW).write.format("delta").mode("upsert").save(p.path("plain"))


@call
def no_path(p: Place) -> object:
    return p.rows(ROW).write.format("delta").save()


@call
def save_as_table_there(p: Place) -> object:
    p.delta.DeltaTable.createIfNotExists(p.spark).tableName("errors_there").location(p.path("there")).addColumn(
        "id", "int"
    ).execute()
    return p.rows("select 1 id").write.format("delta").saveAsTable("errors_there")


@call
def insert_into_other_count(p: Place) -> object:
    p.delta.DeltaTable.createIfNotExists(p.spark).tableName("errors_there").location(p.path("there")).addColumn(
        "id", "int"
    ).execute()
    return p.rows("select 1 id, 2 w").write.insertInto("errors_there")


@call
def insert_into_overflow(p: Place) -> object:
    p.delta.DeltaTable.createIfNotExists(p.spark).tableName("errors_there").location(p.path("there")).addColumn(
        "id", "int"
    ).execute()
    return p.rows("select 3000000000L id").write.insertInto("errors_there")


@call
def insert_into_not_a_number(p: Place) -> object:
    p.delta.DeltaTable.createIfNotExists(p.spark).tableName("errors_there").location(p.path("there")).addColumn(
        "id", "int"
    ).execute()
    return p.rows("select 'x' id").write.insertInto("errors_there")


@calls("write_to_nothing", "append", "replace", "overwritePartitions")
def write_to_nothing(p: Place, verb: str) -> object:
    return getattr(p.rows("select 1 id").writeTo("errors_nothing").using("delta"), verb)()


@call
def write_to_there(p: Place) -> object:
    p.delta.DeltaTable.createIfNotExists(p.spark).tableName("errors_there").location(p.path("there")).addColumn(
        "id", "int"
    ).execute()
    return p.rows("select 1 id").writeTo("errors_there").using("delta").create()


@call
def create_there(p: Place) -> object:
    return p.create("plain").addColumn("id", "bigint").execute()


@call
def replace_nothing(p: Place) -> object:
    return p.delta.DeltaTable.replace(p.spark).tableName("errors_nothing").addColumn("id", "int").execute()


@call
def replace_nothing_at_path(p: Place) -> object:
    return p.delta.DeltaTable.replace(p.spark).location(p.path("none")).addColumn("id", "int").execute()


@call
def create_nowhere(p: Place) -> object:
    return p.delta.DeltaTable.create(p.spark).addColumn("id", "int").execute()


@call
def create_in_parquet(p: Place) -> object:
    return p.create(p.copy("parquet")).addColumn("id", "int").execute()


@calls("column", bad_type=("a", "no_such_type"), text=("a", "int int"))
def column(p: Place, said: tuple[str, str]) -> object:
    return p.create(p.fresh()).addColumn(*said).execute()


@call
def columns_twice(p: Place) -> object:
    return p.create(p.fresh()).addColumn("a", "int").addColumn("A", "int").execute()


@call
def geometry(p: Place) -> object:
    return p.create(p.fresh()).addColumn("a", "int").addColumn("g", "geometry(4326)").execute()


@calls("partitioned", unknown=("b",), whole=("a",))
def partitioned(p: Place, by: tuple[str, ...]) -> object:
    return p.create(p.fresh()).addColumn("a", "int").partitionedBy(*by).execute()


@call
def clustered_and_partitioned(p: Place) -> object:
    return p.create(p.fresh()).addColumn("a", "int").addColumn("b", "int").partitionedBy("a").clusterBy("b").execute()


@call
def clustered_by_nothing(p: Place) -> object:
    return p.create(p.fresh()).addColumn("a", "int").clusterBy("b").execute()


@calls("property", unknown=("delta.noSuch", "1"), invalid=("delta.appendOnly", "maybe"),
       mapping=("delta.columnMapping.mode", "maybe"), interval=("delta.deletedFileRetentionDuration", "long"),
       feature=("delta.feature.noSuch", "supported"), protocol=("delta.minReaderVersion", "9"))  # fmt: skip
def bad_property(p: Place, said: tuple[str, str]) -> object:
    return p.create(p.fresh()).addColumn("a", "int").property(*said).execute()


@calls("generated", other_type="cast(a as string)", unknown="b + 1", random="cast(rand() as int)", aggregate="max(a)",
       subquery="(select 1)", unparsable="a +")  # fmt: skip
def generated(p: Place, expression: str) -> object:
    return p.create(p.fresh()).addColumn("a", "int").addColumn("g", "int", generatedAlwaysAs=expression).execute()


@call
def identity_of_int(p: Place) -> object:
    counts = p.delta.IdentityGenerator()
    return p.create(p.fresh()).addColumn("a", "int", generatedAlwaysAs=counts).execute()


@call
def identity_without_step(p: Place) -> object:
    counts = p.delta.IdentityGenerator(start=1, step=0)
    return p.create(p.fresh()).addColumn("a", "bigint", generatedAlwaysAs=counts).execute()


@call
def identity_partitions(p: Place) -> object:
    counts = p.delta.IdentityGenerator()
    builder = p.create(p.fresh()).addColumn("b", "int").addColumn("a", "bigint", generatedAlwaysAs=counts)
    return builder.partitionedBy("a").execute()
