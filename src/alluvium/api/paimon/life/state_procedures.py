"""Procedures about the states of a table: tags, rollback, branches; and copies of the newest."""

from __future__ import annotations

from collections.abc import Mapping

from alluvium.api.paimon.life.procedure import BOOLEAN, DONE, LONG, STRING, Given, Procedure, Rows, done, names
from alluvium.errors import InvalidRequest

_TAGGED = {"table": STRING, "tag": STRING, "snapshot?": LONG, "time_retained?": STRING}
_BRANCHED = {"table": STRING, "branch": STRING}


def _rollback(given: Given) -> object:
    said = {name: given.values[name] for name in ("version", "snapshot", "tag") if given.text(name) is not None}
    if len(said) != 1:
        raise InvalidRequest(
            "rollback goes to one of version, snapshot and tag",
            code="contradicting-options" if said else "missing-argument",
            url=given.url,
            hint="CALL sys.rollback('db.t', tag => 'monday')",
        )
    ((name, version),) = said.items()
    if given.flag("is_timestamp"):
        if name == "tag" or not str(version).isdecimal():
            raise InvalidRequest(
                f"{version!r} is no time", code="invalid-timestamp", url=given.url, hint="milliseconds since 1970 UTC"
            )
        return given.table.rollback_to_timestamp(int(str(version)))
    return given.table.rollback_to(str(version), is_tag={"tag": True, "snapshot": False}.get(name))


def _rollback_to_time(given: Given) -> Rows:
    found = given.table.rollback_to_timestamp(given.number("timestamp") or 0)
    return ((f"Success roll back to snapshot: {found} .",),)


def _rollback_to_watermark(given: Given) -> Rows:
    found = given.table.rollback_to_watermark(given.number("watermark") or 0)
    return ((f"Success roll back to snapshot: {found} .",),)


def _rollback_to_as_latest(given: Given) -> Rows:
    found = given.table.rollback_to_as_latest(given.text("tag"), given.number("snapshot_id"))
    return ((found.previous, found.restored, found.current),)


def _tag_since(given: Given) -> Rows:
    tag = given.needed("tag")
    number = given.table.create_tag_from_timestamp(tag, given.number("timestamp") or 0, given.text("time_retained"))
    return ((tag, number),)


def _tag_since_watermark(given: Given) -> Rows:
    tag = given.needed("tag")
    given.table.create_tag_from_watermark(tag, given.number("watermark") or 0, given.text("time_retained"))
    found = given.table.tagged(tag)
    return ((tag, found.id, found.time_millis, str(found.watermark)),)


def _expire_tags(given: Given) -> Rows:
    expired = given.table.expire_tags(given.time_ms("older_than"))
    return [(name,) for name in expired or ["No expired tags."]]


def _create_branch(given: Given) -> None:
    is_lenient = (given.text("ignoreIfExists") or "false").lower() == "true"
    given.table.create_branch(given.needed("branch"), given.text("tag"), is_lenient)


def _copy(given: Given) -> object:
    assert given.target is not None, "whoever calls says where"
    return given.table.copy(given.target, given.text("where"))


#: By Java's names.
STATES: Mapping[str, Procedure] = {
    "create_tag": Procedure(
        _TAGGED,
        DONE,
        done(lambda g: g.table.create_tag(g.needed("tag"), g.number("snapshot"), g.text("time_retained"))),
    ),
    "create_tag_from_timestamp": Procedure(
        {"table": STRING, "tag": STRING, "timestamp": LONG, "time_retained?": STRING},
        (("tagName", STRING), ("snapshot", LONG)),
        _tag_since,
    ),
    "create_tag_from_watermark": Procedure(
        {"table": STRING, "tag": STRING, "watermark": LONG, "time_retained?": STRING},
        (("tagName", STRING), ("snapshot", LONG), ("commit_time", LONG), ("watermark", STRING)),
        _tag_since_watermark,
    ),
    "replace_tag": Procedure(
        _TAGGED,
        DONE,
        done(lambda g: g.table.replace_tag(g.needed("tag"), g.number("snapshot"), g.text("time_retained"))),
    ),
    "rename_tag": Procedure(
        {"table": STRING, "tag": STRING, "target_tag": STRING},
        DONE,
        done(lambda g: g.table.rename_tag(g.needed("tag"), g.needed("target_tag"))),
    ),
    "delete_tag": Procedure(
        {"table": STRING, "tag": STRING}, DONE, done(lambda g: g.table.delete_tag(*names(g.needed("tag"))))
    ),
    "expire_tags": Procedure({"table": STRING, "older_than?": STRING}, (("expired_tags", STRING),), _expire_tags),
    "trigger_tag_automatic_creation": Procedure(
        {"table": STRING}, DONE, done(lambda g: g.table.trigger_tag_automatic_creation())
    ),
    "rollback": Procedure(
        {"table": STRING, "version?": STRING, "snapshot?": LONG, "tag?": STRING, "is_timestamp?": BOOLEAN},
        DONE,
        done(_rollback),
    ),
    "rollback_to_timestamp": Procedure({"table": STRING, "timestamp": LONG}, (("result", STRING),), _rollback_to_time),
    "rollback_to_watermark": Procedure(
        {"table": STRING, "watermark": LONG}, (("result", STRING),), _rollback_to_watermark
    ),
    "rollback_to_as_latest": Procedure(
        {"table": STRING, "tag?": STRING, "snapshot_id?": LONG},
        (("previous_snapshot_id", LONG), ("rolled_back_snapshot_id", LONG), ("current_snapshot_id", LONG)),
        _rollback_to_as_latest,
    ),
    "create_branch": Procedure({**_BRANCHED, "tag?": STRING, "ignoreIfExists?": STRING}, DONE, done(_create_branch)),
    "delete_branch": Procedure(_BRANCHED, DONE, done(lambda g: g.table.delete_branch(*names(g.needed("branch"))))),
    "rename_branch": Procedure(
        {"table": STRING, "from_branch": STRING, "to_branch": STRING},
        DONE,
        done(lambda g: g.table.rename_branch(g.needed("from_branch"), g.needed("to_branch"))),
    ),
    "fast_forward": Procedure(_BRANCHED, DONE, done(lambda g: g.table.fast_forward(g.needed("branch")))),
    "copy": Procedure(
        {"source_table": STRING, "target_table": STRING, "where?": STRING},
        DONE,
        done(_copy),
        subject="source_table",
        target="target_table",
    ),
}
