"""DELETE, UPDATE, MERGE and ALTER TABLE that cannot be carried out."""

from __future__ import annotations

from .place import Place, call, calls


@calls("delete", "nope = 1", "id", "NULL", "id in (select 100)", "max(id) > 1", "rand() < 0.5", "id = = 1", "1")
def delete(p: Place, condition: str) -> object:
    return p.table().delete(condition)


@call
def delete_append_only(p: Place) -> object:
    return p.table("appends").delete("id = 1")


@calls("update", unknown_column={"nope": "1"}, unknown_value={"v": "nope"}, subquery={"v": "(select 1)"}, aggregate={"v": "max(v)"},
       twice={"v": "1", "V": "2"}, other_type={"id": "array(1)"}, field={"v.a": "1"}, generator={"v": "explode(array(1))"})  # fmt: skip
def update(p: Place, values: dict[str, str]) -> object:
    return p.table().update("id = 1", values)


@calls("update_table", append_only=("appends", {"v": "'x'"}), null=("strict", {"id": "null"}), checked=("strict", {"n": "-1"}),
       too_long=("strict", {"c": "'long'"}), numbered=("numbered", {"id": "1"}), not_a_number=("strict", {"n": "'x'"}),
       overflow=("strict", {"n": "3000000000"}), by_zero=("strict", {"n": "1 div 0"}))  # fmt: skip
def update_table(p: Place, said: tuple[str, dict[str, str]]) -> object:
    if said[0] == "numbered":
        p.write("select 'x' v", "numbered")
    return p.table(said[0]).update(None, said[1])


@calls("merge", unknown_condition="t.nope = s.id", ambiguous="id = 1", aggregate="max(t.id) = s.id", random="t.id = s.id and rand() < 2",
       subquery="t.id in (select 1)", number="t.id", unparsable="t.id =")  # fmt: skip
def merge_condition(p: Place, condition: str) -> object:
    return p.merge(condition=condition).whenMatchedDelete().execute()


@call
def merge_without_clauses(p: Place) -> object:
    return p.merge().execute()


@call
def merge_unreachable_update(p: Place) -> object:
    return p.merge().whenMatchedDelete().whenMatchedUpdateAll().execute()


@call
def merge_unreachable_insert(p: Place) -> object:
    return p.merge().whenNotMatchedInsertAll().whenNotMatchedInsertAll("s.id = 1").execute()


@call
def merge_unreachable_by_source(p: Place) -> object:
    return p.merge().whenNotMatchedBySourceDelete().whenNotMatchedBySourceUpdate("t.id = 1", {"v": "'x'"}).execute()


@call
def merge_matches_twice(p: Place) -> object:
    return p.merge("select 1L id, 1 p, 'x' v union all select 1L, 1, 'y'").whenMatchedUpdateAll().execute()


@calls(
    "merge_set",
    unknown_value={"v": "s.nope"},
    unknown_column={"nope": "s.v"},
    twice={"v": "1", "V": "2"},
    other_type={"id": "array(1)"},
)
def merge_set(p: Place, values: dict[str, str]) -> object:
    return p.merge().whenMatchedUpdate(set=values).execute()


@calls(
    "merge_insert",
    unknown_value={"v": "s.nope"},
    unknown_column={"nope": "s.v"},
    twice={"v": "1", "t.v": "2"},
    of_target={"v": "t.v"},
)
def merge_insert(p: Place, values: dict[str, str]) -> object:
    return p.merge("select 77L id, 1 p, 'x' v").whenNotMatchedInsert(values=values).execute()


@call
def merge_update_all_unknown(p: Place) -> object:
    return p.merge("select 1L id, 'x' v").whenMatchedUpdateAll().execute()


@call
def merge_insert_all_unknown(p: Place) -> object:
    return p.merge("select 77L id, 'x' v").whenNotMatchedInsertAll().execute()


@call
def merge_condition_of_clause(p: Place) -> object:
    return p.merge().whenMatchedDelete("nope = 1").execute()


@call
def merge_append_only(p: Place) -> object:
    return p.merge(name="appends").whenMatchedDelete().execute()


@call
def merge_null(p: Place) -> object:
    merge = p.merge("select 77L id, 1 n", name="strict")
    return merge.whenNotMatchedInsert(values={"n": "s.n"}).execute()


@call
def merge_checked(p: Place) -> object:
    return (
        p.merge("select 77L id, -1 n", name="strict").whenNotMatchedInsert(values={"id": "s.id", "n": "s.n"}).execute()
    )


@calls("upgrade", too_high=(9, 9), downgrade=(1, 1), reader_alone=(3, 2))
def upgrade(p: Place, versions: tuple[int, int]) -> object:
    return p.table().upgradeTableProtocol(*versions)


@call
def add_unknown_feature(p: Place) -> object:
    return p.table().addFeatureSupport("noSuch")


@calls("drop_feature", "noSuch", "columnMapping", "timestampNtz", "appendOnly")
def drop_feature(p: Place, name: str) -> object:
    return p.table().dropFeatureSupport(name)


@call
def drop_used_feature(p: Place) -> object:
    return p.table("strict").dropFeatureSupport("checkConstraints")


@call
def drop_with_history(p: Place) -> object:
    return p.table("mapped").dropFeatureSupport("columnMapping", True)


@call
def add_column_there(p: Place) -> object:
    return p.alter("add columns (v string)", lambda t: t.addColumns({"v": "string"}))


@call
def add_column_in_nothing(p: Place) -> object:
    return p.alter("add columns (a.b string)", lambda t: t.addColumns({"a.b": "string"}))


@call
def add_column_after_nothing(p: Place) -> object:
    return p.alter("add columns (w string after nope)", lambda t: t.addColumns({"w": "string"}, position="after nope"))


@call
def add_spaced_column(p: Place) -> object:
    return p.alter("add columns (`a b` string)", lambda t: t.addColumns({"`a b`": "string"}))


@call
def drop_column_unmapped(p: Place) -> object:
    return p.alter("drop column v", lambda t: t.dropColumns("v"))


@call
def rename_column_unmapped(p: Place) -> object:
    return p.alter("rename column v to w", lambda t: t.renameColumn("v", "w"))


@call
def drop_unknown_column(p: Place) -> object:
    return p.alter("drop column nope", lambda t: t.dropColumns("nope"), "mapped")


@call
def drop_partition_column(p: Place) -> object:
    return p.alter("drop column p", lambda t: t.dropColumns("p"), "mapped")


@call
def rename_to_taken(p: Place) -> object:
    return p.alter("rename column v to id", lambda t: t.renameColumn("v", "id"), "mapped")


@call
def change_type(p: Place) -> object:
    return p.alter("alter column p type string", lambda t: t.alterColumn("p", "string"))


@call
def widen_without_property(p: Place) -> object:
    return p.alter("alter column n type bigint", lambda t: t.alterColumn("n", "bigint"), "strict")


@call
def alter_unknown_column(p: Place) -> object:
    return p.alter("alter column nope comment 'x'", lambda t: t.alterColumn("nope", comment="x"))


@call
def set_not_null(p: Place) -> object:
    return p.alter("alter column v set not null", lambda t: t.alterColumn("v", nullable=False))


@calls("constraint", there=("positive", "n > 1"), broken=("large", "n > 5"), unknown=("c", "nope > 1"), number=("c", "n"),
       aggregate=("c", "max(n) > 1"), random=("c", "rand() > 1"), subquery=("c", "n in (select 1)"), unparsable=("c", "n >"))  # fmt: skip
def constraint(p: Place, said: tuple[str, str]) -> object:
    return p.alter(f"add constraint {said[0]} check ({said[1]})", lambda t: t.addConstraint(*said), p.copy("strict"))


@call
def drop_unknown_constraint(p: Place) -> object:
    return p.alter("drop constraint nope", lambda t: t.dropConstraint("nope"), "strict")


@call
def drop_column_of_constraint(p: Place) -> object:
    name = p.copy("strict")
    p.alter(
        "set tblproperties ('delta.columnMapping.mode' = 'name')",
        lambda t: t.setProperties({"delta.columnMapping.mode": "name"}),
        name,
    )
    return p.alter("drop column n", lambda t: t.dropColumns("n"), name)


@calls(
    "set",
    unknown=("delta.noSuch", "1"),
    invalid=("delta.appendOnly", "maybe"),
    mapping=("delta.columnMapping.mode", "id"),
)
def set_property(p: Place, said: tuple[str, str]) -> object:
    return p.alter(f"set tblproperties ('{said[0]}' = '{said[1]}')", lambda t: t.setProperties(dict([said])))


@call
def set_mapping_id_of_named(p: Place) -> object:
    said = ("delta.columnMapping.mode", "id")
    return p.alter(f"set tblproperties ('{said[0]}' = '{said[1]}')", lambda t: t.setProperties(dict([said])), "mapped")


@call
def unset_unknown_property(p: Place) -> object:
    return p.alter("unset tblproperties ('nope')", lambda t: t.unsetProperties("nope", ifExists=False))
