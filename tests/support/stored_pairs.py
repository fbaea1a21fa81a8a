"""What goes into columns of other types, by every verb, under every policy of store assignment (tests/interop/test_store_policy.py)."""

from __future__ import annotations

_ANSI, _POLICY = "spark.sql.ansi.enabled", "spark.sql.storeAssignmentPolicy"

SETTINGS: dict[str, dict[str, str]] = {
    "not-ansi": {_ANSI: "false"},
    "strict": {_POLICY: "STRICT"},
    "strict-not-ansi": {_POLICY: "STRICT", _ANSI: "false"},
    "legacy": {_POLICY: "LEGACY"},
    "legacy-not-ansi": {_POLICY: "LEGACY", _ANSI: "false"},
}

#: Values, and the column that each is stored in: of a kind each, by all verbs.
CORE: tuple[tuple[str, str], ...] = (
    ("null", "int"),
    ("'zz'", "int"),
    ("3000000000L", "int"),
    ("true", "int"),
    ("'zz'", "int not null"),
    ("7", "bigint"),
    ("123456.789BD", "decimal(5,2)"),
    ("'nonsense'", "date"),
    ("date'2024-01-02'", "timestamp"),
    ("7", "string"),
    ("'abc'", "varchar(2)"),
    ("named_struct('a', 'zz', 'b', 3000000000L)", "struct<a:int,b:int>"),
    ("array('7', 'zz')", "array<int>"),
)  # fmt: skip
#: And more of them, by `FEW` verbs.
MORE: tuple[tuple[str, str], ...] = (
    ("'7'", "int"),
    ("cast(5 as bigint)", "int"),
    ("1.75D", "int"),
    ("cast('NaN' as double)", "int"),
    ("9.5BD", "int"),
    ("date'2024-01-02'", "int"),
    ("cast(5 as smallint)", "int"),
    ("null", "int not null"),
    ("300", "tinyint"),
    ("timestamp'2024-01-02 03:04:05'", "bigint"),
    ("7", "double"),
    ("'1.5e3'", "double"),
    ("1.25D", "float"),
    ("1.005BD", "decimal(5,2)"),
    ("7", "decimal(20,0)"),
    ("'1.5'", "decimal(5,2)"),
    ("'2024-01-02'", "date"),
    ("timestamp'2024-01-02 03:04:05'", "date"),
    ("7", "date"),
    ("'2024-01-02 03:04:05'", "timestamp"),
    ("timestamp_ntz'2024-01-02 03:04:05'", "timestamp"),
    ("timestamp'2024-01-02 03:04:05'", "timestamp_ntz"),
    ("17L", "timestamp"),
    ("1", "boolean"),
    ("'true'", "boolean"),
    ("'maybe'", "boolean"),
    ("date'2024-01-02'", "string"),
    ("array(1, 2)", "string"),
    ("X'3132'", "string"),
    ("'12'", "binary"),
    ("7", "binary"),
    ("12345", "varchar(2)"),
    ("'abc'", "char(2)"),
    ("'a'", "char(2)"),
    ("'7'", "struct<a:int>"),
    ("named_struct('a', '7', 'b', 5L)", "struct<a:int,b:int>"),
    ("named_struct('b', 5, 'a', 7)", "struct<a:int,b:int>"),
    ("named_struct('x', 5, 'y', 7)", "struct<a:int,b:int>"),
    ("named_struct('a', 5)", "struct<a:int,b:int>"),
    ("cast(null as struct<a:string,b:bigint>)", "struct<a:int,b:int>"),
    ("array(named_struct('a', '7', 'b', 1), null)", "array<struct<a:int,b:int>>"),
    ("named_struct('a', cast(null as int))", "struct<a:int not null>"),
    ("array(1L, 3000000000L)", "array<int>"),
    ("array(1, null)", "array<bigint>"),
    ("map('1', 'zz', '2', '3')", "map<int,int>"),
    ("map(1, 2L)", "map<bigint,int>"),
    ("interval '1' day", "string"),
    ("interval '3' month", "int"),
)  # fmt: skip

#: Ways to store a value. In SQL, `{v}` is the value, `{t}` the table, `{k}` the row.
STATEMENTS: dict[str, str] = {
    "values": "insert into {t} values ({k}, {v})",
    "select": "insert into {t} select {k}, v from (select {v} as v)",
    "columns": "insert into {t} (v, id) values ({v}, {k})",
    "by name": "insert into {t} by name select {v} as v, {k} as id",
    "partition": "insert overwrite {t} partition (id = {k}) select {v}",
    "replace where": "insert into {t} replace where id = {k} select {k}, {v}",
    "update": "update {t} set v = {v} where id = {k}",
    "merge update": "merge into {t} t using (select {k} as id, {v} as v) s on t.id = s.id when matched then update set v = s.v",
    "merge update star": "merge into {t} t using (select {k} as id, {v} as v) s on t.id = s.id when matched then update set *",
    "merge insert": "merge into {t} t using (select {k} as id, {v} as v) s on t.id = s.id when not matched then insert (id, v) values (s.id, s.v)",
    "merge insert star": "merge into {t} t using (select {k} as id, {v} as v) s on t.id = s.id when not matched then insert *",
}  # fmt: skip
#: By DataFrames of `select {k} as id, {v} as v`.
WRITERS = ("save", "saveAsTable", "insertInto", "writeTo", "overwritePartitions")
#: Rows that they change are there before. `DeltaTable` has Python's own way.
ON_ROWS = ("update", "merge update", "merge update star", "DeltaTable.update")
VERBS = (*STATEMENTS, *WRITERS, "DeltaTable.update")
FEW = ("values", "by name", "save", "saveAsTable", "update", "merge update star", "merge insert", "DeltaTable.update")


_UPDATES = ("update", "DeltaTable.update")
#: By name: settings, pairs and verbs that both engines play.
PLAYED: dict[str, tuple[str, tuple[tuple[str, str], ...], tuple[str, ...]]] = {
    "legacy core": ("legacy", CORE, VERBS),
    "legacy more": ("legacy", MORE, FEW),
    "legacy-not-ansi updates": ("legacy-not-ansi", CORE, _UPDATES),
    "strict core": ("strict", CORE, VERBS),
    "strict more": ("strict", MORE, FEW),
    "strict-not-ansi updates": ("strict-not-ansi", CORE, _UPDATES),
    "not-ansi core": ("not-ansi", CORE, VERBS),
}


def job(name: str, root: str) -> dict[str, object]:
    """What each engine plays."""
    setting, pairs, verbs = PLAYED[name]
    return {
        "settings": SETTINGS[setting],
        "pairs": [list(pair) for pair in pairs],
        "verbs": list(verbs),
        "root": f"{root}/{name.replace(' ', '-')}",
        "name": "stored_" + name.replace("-", "_").replace(" ", "_"),
    }
