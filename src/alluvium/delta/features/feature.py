"""The record of one protocol feature: what it is called, when it applies, what it does to plans and commits."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import pyarrow as pa

from alluvium.delta.terms.actions import Actions
from alluvium.delta.terms.config import TableConfig
from alluvium.delta.terms.live_files import Pick, PickFiles
from alluvium.delta.terms.spec import FILES, DomainMetadata, Metadata, Protocol
from alluvium.plan.scan import ScanPlan
from alluvium.plan.write import WritePlan
from alluvium.storage.open import open_store
from alluvium.storage.store import Store


def never(config: TableConfig) -> bool:
    """Of a feature that metadata make no use of: it is about something else."""
    return False


@dataclass(frozen=True, slots=True)
class ScanContext:
    """What a scan pass may look at beside the plan.

    Attributes:
        config: The table.
        files: The add actions behind the plan's files (`FILES`), before any pass split them.
        store: The table's objects.
        time_zone: In which values without a zone are read.
        open_store: From a URL to its store, for files that lie outside the table.
        metadata_columns: Columns asked for by name that are not of the table's schema.
        version: The table's version, whose live files these are; None: they are of several versions.
    """

    config: TableConfig
    files: pa.Table
    store: Store
    time_zone: str
    open_store: Callable[[str], Store] = open_store
    metadata_columns: tuple[str, ...] = ()
    version: int | None = None


def _from_no_files(pick: Pick) -> pa.Table:
    return pick(FILES.empty_table())


@dataclass(frozen=True, slots=True)
class CommitContext:
    """What a commit lands on: other winners, another context, and the actions are assembled anew.

    Attributes:
        config: The table after the commit.
        before: The table before it; None: the commit creates it.
        version: The version that it makes.
        now_ms: When it is attempted, milliseconds since 1970 UTC.
        previous_ms: The time of the version before: the one that it carries, or that of its file; None: there is none.
        pick_files: What a function picks out of the live files before it (`FILES`, `Snapshot.pick_files`).
        domains: The metadata domains before it.
    """

    config: TableConfig
    before: TableConfig | None = None
    version: int = 0
    now_ms: int = 0
    previous_ms: int | None = None
    pick_files: PickFiles = _from_no_files
    domains: Mapping[str, DomainMetadata] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Feature:
    """A table feature, all its hooks pure. A hook that is None has nothing to do.

    Attributes:
        name: As in the specification's list of valid feature names.
        reader: Whether readers, too, must implement it.
        spec: Heading of the specification that defines it.
        legacy_reader: The reader version that implies it, if any.
        legacy_writer: The writer version that implies it, if any.
        aliases: Other spellings found in tables (drafts, previews).
        readable: Whether Alluvium honours it when reading; if not, a table that uses it is refused.
        writable: Whether Alluvium honours it when writing; if not, writing a table that uses it is refused.
        refusal: Why a table that uses it cannot be read or written, and what to do, where there is more to say.
        is_used: Whether the table's metadata makes use of it (a feature may be listed and lie idle).
        is_requested: Whether schema or properties ask for support of it; None: where they use it.
        requires: Features that a table must support beside it.
        automatic: Whether an existing table gets support as soon as a change of its metadata asks for it; if not, the
            feature must be added by name first.
        on_change: Completes metadata that is about to be committed, given the version before it (None: a new table).
        on_support: The same, where the protocol of the table to be supports the feature.
        on_metadata: Looks at the metadata of a table that supports the feature, before it is read; raises
            UnsupportedFeature or CorruptTable where it asks for what we cannot do.
        on_scan: Edits a scan plan so that what is read obeys the feature.
        on_write: Edits a write plan so that what is written obeys the feature.
        on_commit: Completes the actions about to be committed for the version that they land on; raises InvalidRequest
            where they break the feature.
    """

    name: str
    reader: bool
    spec: str
    legacy_reader: int | None = None
    legacy_writer: int | None = None
    aliases: tuple[str, ...] = ()
    readable: bool = True
    writable: bool = True
    refusal: str | None = None
    is_used: Callable[[TableConfig], bool] = never
    is_requested: Callable[[TableConfig], bool] | None = None
    requires: tuple[str, ...] = ()
    automatic: bool = True
    on_change: Callable[[Metadata, TableConfig | None], Metadata] | None = None
    on_support: Callable[[Metadata, TableConfig | None], Metadata] | None = None
    on_metadata: Callable[[TableConfig], None] | None = None
    on_scan: Callable[[ScanPlan, ScanContext], ScanPlan] | None = None
    on_write: Callable[[WritePlan, TableConfig], WritePlan] | None = None
    on_commit: Callable[[Actions, CommitContext], Actions] | None = None


#: "Writer Version 7": from here on features are listed, not implied.
_LISTED_FROM_WRITER = 7


def is_supported_for_writers(feature: Feature, protocol: Protocol) -> bool:
    """Whether a table's protocol makes writers obey the feature: by its legacy version, or by listing it.

    Specification: "A feature is supported by a table when its name is in the `protocol` action's `readerFeatures`
    and/or `writerFeatures`", and the versions from `legacy_writer` up to 6.
    """
    version = protocol.min_writer_version
    if version < _LISTED_FROM_WRITER:
        return feature.legacy_writer is not None and feature.legacy_writer <= version
    return not {feature.name, *feature.aliases}.isdisjoint(protocol.writer_features or ())
