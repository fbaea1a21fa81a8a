"""Fields of manifests that are newer than we are: carried on as they came when a manifest is written anew.

A manifest of a later Paimon says more than `spec.ENTRIES` has columns for. What is left out of a rewritten entry is
lost to its owner, and an entry that deletes a file must be as the one that added it. So the values of unknown fields
travel in two more columns: `others`, a record of Avro, and `others_type`, its schema, which says of each field where in
the entry it belongs.
"""

from __future__ import annotations

import copy
import itertools
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa

from alluvium.codecs.avro.avro_container import decode_record, encode_record
from alluvium.errors import UnsupportedFeature

Path = tuple[str, ...]
_Node = dict[str, Any]
#: What every record begins with; we write our own.
_VERSION: Path = ("_VERSION",)
#: Types that have names, by which later ones may call them.
_NAMED = ("record", "error", "enum", "fixed")


def others_type(schema: Any, known: Sequence[Path]) -> str | None:
    """The schema of what the records of a manifest say beyond the known fields; None where that is nothing.

    Args:
        schema: Of the records, with its logical types.
        known: Paths of the fields that have columns.
    """
    named = dict(_definitions(schema))
    found = [
        {"name": f"f{number}", "path": list(path), "type": _alone(kind, named, "_".join(path), itertools.count())}
        for number, (path, kind) in enumerate(_unknown(_record_of(schema), (), set(known) | {_VERSION}))
    ]
    return json.dumps({"type": "record", "name": "others", "fields": found}) if found else None


def other_paths(schema: Any, known: Sequence[Path]) -> list[Path]:
    """Where those fields stand; of a schema that has no more than their names and what they hold."""
    return [path for path, _ in _unknown(_record_of(schema), (), set(known) | {_VERSION})]


def _unknown(record: _Node, prefix: Path, known: set[Path]) -> list[tuple[Path, Any]]:
    found: list[tuple[Path, Any]] = []
    for field in record["fields"]:
        path = (*prefix, field["name"])
        if path in known:
            continue
        if any(one[: len(path)] == path for one in known):
            found += _unknown(_record_of(field["type"]), path, known)
        else:
            found.append((path, field["type"]))
    return found


def _definitions(node: Any) -> Iterator[tuple[str, _Node]]:
    """Types that have names, under what others call them by."""
    if isinstance(node, list):
        for branch in node:
            yield from _definitions(branch)
    elif isinstance(node, dict):
        if node.get("type") in _NAMED:
            yield node["name"].rpartition(".")[2], node
        for member in node.get("fields", ()):
            yield from _definitions(member["type"])
        for key in ("type", "items", "values"):
            yield from _definitions(node.get(key))


def _alone(kind: Any, named: Mapping[str, _Node], name: str, numbers: Iterator[int]) -> Any:
    """A type that can stand anywhere: what it calls by a name is written out, and all names are made of its place."""
    if isinstance(kind, list):
        return [_alone(branch, named, name, numbers) for branch in kind]
    if isinstance(kind, str):
        called = named.get(kind.rpartition(".")[2])
        return kind if called is None else _alone(called, named, name, numbers)
    made = {key: value for key, value in kind.items() if key not in ("namespace", "aliases")}
    if kind["type"] in _NAMED:
        made["name"] = f"others_{name}_{next(numbers)}"
        if "fields" in kind:
            made["fields"] = [{**f, "type": _alone(f["type"], named, name, numbers)} for f in kind["fields"]]
        return made
    for key in ("items", "values"):
        if key in kind:
            made[key] = _alone(kind[key], named, name, numbers)
    if kind["type"] not in ("array", "map"):
        made["type"] = _alone(kind["type"], named, name, numbers)
    return made


def ensure_members_known(schema: Any, known: Mapping[Path, pa.DataType]) -> None:
    """Of records within lists that have a column as a whole, nothing unknown is carried on.

    Args:
        schema: As of `others_type`; lists have `items`.
        known: The types of the columns by their paths.

    Raises:
        UnsupportedFeature: They say more (`"unknown-manifest-field"`).
    """
    for path, kind in known.items():
        if not pa.types.is_list(kind) or not pa.types.is_struct(kind.value_type):
            continue
        members = {f.name for f in kind.value_type}
        node: Any = schema
        for name in path:
            node = next((f["type"] for f in _record_of(node)["fields"] if f["name"] == name), None)
        others = [f["name"] for f in _record_of(_items(node))["fields"] if f["name"] not in members]
        if others:
            raise UnsupportedFeature(
                f"a manifest has fields in {'.'.join(path)} that are not known here, so it cannot be written anew",
                code="unknown-manifest-field",
                features=others,
                hint="compact the table with the engine that wrote them",
            )


def _items(kind: Any) -> Any:
    """What a list has, or the one in a union with null; None: it is none."""
    if isinstance(kind, list):
        return next((found for part in kind if (found := _items(part)) is not None), None)
    return kind.get("items") if isinstance(kind, dict) else None


def _record_of(kind: Any) -> _Node:
    """A record, or the one in a union with null."""
    if isinstance(kind, list):
        return next((_record_of(part) for part in kind if isinstance(part, dict)), {"fields": []})
    return kind if isinstance(kind, dict) and "fields" in kind else {"fields": []}


def pack(records: Sequence[Any], kind: str | None) -> tuple[pa.Array, pa.Array]:
    """The two columns of some records.

    Args:
        records: As `read_avro` gives them.
        kind: Their `others_type`.
    """
    count = len(records)
    if kind is None:
        return pa.nulls(count, pa.binary()), pa.nulls(count, pa.string())
    fields = [(field["name"], tuple(field["path"])) for field in json.loads(kind)["fields"]]
    values = [encode_record(kind, {name: _at(record, path) for name, path in fields}) for record in records]
    return pa.array(values, pa.binary()), pa.repeat(pa.scalar(kind, pa.string()), count)


def _at(record: Any, path: Path) -> Any:
    for name in path:
        record = None if record is None else record.get(name)
    return record


def extended(schema: Mapping[str, Any], kinds: Sequence[str]) -> Mapping[str, Any]:
    """A schema of records with the unknown fields of all of them; each may be null where not every record has it.

    Raises:
        UnsupportedFeature: Two writers mean different things by one field (`"unknown-manifest-field"`).
    """
    if not kinds:
        return schema
    found: dict[Path, Any] = {}
    seen: dict[Path, int] = {}
    for kind in sorted(set(kinds)):
        for field in json.loads(kind)["fields"]:
            path = tuple(field["path"])
            # A merge makes a field able to be null; it is the same field.
            if _not_null(found.setdefault(path, field["type"])) != _not_null(field["type"]):
                raise UnsupportedFeature(
                    f"manifests have the field {'.'.join(path)} in two types",
                    code="unknown-manifest-field",
                    features=(path[-1],),
                    hint="compact the table with the engine that wrote them",
                )
            seen[path] = seen.get(path, 0) + 1
    made = copy.deepcopy(dict(schema))
    for path, kind in found.items():
        parent: _Node = made
        for name in path[:-1]:
            parent = _record_of(next(f["type"] for f in parent["fields"] if f["name"] == name))
        parent["fields"].append(_field(path[-1], kind))
    return made


def _branches(kind: Any) -> list[Any]:
    return kind if isinstance(kind, list) else [kind]


def _not_null(kind: Any) -> list[Any]:
    return [branch for branch in _branches(kind) if branch != "null"]


def _field(name: str, kind: Any) -> _Node:
    """A field that old entries lack, so that it must be able to be null."""
    branches = _branches(kind)
    if "null" not in branches:
        branches = ["null", *branches]
    return {"name": name, "type": branches, **({"default": None} if branches[0] == "null" else {})}


def unpack_into(record: _Node, data: bytes | None, kind: str | None) -> None:
    """Puts the unknown fields where they belong."""
    if data is None or kind is None:
        return
    values = decode_record(kind, data)
    for field in json.loads(kind)["fields"]:
        *front, name = field["path"]
        parent = record
        for step in front:
            parent = parent[step]
        parent[name] = values[field["name"]]
