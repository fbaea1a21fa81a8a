"""Row ids and row commit versions of what a commit adds: the writer's half of rowTracking.

Specification: "Writer Requirements for Row Tracking".
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import replace

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from alluvium.delta.features.feature import CommitContext
from alluvium.delta.statistics.stats import AddStatistics
from alluvium.delta.statistics.stats_text import with_stats_text
from alluvium.delta.terms.actions import Actions, with_tags
from alluvium.delta.terms.canonical_paths import canonical_paths
from alluvium.delta.terms.config import TableConfig
from alluvium.delta.terms.live_files import PickFiles
from alluvium.delta.terms.properties import parse_boolean
from alluvium.delta.terms.spec import FILES, DomainMetadata, Metadata
from alluvium.errors import DECODE_ERRORS, CorruptTable, InvalidRequest
from alluvium.schema.types import Struct

FEATURE_NAME = "rowTracking"
DOMAIN = "delta.rowTracking"
ENABLED = "delta.enableRowTracking"
SUSPENDED = "delta.rowTrackingSuspended"
MATERIALIZED_ROW_ID = "delta.rowTracking.materializedRowIdColumnName"
MATERIALIZED_ROW_COMMIT_VERSION = "delta.rowTracking.materializedRowCommitVersionColumnName"

_PRESERVED = "delta.rowTracking.preserved"
_PREFIXES = {MATERIALIZED_ROW_ID: "_row-id-col-", MATERIALIZED_ROW_COMMIT_VERSION: "_row-commit-version-col-"}
#: The mark of a table that has no row yet.
_NONE = -1


class _Mark(msgspec.Struct, frozen=True, rename="camel"):
    row_id_high_water_mark: int
    #: Not in the protocol; the reference writes it, and whoever compares domains as texts finds it.
    domain_name: str = DOMAIN


_MARKS = msgspec.json.Decoder(_Mark)


def is_enabled(config: TableConfig) -> bool:
    """ "When additionally the table property `delta.enableRowTracking` is set to `true`, then we say that Row Tracking
    is **enabled**."
    """
    return is_supported(config) and is_true(config.metadata.configuration, ENABLED)


def is_supported(config: TableConfig) -> bool:
    """Whether "the `writerFeatures` field of a table's `protocol` action contains `rowTracking`"."""
    return FEATURE_NAME in (config.protocol.writer_features or ())


def is_true(configuration: Mapping[str, str], name: str) -> bool:
    """Whether a boolean property is set."""
    try:
        return parse_boolean(configuration.get(name, "false"))
    except ValueError:
        return False


def high_water_mark(domains: Mapping[str, DomainMetadata]) -> int:
    """The highest row id given so far; -1 where none was.

    Raises:
        CorruptTable: The domain does not say (`invalid-row-tracking`).
    """
    if DOMAIN not in domains:
        return _NONE
    try:
        return _MARKS.decode(domains[DOMAIN].configuration).row_id_high_water_mark
    except DECODE_ERRORS as error:
        raise CorruptTable(f"the domain {DOMAIN} is damaged: {error}", code="invalid-row-tracking") from None


def name_columns(metadata: Metadata, before: TableConfig | None) -> Metadata:
    """Names the columns for materialised values, once row tracking is supported.

    The protocol asks for the names when it is enabled; the reference gives them as soon as it is supported, so that
    files which it rewrites may keep their rows' ids.

    "The assigned column names must be unique. [...] The assigned column names must remain unique in all future versions
    of the table."

    Raises:
        InvalidRequest: Row tracking is suspended ("writers should also verify table property
            `delta.rowTrackingSuspended` is absent or set to false before enabling Row Tracking").
    """
    configuration = metadata.configuration
    if is_true(configuration, ENABLED) and is_true(configuration, SUSPENDED):
        raise InvalidRequest(
            f"{ENABLED} and {SUSPENDED} exclude each other",
            code="contradicting-options",
            hint=f"set {SUSPENDED} to false, or unset it",
        )
    known = {} if before is None else before.metadata.configuration
    names = {
        key: configuration.get(key) or known.get(key) or f"{prefix}{uuid.uuid4()}" for key, prefix in _PREFIXES.items()
    }
    return msgspec.structs.replace(metadata, configuration={**configuration, **names})


def assign(actions: Actions, context: CommitContext) -> Actions:
    """Gives every file that is added its base row id and commit version, and moves the high-water mark.

    Files that live on under the same path keep theirs. Where row tracking is enabled and files of before it have none
    yet, they are committed again, without a change of data: "writers must first commit new `add` actions that set these
    fields to replace the `add` actions that do not have these fields set. This can be done in the commit that sets
    `delta.enableRowTracking` to `true`".

    Raises:
        CorruptTable: The mark is damaged, or a file does not say how many rows it has.
    """
    config = context.config
    # "when Row Tracking is supported but suspended [...], writers should not assign the `baseRowId`"
    if not is_supported(config) or is_true(config.metadata.configuration, SUSPENDED):
        return actions
    # "writers should set `delta.rowTracking.preserved` [...] to `true` if no rows are updated or copied": rows that are
    # rearranged are copied, and whoever does so says by itself whether they kept their ids.
    copies = pc.any(pc.invert(actions.removed.column("dataChange"))).as_py() is True
    said = actions.info.get("tags")
    if not (isinstance(said, dict) and _PRESERVED in said):
        actions = with_tags(actions, {_PRESERVED: "false" if copies else "true"})
    added = pa.concat_tables([actions.added, _without_ids(actions, context)])
    if added.num_rows == 0:
        return actions
    mark = high_water_mark(context.domains)
    earlier = _earlier(added, context.pick_files)
    known = pc.coalesce(_whole(added, "baseRowId"), _whole(earlier, "baseRowId"))
    fresh = known.is_null()
    counts = pc.if_else(fresh, _num_rows(added, fresh), 0)
    ends = pc.cumulative_sum(counts)
    # "Writers must set the `baseRowId` field to a value that is higher than the row id high water mark."
    base = pc.coalesce(known, pc.add(pc.subtract(ends, counts), mark + 1))
    versions = pc.coalesce(
        _whole(added, "defaultRowCommitVersion"),
        _whole(earlier, "defaultRowCommitVersion"),
        pa.scalar(context.version, pa.int64()),
    )
    numbered = _with_columns(added, {"baseRowId": base, "defaultRowCommitVersion": versions})
    given = ends[-1].as_py()
    domains = actions.domains if given == 0 else (*actions.domains, _domain(mark + given))
    return replace(actions, added=numbered, domains=domains)


def preserving(actions: Actions, config: TableConfig) -> Actions:
    """The actions of a commit that copies rows together with their identities, saying so."""
    return with_tags(actions, {_PRESERVED: "true"}) if is_supported(config) else actions


def _domain(mark: int) -> DomainMetadata:
    configuration = msgspec.json.encode(_Mark(mark)).decode()
    return DomainMetadata(domain=DOMAIN, configuration=configuration, removed=False)


def _without_ids(actions: Actions, context: CommitContext) -> pa.Table:
    """Live files that need to be committed again to get their ids."""
    if not is_enabled(context.config):
        return FILES.empty_table()
    missing = with_stats_text(context.pick_files(_unnumbered))
    if missing.num_rows == 0:
        return FILES.empty_table()
    touched = pa.concat_arrays([_whole(actions.added, "path"), _whole(actions.removed, "path")])
    again = pc.is_in(canonical_paths(_whole(missing, "path")), value_set=canonical_paths(touched))
    missing = missing.filter(pc.invert(again))
    return _with_columns(missing, {"dataChange": pa.repeat(pa.scalar(False), missing.num_rows)})


def _unnumbered(files: pa.Table) -> pa.Table:
    numbers = files.column("baseRowId")
    return files.filter(numbers.is_null()) if numbers.null_count else files.slice(0, 0)


def _earlier(added: pa.Table, pick_files: PickFiles) -> pa.Table:
    """For each added file the live file of the same path; nulls where it is new.

    "Writers must set the `baseRowId` field in recommitted and checkpointed `add` actions and `remove` actions to the
    `baseRowId` value (if present) of the last committed `add` action with the same `path`."
    """
    paths = canonical_paths(_whole(added, "path"))
    same = pick_files(lambda files: files.filter(pc.is_in(canonical_paths(_whole(files, "path")), value_set=paths)))
    same = same.select(["path", "baseRowId", "defaultRowCommitVersion"])
    return same.take(pc.index_in(paths, value_set=canonical_paths(_whole(same, "path"))))


def _num_rows(added: pa.Table, asked: pa.Array) -> pa.Array:
    counts = AddStatistics(added, Struct(()), ()).num_rows()
    counts = counts.combine_chunks() if isinstance(counts, pa.ChunkedArray) else counts
    unknown = pc.and_(asked, counts.is_null())
    if pc.any(unknown).as_py():
        path = added.column("path").filter(unknown)[0].as_py()
        raise CorruptTable(
            "a file does not say how many rows it has, so that they cannot be numbered",
            code="no-num-records",
            path=path,
            hint="its statistics lack numRecords: rewrite the file, or disable row tracking",
        )
    return counts


def _whole(table: pa.Table, name: str) -> pa.Array:
    return table.column(name).combine_chunks()


def _with_columns(files: pa.Table, columns: Mapping[str, pa.Array]) -> pa.Table:
    for name, values in columns.items():
        place = files.schema.get_field_index(name)
        files = files.set_column(place, files.schema.field(place), values)
    return files
