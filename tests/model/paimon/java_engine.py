"""Paimon's own Java, driven by the reference kit: all verbs that its core has. It imports nothing of the project."""

import paimon_java
import pyarrow as pa
import pyarrow.compute as pc

from model.paimon.types import TYPES


def value_of(value, kind):
    """A value of a call as the kit's scripts have it."""
    if value is None:
        return None
    if pa.types.is_timestamp(kind):
        return f"{value}Z"
    return list(value.items()) if pa.types.is_map(kind) else value


def told(value):
    """Arrow's pairs of a map as JSON can hold them."""
    return dict(value) if isinstance(value, list) and value and isinstance(value[0], tuple) else value


def with_long(before, number, *after):
    """Java's array of arguments with a `Long` among them, which py4j would hand over as an `Integer`."""
    jvm = paimon_java._state["gateway"].jvm
    java_long = jvm.java.lang.Class.forName("java.lang.Long")
    one = paimon_java.java().utils.JsonSerdeUtil.parseJsonMap(f'{{"x": {number}}}', java_long)
    given = jvm.java.util.ArrayList(paimon_java.call(one, "values"))
    given.insert(0, before)
    for each in after:
        given.append(each)
    return given.toArray()


class JavaEngine:
    """Carries calls out in one JVM, whatever the table."""

    name = "java"

    def __init__(self):
        paimon_java.java()

    def do(self, url, call):
        getattr(self, "_" + call["verb"])(url, call)

    def rows_at(self, url, version=None, tag=None, where=None, between=None, branch=None):
        """The newest state, or that of a snapshot, a tag or a branch; with `where` (column, value) at least the rows that have it;
        `between` two snapshots what came, with its kind.
        """
        options = {"scan.snapshot-id": version} if version else {"scan.tag-name": tag} if tag else None
        if between:
            options = {"incremental-between": f"{between[0]},{between[1]}"}
        rows = paimon_java.read(url, options, branch, where=where).to_pylist()
        return [{name: told(value) for name, value in row.items()} for row in rows]

    # --- rows ---

    def _create(self, url, call):
        fields = [{"name": name, "type": TYPES[kind]} for name, kind in call["columns"]]
        paimon_java.create(url, fields, call["partition"], call["keys"], call["properties"])

    def _rows(self, url, rows, branch=None):
        schema = paimon_java.arrow_schema(paimon_java.open_table(url, branch=branch).rowType())
        rows = [{field.name: value_of(row.get(field.name), field.type) for field in schema} for row in rows]
        return paimon_java.rows_to_arrow(rows, schema)

    def _put(self, url, call, **how):
        names = [name for name, _ in call["columns"]]
        rows = [dict(zip(names, row)) for row in call["rows"]]  # noqa: B905  # Python 3.9 has no strict
        rows = self._rows(url, rows, how.get("branch"))
        paimon_java.write(url, rows, **how)

    def _append(self, url, call):
        self._put(url, call)

    def _append_to_branch(self, url, call):
        self._put(url, call, branch=call["branch"])

    def _overwrite(self, url, call):
        self._put(url, call, overwrite={}, options={"dynamic-partition-overwrite": "false"})

    def _dynamic_overwrite(self, url, call):
        self._put(url, call, overwrite={})

    def _change(self, url, call):
        """Java has no statements: which rows go is looked up by their key, and they are written with their kind."""
        edits = call["edits"]
        new = [*edits["updated"], *edits["born"]]
        rows, kinds = self._rows(url, new), ["+U"] * len(edits["updated"]) + ["+I"] * len(edits["born"])
        if edits["gone"]:
            found = paimon_java.read(url)
            gone = found.filter(pc.is_in(found[edits["key"]], pa.array(edits["gone"], pa.int64())))
            assert gone.num_rows == len(edits["gone"]), f"Java finds {gone[edits['key']]} of {edits['gone']}"
            rows, kinds = pa.concat_tables([gone, rows]), ["-D"] * gone.num_rows + kinds
        if kinds:
            paimon_java.write(url, rows, kinds=kinds)

    _delete = _update = _merge = _change

    # --- upkeep ---

    def _compact(self, url, call):
        if paimon_java.open_table(url).coreOptions().dataEvolutionEnabled():
            self._compact_ranges(url)
        elif paimon_java.open_table(url).coreOptions().rowTrackingEnabled():
            self._compact_tracked(url)
        elif self._has_files(url):
            paimon_java.compact(url, call["full"])

    def _compact_tracked(self, url):
        """As the kit does it, but that rows keep their ids: the procedures of Spark and Flink ask for that."""
        if not self._has_files(url):
            return
        paimon, table = paimon_java.java(), paimon_java.open_table(url, {"compaction.min.file-num": "2"})
        store = table.store().newWrite("reference")
        store.withWriteType(paimon.table.SpecialFields.rowTypeWithRowTracking(table.rowType()))
        tasks = paimon.append.AppendCompactCoordinator(table, False).run()
        messages = [task.doCompact(table, store) for task in tasks]
        store.close()
        self._commit(table, "commit", messages)

    def _has_files(self, url):
        """Where there is none `AppendCompactCoordinator` ends by an exception, which its callers catch."""
        return bool(list(paimon_java.call(paimon_java.open_table(url).newSnapshotReader(), "bucketEntries")))

    def _compact_ranges(self, url):
        """What Spark's procedure does with a table with data evolution."""
        paimon, table = paimon_java.java(), paimon_java.open_table(url)
        coordinator = paimon.append.dataevolution.DataEvolutionCompactCoordinator(table, False, False)
        messages = [task.doCompact(table, "compacts") for task in coordinator.plan()]
        self._commit(table, "commit", messages)

    def _commit(self, table, method, *args):
        commit = paimon_java.java().table.sink.BatchWriteBuilderImpl(table).newCommit()
        getattr(commit, method)(*args)
        commit.close()

    def _compact_manifests(self, url, call):
        self._commit(paimon_java.open_table(url), "compactManifests")

    def _create_tag(self, url, call):
        table = paimon_java.open_table(url)
        if call["replace"]:
            given = with_long(call["name"], call["snapshot"], None)
            utils = paimon_java._state["gateway"].jvm.org.apache.commons.lang3.reflect.MethodUtils
            utils.invokeMethod(table, "replaceTag", given)
        else:
            paimon_java.call(table, "createTag", call["name"], call["snapshot"])

    def _delete_tag(self, url, call):
        paimon_java.call(paimon_java.open_table(url), "deleteTag", call["name"])

    def _rollback(self, url, call):
        paimon_java.call(paimon_java.open_table(url), "rollbackTo", call["to"])

    def _expire(self, url, call):
        paimon_java.step(url, "expire", call["keeps"])

    def _create_branch(self, url, call):
        paimon_java.call(paimon_java.open_table(url), "createBranch", call["name"], call["tag"])

    def _delete_branch(self, url, call):
        paimon_java.call(paimon_java.open_table(url), "deleteBranch", call["name"])

    def _fast_forward(self, url, call):
        paimon_java.call(paimon_java.open_table(url), "fastForward", call["name"])
        self._delete_branch(url, call)

    def _set_consumer(self, url, call):
        consumers = paimon_java.open_table(url).consumerManager()
        if call["next"] is None:
            consumers.deleteConsumer(call["name"])
        else:
            consumers.resetConsumer(call["name"], paimon_java.java().consumer.Consumer(call["next"]))

    def _purge(self, url, call):
        paimon_java.call(paimon_java.open_table(url), "purgeFiles")

    def _orphans(self, url, call):
        """All files that Java knows nothing of, however young: what it needs of ours must be there afterwards."""
        paimon, table = paimon_java.java(), paimon_java.open_table(url)
        clock = paimon_java._state["gateway"].jvm.java.lang.System
        paimon.operation.LocalOrphanFilesClean(table, clock.currentTimeMillis(), False).clean()

    # --- description ---

    def _alter(self, url, action, **given):
        paimon_java.alter(url, [{"action": action, **given}])

    def _add_column(self, url, call):
        self._alter(url, "addColumn", fieldNames=[call["name"]], dataType=TYPES[call["type"]], comment=None, move=None)

    def _rename_column(self, url, call):
        self._alter(url, "renameColumn", fieldNames=[call["name"]], newName=call["to"])

    def _drop_column(self, url, call):
        self._alter(url, "dropColumn", fieldNames=[call["name"]])

    def _widen(self, url, call):
        kind = TYPES[call["type"]]
        self._alter(url, "updateColumnType", fieldNames=[call["name"]], newDataType=kind, keepNullability=False)

    def _set_option(self, url, call):
        self._alter(url, "setOption", key=call["name"], value=call["value"])
