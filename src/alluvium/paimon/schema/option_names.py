"""Options follow the columns that they name: renamed with them, and forgotten with dropped blobs and vectors."""

from __future__ import annotations

from alluvium.paimon.options import BUCKET_KEY, FIELDS_PREFIX, SEQUENCE_FIELD

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
