"""Branches: histories beside the main one, which share its data files until they write their own.

Specification: `org.apache.paimon.utils.FileSystemBranchManager`.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass

from alluvium.errors import InvalidRequest, NotFound
from alluvium.paimon.commit.callers import callers_of, pass_on, take_over
from alluvium.paimon.log.names import (
    directory,
    ensure_name,
    list_branches,
    list_names,
    read_file,
    renamed_mark,
)
from alluvium.paimon.log.schema_log import (
    BRANCH_OPTIONS,
    MAIN_BRANCH,
    list_schema_ids,
    load_latest_schema,
    not_a_table,
    schema_path,
)
from alluvium.paimon.log.travel import list_snapshots, read_snapshot, read_tag
from alluvium.paimon.terms.spec import parse_snapshot
from alluvium.paimon.upkeep.life.rollback import forget_changelogs
from alluvium.paimon.upkeep.life.tags import still_names, tag_changed, tag_path
from alluvium.storage.parallel import map_parallel
from alluvium.storage.store import PutOutcome, Store


def create_branch(store: Store, name: str, tag: str | None = None) -> None:
    """Makes a branch of the main one.

    Args:
        store: The table's objects.
        name: The branch's.
        tag: It begins as this tag; None: with the newest schema, and without rows.

    Raises:
        InvalidRequest: No name of a branch (`"invalid-name"`), or there is one (`"branch-exists"`).
        NotFound: There is no such tag, or no table.
    """
    _ensure_new(store, name)
    ids = list_schema_ids(store)
    if not ids:
        raise not_a_table(store)
    newest = ids[-1]
    if tag is not None:
        read_tag(store, tag)
        said = read_file(store, tag_path(tag), tag_changed(tag, tag_path(tag)))
        document = parse_snapshot(said, tag_path(tag))
        newest = document.schema_id
    _claim_name(store, name)
    try:
        if tag is not None:
            store.put(tag_path(tag, name), said)
            pass_on(store, name, document.id)
            _begin_at(store, document.id, said, name)
        # The newest first: a branch whose newest schema is an older one would be read wrongly.
        for number in sorted((n for n in ids if n <= newest), reverse=True):
            _copy(store, schema_path(number), schema_path(number, name))
        if tag is not None and not still_names(store, tag_path(tag), document):
            # Whoever deleted or replaced it may have looked for branches before this one was there.
            raise tag_changed(tag, tag_path(tag))
    except Exception:
        store.delete_tree(f"branch/branch-{name}")
        raise
    store.delete(_claim(name))


def delete_branch(store: Store, name: str) -> None:
    """Deletes a branch; its own data files stay until `remove_orphan_files`, as writers may be at work.

    Raises:
        NotFound: There is no such branch.
        InvalidRequest: It is the main one, or the table shows its rows (`"branch-in-use"`).
    """
    ensure_name(name, "branch")
    ensure_not_shown(store, (name,))
    if name == MAIN_BRANCH:
        raise InvalidRequest("the main branch cannot be deleted", code="invalid-name", hint="delete the table")
    if not any(True for _ in store.list_tree(f"branch/branch-{name}")):
        raise no_branch(store, name)
    # Without a schema there is no branch: nobody reads one of which half is gone.
    for number in list_schema_ids(store, name):
        store.delete(schema_path(number, name))
    store.delete_tree(f"branch/branch-{name}")


def ensure_not_shown(store: Store, names: Collection[str]) -> None:
    """Before branches are deleted: a table that shows the rows of one of them could not be read any more.

    Raises:
        InvalidRequest: It does (`"branch-in-use"`).
    """
    schema = load_latest_schema(store)
    shown = {} if schema is None else {key: schema.options.get(key, "").strip() for key in BRANCH_OPTIONS}
    for key, branch in shown.items():
        if branch in names:
            raise InvalidRequest(
                f"the branch {branch!r} is not deleted, as the table shows its rows: {key} = {branch}",
                code="branch-in-use",
                url=store.url,
                hint=f"unset {key} first",
            )


def rename_branch(store: Store, name: str, target: str) -> None:
    """Gives a branch another name. A commit to the old one goes with it, or its writer is told that it is none, or that
    nobody knows.

    Raises:
        NotFound: There is no such branch.
        InvalidRequest: It is the main one, or the other is no name, or taken (`"branch-exists"`).
    """
    if name == MAIN_BRANCH:
        raise InvalidRequest("the main branch cannot be renamed", code="invalid-name")
    ensure_name(name, "branch")
    if not list_schema_ids(store, name):
        raise no_branch(store, name)
    _ensure_new(store, target)
    _claim_name(store, target)
    try:
        copied = _copy_documents(store, name, target, frozenset())
    except Exception:
        store.delete_tree(f"branch/branch-{target}")
        raise
    store.put(renamed_mark(name), b"")
    # Whoever has put a snapshot looks for the schema then: before this moment his is there, and listed below.
    for number in list_schema_ids(store, name):
        store.delete(schema_path(number, name))
    while more := _copy_documents(store, name, target, copied):
        copied |= more
    store.delete(_claim(target))
    # What was copied goes before the mark: who finds his own snapshot and no mark knows that it was not.
    store.delete_tree(directory(name, "snapshot"))
    store.delete_tree(f"branch/branch-{name}")


def _copy_documents(store: Store, name: str, target: str, known: frozenset[str]) -> frozenset[str]:
    """Copies what a branch has into the folder of another, its schemas last: until then that is none.

    Hints are not copied: they may be missing, and must not lead back.

    Returns:
        The paths, from the branch's folder, that were not known.
    """
    root = f"branch/branch-{name}/"
    paths = {info.path.removeprefix(root) for info in store.list_tree(root.rstrip("/"))} - known
    found = sorted((path for path in paths if path.rpartition("/")[2] not in _LEFT_ALONE), key=_by_number)
    for is_schema in (False, True):
        # Of numbered ones the newest first, which is a whole state by itself.
        for path in reversed([path for path in found if path.startswith("schema/") == is_schema]):
            try:
                data = store.get(f"{root}{path}")
            except NotFound:
                continue  # it has expired meanwhile
            store.put(f"branch/branch-{target}/{path}", data)
    return frozenset(found)


def _by_number(path: str) -> tuple[str, int]:
    """Numbered files of a folder in their order."""
    name, dash, number = path.rpartition("-")
    return (name, int(number)) if dash and number.isdecimal() else (path, 0)


def fast_forward(store: Store, name: str) -> int:
    """Has the main branch go on as another one, from where that one began; what came on the main branch since is gone
    from its history.

    Returns:
        The newest snapshot's id.

    Raises:
        NotFound: There is no such branch.
        InvalidRequest: It is the main one, or has no snapshot (`"empty-branch"`).
    """
    if name == MAIN_BRANCH or not name.strip():
        raise InvalidRequest(f"the branch {name!r} cannot be fast-forwarded to", code="invalid-name")
    if not list_schema_ids(store, name):
        raise no_branch(store, name)
    ids = list_snapshots(store, name)
    if not ids:
        raise InvalidRequest(
            f"the branch {name!r} has no snapshot", code="empty-branch", hint="write to it, or make it of a tag"
        )
    first, last = ids[0], ids[-1]
    taken = _all_of(store, name, ids)
    known = callers_of(store, name)
    while True:
        # Somebody may take the main branch elsewhere meanwhile: then this one goes on last.
        _place(store, taken, first, last)
        take_over(store, known, first)
        if list_snapshots(store)[-1] >= last:
            return last


#: Of a branch's files what does not go with its name: hints, and marks.
_LEFT_ALONE = ("EARLIEST", "LATEST", "_making", "_renamed")


@dataclass(frozen=True, slots=True)
class _Taken:
    """What a branch has, read before anything is changed: it may be deleted meanwhile.

    Attributes:
        snapshots: Their documents by their ids, oldest first.
        schemas: Those that came since it began, by their ids.
        newest_schema: The id of the newest.
        tags: Their documents by their names.
    """

    snapshots: dict[int, bytes]
    schemas: dict[int, bytes]
    newest_schema: int
    tags: dict[str, bytes]


def _all_of(store: Store, name: str, ids: Sequence[int]) -> _Taken:
    folder = directory(name, "snapshot")
    snapshots = {number: f"{folder}/snapshot-{number}" for number in ids}
    begun_with = read_snapshot(store, ids[0], name).schema_id
    own = list_schema_ids(store, name)
    if not own:
        raise no_branch(store, name)
    schemas = {number: schema_path(number, name) for number in own if number >= begun_with}
    tags = {tag: tag_path(tag, name) for tag in list_names(store, directory(name, "tag"), "tag-")}
    paths = [*snapshots.values(), *schemas.values(), *tags.values()]
    content = dict(zip(paths, map_parallel(store.get, paths), strict=True))
    return _Taken(
        {number: content[path] for number, path in snapshots.items()},
        {number: content[path] for number, path in schemas.items()},
        own[-1],
        {tag: content[path] for tag, path in tags.items()},
    )


def _place(store: Store, taken: _Taken, first: int, last: int) -> None:
    """Has the main branch be as what was taken, from its first snapshot on."""
    folder = directory(MAIN_BRANCH, "snapshot")
    there = list_snapshots(store)
    if last not in there:
        # All that the main one has may be later: without a snapshot it would be a table without rows meanwhile.
        store.put(f"{folder}/snapshot-{last}", taken.snapshots[last])
    # As for a rollback: the hint never leads to what is gone.
    store.put(f"{folder}/LATEST", str(last).encode())
    for number in reversed(there):
        if number > last:
            store.delete(f"{folder}/snapshot-{number}")
    for number, data in taken.schemas.items():
        store.put(schema_path(number), data)
    for number in reversed(list_schema_ids(store)):
        if number > taken.newest_schema:
            store.delete(schema_path(number))
    # The newest first: it is a whole state, whatever stands below it meanwhile.
    for number in reversed(taken.snapshots):
        store.put(f"{folder}/snapshot-{number}", taken.snapshots[number])
    for number in list_snapshots(store):
        if number >= first and number not in taken.snapshots:
            store.delete(f"{folder}/snapshot-{number}")
    # Believed, too, as soon as a snapshot of that number is there again.
    store.put(f"{folder}/EARLIEST", str(min(list_snapshots(store), default=first)).encode())
    forget_changelogs(store, first)
    for tag, data in taken.tags.items():
        store.put(tag_path(tag), data)
    for tag in list_names(store, directory(MAIN_BRANCH, "tag"), "tag-"):
        path = tag_path(tag)
        if tag not in taken.tags and parse_snapshot(store.get(path), path).id >= first:
            store.delete(path)


def no_branch(store: Store, name: str) -> NotFound:
    """There is none of that name."""
    known = list_branches(store)
    return NotFound(
        f"there is no branch {name!r}",
        code="branch-not-found",
        url=store.url,
        hint=f"branches: {', '.join(known[:12])}" if known else "the table has no branches",
    )


def _ensure_new(store: Store, name: str) -> None:
    ensure_name(name, "branch")
    if name == MAIN_BRANCH or not name.strip() or name.isdigit():
        raise InvalidRequest(
            f"a branch cannot be called {name!r}", code="invalid-name", hint="not main, not blank, not digits alone"
        )
    if any(True for _ in store.list_tree(f"branch/branch-{name}")):
        raise _exists(name)


def _exists(name: str) -> InvalidRequest:
    problem = f"there is a branch {name!r} already, or what is left of one"
    return InvalidRequest(problem, code="branch-exists", hint="delete_branch removes it")


def _claim(name: str) -> str:
    """Stands while a branch is made; what a crash leaves of it is deleted with the branch."""
    return f"branch/branch-{name}/_making"


def _claim_name(store: Store, name: str) -> None:
    """Of two that make a branch at once one goes on: whoever fails later removes what is his own."""
    if store.put_if_absent(_claim(name), b"") is not PutOutcome.DONE:
        raise _exists(name)
    if any(info.path != _claim(name) for info in store.list_tree(f"branch/branch-{name}")):
        # Made, and finished, since it was looked for.
        store.delete(_claim(name))
        raise _exists(name)


def _begin_at(store: Store, number: int, said: bytes, name: str) -> None:
    """The snapshot of a tag as the branch's first; of one that has expired the tag's own words."""
    path, target = (f"{directory(b, 'snapshot')}/snapshot-{number}" for b in (MAIN_BRANCH, name))
    with suppress(NotFound):
        said = store.get(path)
    store.put(target, said)


def _copy(store: Store, source: str, target: str) -> None:
    store.put(target, store.get(source))
