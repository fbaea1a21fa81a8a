"""Paimon's procedures: Java's names, arguments and result rows over the methods of `PaimonTable`.

SQL (`CALL sys.<name>(...)`) and the command line give their arguments here. Specification:
`org.apache.paimon.spark.procedure`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from alluvium.api.paimon.life.times import millis_of
from alluvium.api.paimon.paimon_table import PaimonTable
from alluvium.errors import InvalidRequest, UnsupportedFeature, suggest

#: What an argument was given as.
Value = str | int | bool | None
#: A type of an argument or a result, as Spark calls it.
STRING, INT, LONG, BOOLEAN = "string", "int", "bigint", "boolean"


@dataclass(frozen=True, slots=True)
class Given:
    """A call with all its arguments.

    Attributes:
        table: The table.
        values: By the name of the argument; None: it was left out.
        time_zone: In which times are read.
    """

    table: PaimonTable
    values: Mapping[str, Value]
    time_zone: str

    def text(self, name: str) -> str | None:
        """A text; a blank one is none, as in Java."""
        value = self.values[name]
        return None if value is None or not str(value).strip() else str(value)

    def needed(self, name: str) -> str:
        """A text that must be there.

        Raises:
            InvalidRequest: It is blank (`"missing-argument"`).
        """
        found = self.text(name)
        if found is None:
            raise InvalidRequest(f"the argument {name} is blank", code="missing-argument", url=self.table.url)
        return found

    def number(self, name: str) -> int | None:
        """A whole number."""
        value = self.values[name]
        return None if value is None else int(value)

    def flag(self, name: str) -> bool:
        """True, where it was given so."""
        return bool(self.values[name])

    def time_ms(self, name: str) -> int | None:
        """A time as milliseconds since 1970 UTC."""
        found = self.text(name)
        return None if found is None else millis_of(found, name, self.time_zone)


@dataclass(frozen=True, slots=True)
class Procedure:
    """A procedure.

    Attributes:
        parameters: Name to type, in order; those beyond `table` that may be left out end with `?`.
        result: Name and type of the column of its rows.
        run: Gives the rows.
    """

    parameters: Mapping[str, str]
    result: Sequence[tuple[str, str]]
    run: Callable[[Given], Sequence[Sequence[object]]]


_DONE = (("result", BOOLEAN),)
_TRUE = ((True,),)


def _done(act: Callable[[Given], object]) -> Callable[[Given], Sequence[Sequence[object]]]:
    def run(given: Given) -> Sequence[Sequence[object]]:
        act(given)
        return _TRUE

    return run


def _names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()]


def _rollback(given: Given) -> object:
    version = given.needed("version")
    if given.flag("is_timestamp"):
        return given.table.rollback_to_timestamp(int(version))
    return given.table.rollback_to(version)


def _rollback_to_time(given: Given) -> Sequence[Sequence[object]]:
    found = given.table.rollback_to_timestamp(given.number("timestamp") or 0)
    return ((f"Success roll back to snapshot: {found} .",),)


def _rollback_to_watermark(given: Given) -> Sequence[Sequence[object]]:
    found = given.table.rollback_to_watermark(given.number("watermark") or 0)
    return ((f"Success roll back to snapshot: {found} .",),)


def _tag_since(given: Given) -> Sequence[Sequence[object]]:
    tag = given.needed("tag")
    number = given.table.create_tag_from_timestamp(tag, given.number("timestamp") or 0, given.text("time_retained"))
    return ((tag, number),)


def _expire_snapshots(given: Given) -> Sequence[Sequence[object]]:
    _ensure_no_options(given)
    done = given.table.expire_snapshots(
        given.number("retain_max"), given.number("retain_min"), given.time_ms("older_than"), given.number("max_deletes")
    )
    return ((len(done.ids),),)


def _expire_changelogs(given: Given) -> Sequence[Sequence[object]]:
    _ensure_no_options(given)
    done = given.table.expire_changelogs(
        given.number("retain_max"),
        given.number("retain_min"),
        given.time_ms("older_than"),
        given.number("max_deletes"),
        given.flag("delete_all"),
    )
    return ((len(done.ids),),)


def _expire_partitions(given: Given) -> Sequence[Sequence[object]]:
    _ensure_no_options(given)
    done = given.table.expire_partitions(
        given.text("expiration_time"),
        given.text("timestamp_formatter"),
        given.text("timestamp_pattern"),
        given.text("expire_strategy"),
        given.number("max_expires"),
    )
    lines = [", ".join(f"{key}={value}" for key, value in one.items()) for one in done.partitions]
    return [(line,) for line in lines or ["No expired partitions."]]


def _expire_tags(given: Given) -> Sequence[Sequence[object]]:
    names = given.table.expire_tags(given.time_ms("older_than"))
    return [(name,) for name in names or ["No expired tags."]]


def _remove_orphan_files(given: Given) -> Sequence[Sequence[object]]:
    done = given.table.remove_orphan_files(given.time_ms("older_than"), given.flag("dry_run"))
    return ((done.count, done.size_bytes),)


def _remove_unexisting_files(given: Given) -> Sequence[Sequence[object]]:
    return [(path,) for path in given.table.remove_unexisting_files(given.flag("dry_run")).paths]


def _compact(given: Given) -> object:
    for name in ("options",):
        if given.text(name) is not None:
            raise UnsupportedFeature(
                f"compact with {name} is not done here",
                code="unsupported-compaction",
                url=given.table.url,
                features=(name,),
                hint="leave it out: buckets are compacted fully",
            )
    partitions, where = given.text("partitions"), given.text("where")
    if partitions is not None and where is not None:
        raise InvalidRequest("partitions and where exclude each other", code="contradicting-options")
    return given.table.compact(
        where if partitions is None else _condition(partitions, given),
        order_strategy=given.text("order_strategy"),
        order_by=_names(given.text("order_by") or ""),
        compact_strategy=given.text("compact_strategy") or "full",
        partition_idle_time=given.text("partition_idle_time"),
    )


def _rescale(given: Given) -> object:
    partitions, where = given.text("partitions"), given.text("where")
    if partitions is not None and where is not None:
        raise InvalidRequest("partitions and where exclude each other", code="contradicting-options")
    return given.table.rescale(
        given.number("bucket_num"), where if partitions is None else _condition(partitions, given)
    )


def _analyze(given: Given) -> object:
    columns = given.text("columns")
    return given.table.analyze(None if columns is None else _names(columns))


def _condition(partitions: str, given: Given) -> str:
    """`"day=1,hour=2;day=2,hour=3"` as a condition."""
    schema = given.table.schema
    whole = []
    for text in partitions.split(";"):
        pairs = dict(pair.partition("=")[::2] for pair in text.split(","))
        quoted = {key.strip(): value.strip().strip("'\"").replace("'", "''") for key, value in pairs.items()}
        if not set(quoted) <= set(schema.partition_keys):
            raise InvalidRequest(
                f"{text!r} is no partition of the table",
                code="invalid-partition",
                hint=f"partition keys: {', '.join(schema.partition_keys) or 'none'}",
            )
        whole.append("(" + " and ".join(f"`{key}` = '{value}'" for key, value in quoted.items()) + ")")
    return " or ".join(whole)


def _ensure_no_options(given: Given) -> None:
    if given.text("options") is not None:
        raise UnsupportedFeature(
            "procedures take no dynamic options here",
            code="unsupported-option",
            url=given.table.url,
            features=("options",),
            hint="give the arguments, or alter the table's options",
        )


_TAGGED = {"table": STRING, "tag": STRING, "snapshot?": LONG, "time_retained?": STRING}
_NUMBERS = {"retain_max?": INT, "retain_min?": INT, "older_than?": STRING, "max_deletes?": INT}

#: By Java's names.
PROCEDURES: Mapping[str, Procedure] = {
    "create_tag": Procedure(
        _TAGGED,
        _DONE,
        _done(lambda g: g.table.create_tag(g.needed("tag"), g.number("snapshot"), g.text("time_retained"))),
    ),
    "create_tag_from_timestamp": Procedure(
        {"table": STRING, "tag": STRING, "timestamp": LONG, "time_retained?": STRING},
        (("tagName", STRING), ("snapshot", LONG)),
        _tag_since,
    ),
    "replace_tag": Procedure(
        _TAGGED,
        _DONE,
        _done(lambda g: g.table.replace_tag(g.needed("tag"), g.number("snapshot"), g.text("time_retained"))),
    ),
    "rename_tag": Procedure(
        {"table": STRING, "tag": STRING, "target_tag": STRING},
        _DONE,
        _done(lambda g: g.table.rename_tag(g.needed("tag"), g.needed("target_tag"))),
    ),
    "delete_tag": Procedure(
        {"table": STRING, "tag": STRING}, _DONE, _done(lambda g: g.table.delete_tag(*_names(g.needed("tag"))))
    ),
    "expire_tags": Procedure({"table": STRING, "older_than?": STRING}, (("expired_tags", STRING),), _expire_tags),
    "trigger_tag_automatic_creation": Procedure(
        {"table": STRING}, _DONE, _done(lambda g: g.table.trigger_tag_automatic_creation())
    ),
    "rollback": Procedure({"table": STRING, "version": STRING, "is_timestamp?": BOOLEAN}, _DONE, _done(_rollback)),
    "rollback_to_timestamp": Procedure({"table": STRING, "timestamp": LONG}, (("result", STRING),), _rollback_to_time),
    "rollback_to_watermark": Procedure(
        {"table": STRING, "watermark": LONG}, (("result", STRING),), _rollback_to_watermark
    ),
    "create_branch": Procedure(
        {"table": STRING, "branch": STRING, "tag?": STRING},
        _DONE,
        _done(lambda g: g.table.create_branch(g.needed("branch"), g.text("tag"))),
    ),
    "delete_branch": Procedure(
        {"table": STRING, "branch": STRING},
        _DONE,
        _done(lambda g: g.table.delete_branch(*_names(g.needed("branch")))),
    ),
    "fast_forward": Procedure(
        {"table": STRING, "branch": STRING}, _DONE, _done(lambda g: g.table.fast_forward(g.needed("branch")))
    ),
    "expire_snapshots": Procedure(
        {"table": STRING, **_NUMBERS, "options?": STRING}, (("deleted_snapshots_count", INT),), _expire_snapshots
    ),
    "expire_changelogs": Procedure(
        {"table": STRING, **_NUMBERS, "delete_all?": BOOLEAN, "options?": STRING},
        (("deleted_changelogs_count", INT),),
        _expire_changelogs,
    ),
    "expire_partitions": Procedure(
        {
            "table": STRING,
            "expiration_time?": STRING,
            "timestamp_formatter?": STRING,
            "timestamp_pattern?": STRING,
            "expire_strategy?": STRING,
            "max_expires?": INT,
            "options?": STRING,
        },
        (("expired_partitions", STRING),),
        _expire_partitions,
    ),
    "remove_orphan_files": Procedure(
        {"table": STRING, "older_than?": STRING, "dry_run?": BOOLEAN, "parallelism?": INT, "mode?": STRING},
        (("deletedFileCount", LONG), ("deletedFileTotalLenInBytes", LONG)),
        _remove_orphan_files,
    ),
    "remove_unexisting_files": Procedure(
        {"table": STRING, "dry_run?": BOOLEAN, "parallelism?": INT}, (("fileName", STRING),), _remove_unexisting_files
    ),
    "mark_partition_done": Procedure(
        {"table": STRING, "partitions": STRING},
        _DONE,
        _done(lambda g: g.table.mark_partition_done(g.needed("partitions"))),
    ),
    "reset_consumer": Procedure(
        {"table": STRING, "consumerId": STRING, "nextSnapshotId?": LONG},
        _DONE,
        _done(lambda g: g.table.reset_consumer(g.needed("consumerId"), g.number("nextSnapshotId"))),
    ),
    "clear_consumers": Procedure(
        {"table": STRING, "includingConsumers?": STRING, "excludingConsumers?": STRING},
        _DONE,
        _done(lambda g: g.table.clear_consumers(g.text("includingConsumers"), g.text("excludingConsumers"))),
    ),
    "compact": Procedure(
        {
            "table": STRING,
            "partitions?": STRING,
            "compact_strategy?": STRING,
            "order_strategy?": STRING,
            "order_by?": STRING,
            "where?": STRING,
            "options?": STRING,
            "partition_idle_time?": STRING,
        },
        _DONE,
        _done(_compact),
    ),
    "rescale": Procedure(
        {"table": STRING, "bucket_num?": INT, "partitions?": STRING, "where?": STRING}, _DONE, _done(_rescale)
    ),
    "analyze": Procedure({"table": STRING, "columns?": STRING}, _DONE, _done(_analyze)),
    "compact_manifest": Procedure(
        {"table": STRING, "options?": STRING}, _DONE, _done(lambda g: g.table.compact_manifests())
    ),
}


def find_procedure(name: str) -> Procedure:
    """The procedure of a name, however it is capitalised.

    Raises:
        InvalidRequest: There is none (`"unknown-procedure"`).
    """
    found = PROCEDURES.get(name.lower())
    if found is None:
        raise InvalidRequest(
            f"there is no procedure sys.{name}", code="unknown-procedure", hint=suggest(name, tuple(PROCEDURES))
        )
    return found


def run_procedure(
    name: str, url: str, given: Mapping[str, Value], storage_options: Mapping[str, str], branch: str | None = None
) -> list[dict[str, object]]:
    """Carries out a procedure of the table at a URL, times in UTC; its rows.

    Raises:
        InvalidRequest: As of `find_procedure` and `bind_arguments`.
    """
    procedure = find_procedure(name)
    bound = bind_arguments(name, procedure, (), {"table": url, **given})
    table = PaimonTable.forPath(url, storage_options, branch)
    columns = [column for column, _ in procedure.result]
    return [dict(zip(columns, row, strict=True)) for row in procedure.run(Given(table, bound, "UTC"))]


def bind_arguments(
    name: str, procedure: Procedure, positional: Sequence[Value], named: Mapping[str, Value]
) -> dict[str, Value]:
    """The arguments of a call by their names, of the parameters' types.

    Raises:
        InvalidRequest: One is unknown (`"unknown-argument"`), given twice, missing (`"missing-argument"`) or of another
            type (`"invalid-argument"`).
    """
    kinds = {key.rstrip("?"): kind for key, kind in procedure.parameters.items()}
    names = list(kinds)
    if len(positional) > len(names):
        raise InvalidRequest(f"{name} takes {len(names)} arguments, not {len(positional)}", code="unknown-argument")
    by_folded = {key.casefold(): key for key in names}
    found: dict[str, Value] = dict(zip(names, positional, strict=False))
    for key, value in named.items():
        own = by_folded.get(key.casefold())
        if own is None:
            raise InvalidRequest(f"{name} has no argument {key}", code="unknown-argument", hint=suggest(key, names))
        if own in found:
            raise InvalidRequest(f"the argument {own} of {name} is given twice", code="unknown-argument")
        found[own] = value
    missing = [key for key in procedure.parameters if not key.endswith("?") and found.get(key) is None]
    if missing:
        raise InvalidRequest(
            f"{name} needs the argument {missing[0]}",
            code="missing-argument",
            hint=f"CALL sys.{name}({', '.join(f'{m} => ...' for m in missing)})",
        )
    return {key: _typed(name, key, found.get(key), kind) for key, kind in kinds.items()}


def _typed(name: str, key: str, value: Value, kind: str) -> Value:
    if value is None:
        return None
    try:
        if kind == STRING:
            return str(value).lower() if isinstance(value, bool) else str(value)
        if kind == BOOLEAN:
            return {"true": True, "false": False}[str(value).casefold()]
        if isinstance(value, bool):
            raise ValueError
        return int(value)
    except (ValueError, KeyError):
        raise InvalidRequest(
            f"the argument {key} of {name} is {value!r}, and no {kind}", code="invalid-argument"
        ) from None
