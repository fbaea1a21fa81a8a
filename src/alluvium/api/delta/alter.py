"""Changing what a table says of itself, without Spark: columns, properties, constraints, protocol, older versions."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import alluvium
from alluvium.api.arguments import flag_of, property_texts, text_of, texts_of
from alluvium.api.delta.snapshots import open_snapshot
from alluvium.api.options import parse_timestamp_ms, parse_version
from alluvium.api.stores import storage_for
from alluvium.delta.description import evolve
from alluvium.delta.description.alter import apply_change, apply_to
from alluvium.delta.description.change_columns import alter_column
from alluvium.delta.description.cluster import changes_clustering, cluster_by
from alluvium.delta.description.evolve import Change
from alluvium.delta.description.evolve_columns import (
    NewColumn,
    add_columns,
    columns_there,
    drop_columns,
    rename_column,
)
from alluvium.delta.terms.config import TableConfig
from alluvium.delta.upkeep.drop.drop_feature import Rewrite, drop_feature
from alluvium.delta.upkeep.restore import restore
from alluvium.delta.upkeep.row_id_backfill import backfill_row_ids, needs_row_ids
from alluvium.delta.view.snapshot import Snapshot
from alluvium.errors import InvalidRequest, WrongType
from alluvium.plan.changes import Committed, Preview
from alluvium.plan.retry import DEFAULT_RETRY, RetryPolicy
from alluvium.schema.ddl import CHAR_VARCHAR, Declared, parse_column_path, parse_ddl_type
from alluvium.schema.edit import Position
from alluvium.schema.types import DataType, Field, JsonValue

#: `"first"`, `"after name"`, `("after", name)`.
PositionLike: TypeAlias = str | tuple[str, str] | None


def alter(url: str, storage_options: Mapping[str, str] | None = None) -> Alteration:
    """Changes of a table that touch no rows, without Spark.

    Args:
        url: The table.
        storage_options: Credentials and settings of the object store.

    Returns:
        An object with a method for each change; each opens the newest version and commits.

    Example:
        >>> alluvium.alter("/data/flights").set_properties({"delta.appendOnly": "true"}).version
    """
    store = storage_for(url, storage_options, None)
    return Alteration(
        lambda version=None, timestamp_ms=None: open_snapshot(store, version, timestamp_ms),
        f"Alluvium/{alluvium.__version__}",
    )


@dataclass(frozen=True, slots=True)
class Alteration:
    """A method for each change of a table's description.

    All of them take `dry_run=True`, which only tells what would change (a `Preview`), and `retry=`, and otherwise
    return what was committed. All raise `InvalidRequest` where the table does not allow the change,
    `UnsupportedFeature` where it needs a writer that we are not, and `CommitConflict` where another writer won.
    """

    _open: Callable[..., Snapshot]
    _engine: str

    def apply(
        self,
        change_of: Callable[[TableConfig], Change],
        dry_run: bool = False,
        retry: RetryPolicy = DEFAULT_RETRY,
        snapshot: Snapshot | None = None,
    ) -> Committed | Preview:
        """Commits any change; `snapshot` is the version that it was judged on, the newest where absent."""
        return apply_change(snapshot or self._open(), change_of, self._engine, dry_run, retry)

    def add_columns(
        self,
        columns: Mapping[str, str | DataType] | Sequence[Field],
        position: PositionLike = None,
        dry_run: bool = False,
        retry: RetryPolicy = DEFAULT_RETRY,
    ) -> Committed | Preview:
        """Adds columns, nullable ones.

        Args:
            columns: Dotted name to type (Spark SQL text or a type), or fields of the top level.
            position: `"first"` or `"after x"` for the first of them, the others follow it; None: last.
            dry_run: Only tell what would change.
            retry: How often to try.
        """
        wanted = new_columns(columns, position)
        return self.apply(lambda config: add_columns(config, wanted), dry_run, retry)

    def rename_column(
        self, name: str, new_name: str, dry_run: bool = False, retry: RetryPolicy = DEFAULT_RETRY
    ) -> Committed | Preview:
        """Renames a column (dotted when nested) of a table with column mapping; `new_name` is its last part."""
        path, new_name = parse_column_path(name), text_of(new_name, "new_name")
        return self.apply(lambda config: rename_column(config, path, new_name), dry_run, retry)

    def drop_columns(
        self, *names: str, if_exists: bool = False, dry_run: bool = False, retry: RetryPolicy = DEFAULT_RETRY
    ) -> Committed | Preview:
        """Drops columns (dotted when nested) of a table with column mapping."""
        return self.drop_paths([parse_column_path(name) for name in names], if_exists, dry_run, retry)

    def drop_paths(
        self,
        paths: Sequence[tuple[str, ...]],
        if_exists: bool = False,
        dry_run: bool = False,
        retry: RetryPolicy = DEFAULT_RETRY,
    ) -> Committed | Preview:
        """The same by the parts of the names; where none of them has to be there, and none is, nothing is committed."""
        if if_exists and not dry_run and not columns_there((snapshot := self._open()).config, paths):
            return Committed.nothing(snapshot.version)
        return self.apply(lambda config: drop_columns(config, paths, if_exists), dry_run, retry)

    def alter_column(
        self,
        name: str,
        type: str | DataType | None = None,
        comment: str | None = None,
        nullable: bool | None = None,
        position: PositionLike = None,
        dry_run: bool = False,
        retry: RetryPolicy = DEFAULT_RETRY,
    ) -> Committed | Preview:
        """Widens the type of a column, comments or moves it, or lets it be null.

        Args:
            name: The column, dotted when nested (`element`, `key` and `value` lead into arrays and maps).
            type: A wider type; the table must have `delta.enableTypeWidening`.
            comment: The new comment.
            nullable: True drops NOT NULL.
            position: `"first"` or `"after x"`.
            dry_run: Only tell what would change.
            retry: How often to try.
        """
        path, wanted, place = parse_column_path(name), _declared(type), parse_position(position)
        comment = None if comment is None else text_of(comment, "comment")
        nullable = None if nullable is None else flag_of(nullable, "nullable")
        data_type = wanted.type if wanted is not None else None
        said = wanted.metadata.get(CHAR_VARCHAR) if wanted is not None else None
        text_type = said if isinstance(said, str) else None
        return self.apply(
            lambda config: alter_column(config, path, data_type, comment, nullable, place, text_type), dry_run, retry
        )

    def drop_constraint(
        self, name: str, if_exists: bool = False, dry_run: bool = False, retry: RetryPolicy = DEFAULT_RETRY
    ) -> Committed | Preview:
        """Drops a CHECK constraint."""
        name, if_exists = text_of(name, "name"), flag_of(if_exists, "if_exists")
        return self.apply(lambda config: evolve.drop_constraint(config, name, if_exists), dry_run, retry)

    def set_properties(
        self, properties: Mapping[str, str], dry_run: bool = False, retry: RetryPolicy = DEFAULT_RETRY
    ) -> Committed | Preview:
        """Sets table properties; unknown names under `delta.` are refused."""
        texts = property_texts(properties)
        if not dry_run and needs_row_ids(snapshot := self._open(), texts):
            # Checked first: nothing is to be committed for a change that is refused.
            evolve.set_properties(snapshot.config, texts)
            backfill_row_ids(snapshot, self._engine, retry)
        return self.apply(lambda config: evolve.set_properties(config, texts), dry_run, retry)

    def unset_properties(
        self, *names: str, if_exists: bool = True, dry_run: bool = False, retry: RetryPolicy = DEFAULT_RETRY
    ) -> Committed | Preview:
        """Removes table properties."""
        names, if_exists = texts_of(names, "names"), flag_of(if_exists, "if_exists")
        return self.apply(lambda config: evolve.unset_properties(config, names, if_exists), dry_run, retry)

    def cluster_by(self, *names: str, dry_run: bool = False, retry: RetryPolicy = DEFAULT_RETRY) -> Committed | Preview:
        """Says by which columns (dotted when nested) OPTIMIZE is to cluster the table; no names: by none any more."""
        return self.cluster_by_paths([parse_column_path(name) for name in names], dry_run, retry)

    def cluster_by_paths(
        self, paths: Sequence[tuple[str, ...]], dry_run: bool = False, retry: RetryPolicy = DEFAULT_RETRY
    ) -> Committed | Preview:
        """The same by the parts of the names."""
        snapshot = self._open()
        if not changes_clustering(snapshot.config, paths):
            return Committed.nothing(snapshot.version)
        return apply_to(
            snapshot, lambda base: cluster_by(base.config, base.state.domains, paths), self._engine, dry_run, retry
        )

    def upgrade_protocol(
        self, reader: int, writer: int, dry_run: bool = False, retry: RetryPolicy = DEFAULT_RETRY
    ) -> Committed | Preview:
        """Supports what legacy protocol versions imply; lower ones than the table's change nothing.

        The `notes` of a dry run tell who could still read and write the table.
        """
        return self.apply(lambda config: evolve.upgrade_protocol(config, reader, writer), dry_run, retry)

    def add_feature(self, name: str, dry_run: bool = False, retry: RetryPolicy = DEFAULT_RETRY) -> Committed | Preview:
        """Supports a table feature, and those that it needs."""
        name = text_of(name, "name")
        return self.apply(lambda config: evolve.add_feature(config, name), dry_run, retry)

    def drop_feature(
        self,
        name: str,
        dry_run: bool = False,
        retry: RetryPolicy = DEFAULT_RETRY,
        rewrite: Rewrite | None = None,
        truncate: bool = False,
    ) -> Committed | Preview:
        """Supports a table feature no longer, where nothing of it is left in the table's files and schema.

        Its properties are set back. Older versions that cannot be read without it are hidden behind checkpoints.
        """
        return drop_feature(self._open(), text_of(name, "name"), self._engine, dry_run, retry, rewrite, truncate)

    def restore(
        self,
        version: int | None = None,
        timestamp: dt.datetime | dt.date | str | None = None,
        dry_run: bool = False,
        retry: RetryPolicy = DEFAULT_RETRY,
        said: str | None = None,
    ) -> Committed | Preview:
        """Makes an older version, or that of a time, the newest one; `said` is how the history names the time.

        Raises:
            NotFound: There is no such version, or data files of it are gone.
        """
        if (version is None) == (timestamp is None):
            raise InvalidRequest("restore needs a version or a timestamp", code="version-and-timestamp")
        version = None if version is None else parse_version(version)
        current = self._open()
        old = self._open(version, None if timestamp is None else parse_timestamp_ms(timestamp))
        parameters: dict[str, JsonValue] = {
            "version": version,
            "timestamp": said if timestamp is None or said is not None else str(timestamp),
        }
        return restore(current, old, parameters, self._engine, dry_run, retry)


def new_columns(
    columns: Mapping[str, str | DataType] | Sequence[Field], position: PositionLike = None
) -> tuple[NewColumn, ...]:
    """Columns to add, of which each but the first stands behind the one before it."""
    if isinstance(columns, Mapping):
        found = [_new_column(parse_column_path(name), data_type) for name, data_type in columns.items()]
    else:
        found = [NewColumn((f.name,), f) for f in _fields(columns)]
    place = parse_position(position)
    if place is None:
        return tuple(found)
    behind = [place, *(Position(column.path[-1]) for column in found[:-1])]
    return tuple(NewColumn(c.path, c.field, p) for c, p in zip(found, behind, strict=True))


def _new_column(path: tuple[str, ...], data_type: str | DataType) -> NewColumn:
    declared = _declared(data_type)
    assert declared is not None
    return NewColumn(path, Field(path[-1], declared.type, True, declared.metadata))


def _fields(columns: Sequence[Field]) -> Sequence[Field]:
    if isinstance(columns, (list, tuple)) and all(isinstance(f, Field) for f in columns):
        return columns
    raise WrongType(f"columns must map names to types, or be fields, not {columns!r:.80}", hint='{"n": "int"}')


def _declared(data_type: str | DataType | None) -> Declared | None:
    if isinstance(data_type, str):
        return parse_ddl_type(data_type)
    return None if data_type is None else Declared(data_type, {})


def parse_position(position: PositionLike) -> Position | None:
    """A place among columns out of what a caller says.

    Raises:
        InvalidRequest: `"invalid-position"`; it is of another type (`WrongType`).
    """
    if position is None:
        return None
    words = position.strip().split(None, 1) if isinstance(position, str) else texts_of(position, "a place")
    if len(words) == 1 and words[0].lower() == "first":
        return Position()
    if len(words) == 2 and words[0].lower() == "after":
        (name,) = parse_column_path(words[1]) if isinstance(position, str) else (words[1],)
        return Position(name)
    raise InvalidRequest(f"{position!r} is not a place for a column", code="invalid-position", hint="first, or after x")
