"""What a commit may not do to a table that is streamed: remove rows, unless that is allowed; change the columns."""

from __future__ import annotations

from alluvium.delta.changes.schema import difference
from alluvium.delta.features.registry import ensure_readable, ensure_readable_protocol, is_supported
from alluvium.delta.features.rows import change_data_feed
from alluvium.delta.features.types import type_widening
from alluvium.delta.log.read_changes import CommitChanges
from alluvium.delta.streams.options import StreamOptions
from alluvium.delta.terms.config import TableConfig, parse_config
from alluvium.delta.terms.spec import Metadata, Protocol
from alluvium.errors import InvalidRequest
from alluvium.schema.types import Struct
from alluvium.schema.walk import as_nullable

#: The setting of sessions whose streams go on where a table is partitioned anew.
NEW_PARTITIONS = "spark.databricks.delta.streaming.unsafeReadOnPartitionColumnChanges.enabled"


def is_left_out(commit: CommitChanges, options: StreamOptions) -> bool:
    """Whether nothing of a commit is read."""
    if options.skips(commit.version):
        return True
    return options.skip_changes and not options.changes and commit.removed.num_rows > 0


def ensure_allowed(commit: CommitChanges, options: StreamOptions) -> None:
    """Refuses a commit that removes files where the options do not allow it; a change feed tells of such.

    Raises:
        InvalidRequest: `stream-source-changed`, `stream-source-deleted`: names version, operation and options.
    """
    if options.changes or options.skip_changes or options.ignore_changes or not commit.removed.num_rows:
        return
    removed = commit.removed["path"][0].as_py()
    operation = (commit.info.operation if commit.info is not None else None) or "a commit"
    if commit.added.num_rows:
        raise InvalidRequest(
            f"version {commit.version} ({operation}) changed rows of the table: it put other files in the place of "
            f"{removed!r} and {commit.removed.num_rows - 1} more",
            code="stream-source-changed",
            version=commit.version,
            path=removed,
            hint=f'skipChangeCommits="true" leaves such commits out, skipVersions="{commit.version}" this one; '
            'ignoreChanges="true" reads their files whole; readChangeFeed="true" reads what changed',
        )
    if not options.ignore_deletes:
        raise InvalidRequest(
            f"version {commit.version} ({operation}) removed rows of the table, for example the file {removed!r}",
            code="stream-source-deleted",
            version=commit.version,
            path=removed,
            hint='ignoreDeletes="true" lets such commits pass, skipChangeCommits="true" leaves out those that change '
            f'rows, too, skipVersions="{commit.version}" this one; readChangeFeed="true" reads what was deleted',
        )


def ensure_fits(
    protocol: Protocol, metadata: Metadata, version: int, shown: TableConfig, read_version: int, options: StreamOptions
) -> None:
    """Refuses a version whose rows the stream's columns cannot show.

    Args:
        protocol: Of the version.
        metadata: Of the version.
        version: The version.
        shown: The table as it was when the stream was made, whose columns it has.
        read_version: The version of that.
        options: The stream's.

    Raises:
        InvalidRequest: `different-table`, `stream-schema-changed`, `stream-columns-remapped`,
            `change-feed-disabled`.
        UnsupportedFeature: The version needs a reader that we are not.
    """
    if metadata is shown.metadata and protocol is shown.protocol:
        return
    ensure_readable_protocol(protocol)
    config = parse_config(protocol, metadata)
    ensure_readable(config)
    ensure_recorded(config, version, options)
    widens = is_supported(type_widening.FEATURE, shown.protocol)
    # Spark trusts no file to keep a promise of NOT NULL, so that a stream's columns may always be null.
    columns = as_nullable(shown.schema)
    assert isinstance(columns, Struct)
    found = difference(config.schema, config.physical_schema, columns, shown.physical_schema, widens)
    # Names for files that are switched on later are those that the columns have then.
    is_mapped = (config.mapping_mode, shown.mapping_mode) != ("none", "none")
    remapped = _first_remapped(config, shown, version < read_version) if is_mapped else None
    if remapped is not None:
        # As in the reference, also a column that is gone, though nulls would show it.
        raise _remapped(remapped if found is None else found[0], version)
    if found is not None:
        raise _changed(found, version, version > read_version, options)
    if config.partition_columns != shown.partition_columns and not options.allows_new_partitions:
        raise _partitioned_anew(config, version, shown, options)


def ensure_recorded(config: TableConfig, version: int, options: StreamOptions) -> None:
    """Refuses a version at which changes are not recorded, where they are asked for (`change-feed-disabled`)."""
    if options.changes and not change_data_feed.is_used(config):
        raise InvalidRequest(
            f"changes were not recorded at version {version}: delta.enableChangeDataFeed is not true",
            code="change-feed-disabled",
            version=version,
            hint="set it before the changes that you want to see, and begin the stream after that",
        )


def _first_remapped(config: TableConfig, shown: TableConfig, is_older: bool) -> str | None:
    """The first column that was renamed or dropped between two versions, not only added or of another type."""
    before, after = (config, shown) if is_older else (shown, config)
    later = _by_physical_path(after)
    gone = (logical for physical, logical in _by_physical_path(before).items() if later.get(physical) != logical)
    return next((".".join(logical) for logical in gone), None)


def _by_physical_path(config: TableConfig) -> dict[tuple[str, ...], tuple[str, ...]]:
    top: dict[tuple[str, ...], tuple[str, ...]]
    top = {(physical,): (logical,) for logical, physical in config.physical_names.items()}
    top.update({physical: logical for logical, physical in config.physical_paths.items()})
    return top


def _remapped(column: str, version: int) -> InvalidRequest:
    return InvalidRequest(
        f"a column of the table was renamed or dropped, {column!r}: the rows of version {version} cannot be shown in "
        "the columns that the stream has",
        code="stream-columns-remapped",
        version=version,
        column=column,
        hint="begin with a new checkpoint, or at a later startingVersion; with schemaTrackingLocation a stream follows "
        "such changes",
    )


def _partitioned_anew(config: TableConfig, version: int, shown: TableConfig, options: StreamOptions) -> InvalidRequest:
    """As in the reference: for good, where no log of the columns was kept. Rows are read right all the same."""
    other, own = (", ".join(c.partition_columns) or "nothing" for c in (config, shown))
    return InvalidRequest(
        f"the table was partitioned anew: at version {version} by {other}, when the stream was made by {own}"
        + _named_start(options),
        code="stream-schema-changed",
        version=version,
        hint="begin with a new checkpoint, and with schemaTrackingLocation, by which a stream goes on with other "
        f"partitions; or set {NEW_PARTITIONS} to true",
    )


def _changed(found: tuple[str, str], version: int, is_newer: bool, options: StreamOptions) -> InvalidRequest:
    column, text = found
    again = "read the table anew and start the query again with the same checkpoint: it goes on with the new columns"
    late = " at a later startingVersion" if options.names_start else ""
    return InvalidRequest(
        f"version {version} changed the table's columns: "
        + (f"its column {column!r} is not one of the stream's, or of another type" if is_newer else text)
        + _named_start(options),
        code="stream-schema-changed",
        version=version,
        column=column,
        hint=again if is_newer else f"begin with a new checkpoint{late}",
    )


def _named_start(options: StreamOptions) -> str:
    """What the reference has a condition of its own for."""
    return "; the stream was told where to start" if options.names_start else ""
