"""Tags: snapshots with a name, which live on when the snapshot expires.

Specification: `org.apache.paimon.utils.TagManager`, `org.apache.paimon.tag.Tag`, `TagTimeExpire`.
"""

from __future__ import annotations

import datetime as dt
import json
from dataclasses import dataclass

import msgspec

from alluvium.errors import InvalidRequest, NotFound
from alluvium.paimon.log.names import directory, ensure_name, is_there, list_names, read_file
from alluvium.paimon.log.schema_log import MAIN_BRANCH
from alluvium.paimon.log.travel import list_snapshots, read_snapshot, read_tag
from alluvium.paimon.terms.spec import SnapshotDocument, parse_snapshot
from alluvium.paimon.upkeep.removal.remove import remove_dead
from alluvium.paimon.upkeep.removal.roots import Kind, Root
from alluvium.storage.parallel import map_parallel
from alluvium.storage.store import PutOutcome, Store

#: What a tag says that a snapshot does not.
_OWN = ("tagCreateTime", "tagTimeRetained")


@dataclass(frozen=True, slots=True)
class Tag:
    """A tag.

    Attributes:
        name: Its name.
        document: The snapshot.
        created: When it was made, by the clock of whoever made it; of older tags when their file was written.
        retained: For how long it stays; None: for ever.
    """

    name: str
    document: SnapshotDocument
    created: dt.datetime
    retained: dt.timedelta | None


def tag_path(name: str, branch: str = MAIN_BRANCH) -> str:
    """Where a tag lies, from the table's root."""
    return f"{directory(branch, 'tag')}/tag-{ensure_name(name, 'tag')}"


def create_tag(
    store: Store,
    name: str,
    snapshot_id: int | None = None,
    retained_ms: int | None = None,
    branch: str = MAIN_BRANCH,
    replace: bool = False,
) -> int:
    """Gives a snapshot a name.

    Args:
        store: The table's objects.
        name: The name.
        snapshot_id: None: the newest. One that has expired still has the files of another tag of it.
        retained_ms: For how long the tag stays; None: for ever.
        branch: Whose snapshot.
        replace: Whether the tag is there, and names another snapshot from now on.

    Returns:
        The snapshot's id.

    Raises:
        InvalidRequest: There is a tag of that name (`"tag-exists"`), or no name.
        NotFound: There is no such snapshot, or no tag to replace; or the snapshot expired meanwhile.
    """
    path = _named(name, branch)
    source, data = _source(store, snapshot_id, branch)
    document = parse_snapshot(data, source)
    content = data if retained_ms is None else _with_times(data, retained_ms)
    before: Root | None = None
    said = b""
    if replace:
        before = Root(Kind.TAG, branch, path, read_tag(store, name, branch))
        said = store.get(path)
        store.put(path, content)
    else:
        _put_new(store, name, path, content)
    if not still_names(store, source, document):
        # Whoever let it expire, or took the tag away that kept it, may have looked for tags before this one was there.
        if before is None:
            delete_tag(store, name, branch)
        else:
            store.put(path, said)
        raise NotFound(
            f"snapshot {document.id} expired while the tag {name!r} was made", code="snapshot-expired", path=source
        )
    if before is not None and before.document.id != document.id:
        remove_dead(store, [before] if not _has_snapshot(store, before) else [])
    return document.id


def rename_tag(store: Store, name: str, target: str, branch: str = MAIN_BRANCH) -> None:
    """Gives a tag another name.

    Raises:
        NotFound: There is no such tag.
        InvalidRequest: The other name is taken (`"tag-exists"`).
    """
    # Both names for a moment, never none.
    copy_tag(store, name, target, branch)
    store.delete(tag_path(name, branch))


def copy_tag(store: Store, name: str, target: str, branch: str = MAIN_BRANCH, retained_ms: int | None = None) -> None:
    """Gives the snapshot of a tag another name beside it; arguments and errors as of `create_tag` and `rename_tag`."""
    path, new = _named(name, branch), _named(target, branch)
    read_tag(store, name, branch)
    content = read_file(store, path, tag_changed(name, path))
    _put_new(store, target, new, content if retained_ms is None else _with_times(content, retained_ms))
    if not still_names(store, path, parse_snapshot(content, path)):
        # Whoever deleted or replaced the tag may have looked for others before this one was there.
        delete_tag(store, target, branch)
        raise tag_changed(name, path)


def tag_changed(name: str, path: str) -> NotFound:
    """Somebody has taken away what a tag was."""
    return NotFound(f"the tag {name!r} was deleted or replaced meanwhile", code="tag-not-found", path=path)


def still_names(store: Store, path: str, document: SnapshotDocument) -> bool:
    """Whether a file of a snapshot or a tag is there, and is of the same snapshot as when it was read."""
    try:
        return names_as(store.get(path), path, document)
    except NotFound:
        return False


def names_as(data: bytes, path: str, document: SnapshotDocument) -> bool:
    """Whether a file of a snapshot or a tag is of a snapshot."""
    return _snapshot_of(parse_snapshot(data, path)) == _snapshot_of(document)


def _snapshot_of(document: SnapshotDocument) -> SnapshotDocument:
    """Without what a tag says beside."""
    return msgspec.structs.replace(document, tag_create_time=None, tag_time_retained=None)


def delete_tag(store: Store, name: str, branch: str = MAIN_BRANCH) -> tuple[str, ...]:
    """Deletes a tag, with the files that nothing else needs; one that is not there is no error, as in Java.

    Returns:
        The files that went, from the table's root.
    """
    path = _named(name, branch)
    try:
        root = Root(Kind.TAG, branch, path, read_tag(store, name, branch))
    except NotFound:
        return ()
    store.delete(path)
    return () if _has_snapshot(store, root) else remove_dead(store, [root]).paths


def list_all_tags(store: Store, branch: str = MAIN_BRANCH) -> list[Tag]:
    """The tags there are, by snapshot and name."""
    names = list_names(store, directory(branch, "tag"), "tag-")
    found = [tag for tag in map_parallel(lambda name: _read(store, name, branch), names) if tag is not None]
    return sorted(found, key=lambda tag: (tag.document.id, tag.name))


def expire_tags(
    store: Store, now: dt.datetime, older_than: dt.datetime | None = None, branch: str = MAIN_BRANCH
) -> list[str]:
    """Deletes tags whose time is over; their names.

    Args:
        store: The table's objects.
        now: By the clock that tags are made by.
        older_than: Those that were made before go, too.
        branch: Whose.
    """
    expired = []
    for tag in list_all_tags(store, branch):
        is_over = tag.retained is not None and now > tag.created + tag.retained
        if is_over or (older_than is not None and older_than > tag.created):
            delete_tag(store, tag.name, branch)
            expired.append(tag.name)
    return expired


def _named(name: str, branch: str) -> str:
    if not name.strip():
        raise InvalidRequest("a tag has a name", code="invalid-name")
    return tag_path(name, branch)


def _source(store: Store, snapshot_id: int | None, branch: str) -> tuple[str, bytes]:
    """Path and bytes of a snapshot's document, or of a tag that keeps it."""
    ids = list_snapshots(store, branch)
    if snapshot_id is None:
        if not ids:
            raise NotFound("there is no snapshot to tag: the table has none", code="snapshot-not-found")
        snapshot_id = ids[-1]
    path = f"{directory(branch, 'snapshot')}/snapshot-{snapshot_id}"
    try:
        return path, store.get(path)
    except NotFound:
        kept = next((tag.name for tag in list_all_tags(store, branch) if tag.document.id == snapshot_id), None)
        if kept is None:
            read_snapshot(store, snapshot_id, branch)  # tells which there are
            raise
    path = tag_path(kept, branch)
    changed = tag_changed(kept, path)
    document = json.loads(read_file(store, path, changed))
    if document.get("id") != snapshot_id:
        raise changed
    plain = {key: value for key, value in document.items() if key not in _OWN}
    return path, msgspec.json.format(msgspec.json.encode(plain), indent=2)


def _with_times(data: bytes, retained_ms: int) -> bytes:
    """The document with when it was made, and for how long: `LocalDateTime` and `Duration` as Jackson has them."""
    now = dt.datetime.now()
    created = [now.year, now.month, now.day, now.hour, now.minute, now.second, now.microsecond * 1000]
    own = {_OWN[0]: created, _OWN[1]: retained_ms / 1000}
    return msgspec.json.format(msgspec.json.encode({**json.loads(data), **own}), indent=2)


def _put_new(store: Store, name: str, path: str, content: bytes) -> None:
    outcome = store.put_if_absent(path, content)
    if outcome is PutOutcome.UNKNOWN and is_there(store, path) and store.get(path) == content:
        # It says what it is to say, whoever wrote it.
        return
    if outcome is not PutOutcome.DONE:
        raise InvalidRequest(
            f"there is a tag {name!r} already" if outcome is PutOutcome.EXISTS else f"the tag {name!r} was not made",
            code="tag-exists" if outcome is PutOutcome.EXISTS else "tag-unknown",
            path=path,
            hint="delete it, or replace it",
        )


def _has_snapshot(store: Store, root: Root) -> bool:
    return is_there(store, f"{directory(root.branch, 'snapshot')}/snapshot-{root.document.id}")


def _read(store: Store, name: str, branch: str) -> Tag | None:
    try:
        document = read_tag(store, name, branch)
        created = created_at(document.tag_create_time)
        if created is None:
            modified = store.head(tag_path(name, branch)).modified_ms
            created = dt.datetime.fromtimestamp(modified / 1000)
    except NotFound:
        return None
    seconds = document.tag_time_retained
    retained = dt.timedelta(seconds=float(seconds)) if isinstance(seconds, (int, float)) else None
    return Tag(name, document, created, retained)


def created_at(value: object) -> dt.datetime | None:
    """A `LocalDateTime` in JSON: text, or a list of its parts."""
    if isinstance(value, str):
        return dt.datetime.fromisoformat(value[:26])
    if isinstance(value, list) and len(value) >= 5:
        year, month, day, hour, minute, second, nanos = [*value, 0, 0][:7]
        return dt.datetime(year, month, day, hour, minute, second, nanos // 1000)
    return None
