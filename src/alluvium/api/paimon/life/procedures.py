"""Paimon's procedures: Java's names, arguments and result rows over the methods of `PaimonTable`.

SQL (`CALL sys.<name>(...)`) and the command line give their arguments here. Specification:
`org.apache.paimon.spark.procedure`.
"""

from __future__ import annotations

from collections.abc import Mapping

from alluvium.api.paimon.life.procedure import Given, Procedure, Value, bind_arguments, database_in
from alluvium.api.paimon.life.state_procedures import STATES
from alluvium.api.paimon.life.upkeep_procedures import UPKEEP
from alluvium.errors import InvalidRequest, UnsupportedFeature, suggest

#: By Java's names.
PROCEDURES: Mapping[str, Procedure] = {**STATES, **UPKEEP}

_METASTORE = "tables are found by their folders, and there is no metastore beside them"
_MOVE_IN = "CREATE TABLE new AS SELECT * FROM old, or alluvium.write(spark.table(...), url, format='paimon')"
_ACCESS = "who may read what is said where the files are"
_VIEWS = "views and functions are Spark's own here: CREATE VIEW, CREATE FUNCTION in spark_catalog"
_INDEXES = "files are skipped by their statistics; compact(order_strategy='zorder') makes these tell more"
_EVOLUTION = "MERGE changes columns of tables with data evolution; their deleted rows are not written"

#: Java's procedures that there is nothing here for: why, and what to do instead.
REFUSED: Mapping[str, tuple[str, str]] = {
    "repair": (_METASTORE, "nothing has to be repaired"),
    "migrate_database": (f"tables of Hive are its metastore's: {_METASTORE}", _MOVE_IN),
    "migrate_table": (f"tables of Hive are its metastore's: {_METASTORE}", _MOVE_IN),
    "migrate_file": (f"tables of Hive are its metastore's: {_METASTORE}", _MOVE_IN),
    "import_files": ("files of others do not become those of a table", "alluvium.write(spark.read.parquet(...), url)"),
    "refresh_object_table": ("tables of objects are not read", "list the objects with spark.read.format('binaryFile')"),
    "alter_view_dialect": (_METASTORE, _VIEWS),
    "create_function": (_METASTORE, _VIEWS),
    "alter_function": (_METASTORE, _VIEWS),
    "drop_function": (_METASTORE, _VIEWS),
    "grant_permission": (_METASTORE, _ACCESS),
    "revoke_permission": (_METASTORE, _ACCESS),
    "list_permissions": (_METASTORE, _ACCESS),
    "create_policy": (_METASTORE, _ACCESS),
    "drop_policy": (_METASTORE, _ACCESS),
    "list_policies": (_METASTORE, _ACCESS),
    "create_global_index": ("global indexes are neither written nor looked at", _INDEXES),
    "drop_global_index": ("global indexes are neither written nor looked at", _INDEXES),
    "rewrite_file_index": ("file indexes are neither written nor looked at", _INDEXES),
    "compact_chain_table": ("chains of branches are not read", "fast_forward goes on as a branch"),
    "merge_branch": ("rows of branches are not merged", "fast_forward goes on as a branch"),
    "materialize_deletion_vectors": ("vectors of tables with data evolution are not written anew", _EVOLUTION),
    "reassign_row_id": ("rows of tables with data evolution keep their ids", _EVOLUTION),
    "remove_orphan_blobs": ("blobs are not looked for by themselves", "remove_orphan_files"),
    "remove_unexisting_manifests": (
        "a state of which a manifest is gone is not guessed at",
        "rollback to a snapshot or tag whose manifests are there",
    ),
}


def find_procedure(name: str) -> Procedure:
    """The procedure of a name, however it is capitalised.

    Raises:
        InvalidRequest: There is none (`"unknown-procedure"`).
        UnsupportedFeature: Java has it (`"unsupported-procedure"`).
    """
    found = PROCEDURES.get(name.lower())
    if found is not None:
        return found
    if name.lower() in REFUSED:
        reason, hint = REFUSED[name.lower()]
        raise UnsupportedFeature(
            f"the procedure sys.{name}: {reason}", code="unsupported-procedure", features=(name.lower(),), hint=hint
        )
    raise InvalidRequest(
        f"there is no procedure sys.{name}", code="unknown-procedure", hint=suggest(name, tuple(PROCEDURES))
    )


def run_procedure(
    name: str, url: str, given: Mapping[str, Value], storage_options: Mapping[str, str], branch: str | None = None
) -> list[dict[str, object]]:
    """Carries out a procedure of the table, or the warehouse, at a URL, times in UTC; its rows.

    Raises:
        InvalidRequest: As of `find_procedure` and `bind_arguments`.
        UnsupportedFeature: As of `find_procedure`.
    """
    procedure = find_procedure(name)
    subject = {} if procedure.subject is None else {procedure.subject: url}
    bound = bind_arguments(name, procedure, (), {**subject, **given})
    target = None if procedure.target is None else str(bound[procedure.target])
    call = Given(url, bound, "UTC", branch, storage_options, target, database_in(procedure, bound))
    columns = [column for column, _ in procedure.result]
    return [dict(zip(columns, row, strict=True)) for row in procedure.run(call)]
