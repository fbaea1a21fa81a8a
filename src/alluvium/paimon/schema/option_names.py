"""Options follow the columns that they name: renamed with them, and forgotten with dropped blobs and vectors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from alluvium.paimon.schema.types import DataField
from alluvium.paimon.terms.options import (
    BUCKET_KEY,
    FIELDS_PREFIX,
    RECORD_LEVEL_TIME_FIELD,
    REMOVE_RECORD_ON_SEQUENCE_GROUP,
    ROWKIND_FIELD,
    SEQUENCE_FIELD,
)

#: Options whose value is a list of columns.
_LISTS = (BUCKET_KEY, SEQUENCE_FIELD.key)
#: `fields.<column>.<...>`, whose value names no column.
_OF_ONE_COLUMN = ("aggregate-function", "ignore-retract", "distinct", "list-agg-delimiter")
#: `fields.<columns>.<...>`, whose value is a list of columns, too.
_OF_COLUMNS = ("sequence-group", "nested-key")
_OF_DROPPED = {
    "BLOB": ("blob-field", "blob-descriptor-field", "blob.stored-descriptor-fields", "blob-view-field"),
    "VECTOR": ("vector-field",),
}


#: Further options that name columns, and which no rename may touch.
_FIXED = (ROWKIND_FIELD.key, RECORD_LEVEL_TIME_FIELD.key, REMOVE_RECORD_ON_SEQUENCE_GROUP.key)


def travelled_options(
    fields: Sequence[DataField], own: Mapping[str, str], fields_today: Sequence[DataField], today: Mapping[str, str]
) -> dict[str, str]:
    """The options by which a table is read with an older schema: those of today.

    Specification: `AbstractFileStoreTable.tryTimeTravel` copies the table's options into the snapshot's schema. Options
    that name columns stay the older schema's where one of its columns has another name today, or is gone.

    Args:
        fields: Columns of the older schema.
        own: Its options.
        fields_today: Columns of the newest schema.
        today: Its options.
    """
    names_today = {f.id: f.name for f in fields_today}
    if all(names_today.get(f.id) == f.name for f in fields):
        return dict(today)
    options = {key: value for key, value in today.items() if not _names_columns(key)}
    return options | {key: value for key, value in own.items() if _names_columns(key)}


def _names_columns(key: str) -> bool:
    dropped = {name for names in _OF_DROPPED.values() for name in names}
    return key.startswith((f"{FIELDS_PREFIX}.", "field.")) or key in {*_LISTS, *_FIXED, *dropped}


def rename_in_options(options: dict[str, str], old: str, new: str) -> None:
    """Lets every option that names the column say the new name."""
    for key in _LISTS:
        if options.get(key, "").strip():
            options[key] = _renamed(options[key], old, new)
    for suffix in _OF_ONE_COLUMN:
        key = f"{FIELDS_PREFIX}.{old}.{suffix}"
        if key in options:
            options[f"{FIELDS_PREFIX}.{new}.{suffix}"] = options.pop(key)
    for key in list(options):
        ending = next((s for s in _OF_COLUMNS if key.endswith(f".{s}")), None)
        if ending is None or not key.startswith(f"{FIELDS_PREFIX}."):
            continue
        columns = key[len(FIELDS_PREFIX) + 1 : -len(ending) - 1]
        value = options.pop(key)
        options[f"{FIELDS_PREFIX}.{_renamed(columns, old, new)}.{ending}"] = _renamed(value, old, new)


def forget_in_options(options: dict[str, str], name: str, root: str) -> None:
    """Takes a dropped BLOB or VECTOR column out of the lists that say how it is stored."""
    for key in _OF_DROPPED.get(root, ()):
        if key in options:
            kept = [part.strip() for part in options[key].split(",") if part.strip() not in ("", name)]
            if kept:
                options[key] = ",".join(kept)
            else:
                del options[key]
    if root == "VECTOR":
        options.pop(f"field.{name}.vector-dim", None)


def _renamed(names: str, old: str, new: str) -> str:
    return ",".join(new if name == old else name for name in names.split(","))
