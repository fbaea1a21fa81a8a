"""`TableSchema`: one `schema-N` file as a value; parsed from any version, written as Java writes it.

Specification: "Schema", "Compatibility".
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import cast

import msgspec

from alluvium.errors import DECODE_ERRORS, AlluviumError, CorruptTable, InvalidRequest, UnsupportedFeature
from alluvium.paimon.schema.changes import SchemaChange
from alluvium.paimon.schema.checks import ensure_valid
from alluvium.paimon.schema.evolve import Draft, evolve
from alluvium.paimon.schema.keys import normalize_keys
from alluvium.paimon.schema.type_json import format_field, parse_field
from alluvium.paimon.schema.types import DataField, NeutralValue, field_ids, highest_field_id
from alluvium.paimon.terms.options import BUCKET, BUCKET_KEY
from alluvium.paimon.terms.spec import Millis
from alluvium.schema.types import JsonValue

#: The version that is written.
CURRENT_VERSION = 3
#: A file without a version is as old as this.
_FIRST_VERSION = 1
#: Behind `fields.<column>`: how the values of a map stand in files.
_MAP_LAYOUT = ".map.storage-layout"


class SchemaFile(msgspec.Struct, frozen=True, rename="camel"):
    """The wire form; what only newer files have has a default, unknown keys are ignored."""

    id: int
    # Types nest: what a field says is parsed by `type_json`.
    fields: list[object]
    version: int | None = None
    highest_field_id: int | None = None
    partition_keys: list[str] | None = None
    primary_keys: list[str] | None = None
    options: dict[str, str | int | float | bool] | None = None
    comment: str | None = None
    time_millis: Millis | None = None


@dataclass(frozen=True, slots=True)
class TableSchema:
    """One version of a table's schema.

    Attributes:
        id: The N of `schema-N`.
        fields: Columns in order.
        highest_field_id: The highest id ever given to a field; new ones are numbered from here.
        partition_keys: Columns that name a row's directory.
        primary_keys: Columns that tell rows apart; () for an append table.
        options: The table's options, after the compatibility rules.
        comment: The table's comment.
        time_millis: When the version was made, milliseconds since 1970 UTC.
        version: The version of the file's form, 1 to 3.
        bucket_keys: Columns by whose hash rows go to buckets: `bucket-key`, or else the trimmed primary key.

    Raises:
        InvalidRequest: `"invalid-key"`, `"invalid-table-option"`: keys or the bucket do not hold together.
    """

    id: int
    fields: tuple[DataField, ...]
    highest_field_id: int
    partition_keys: tuple[str, ...] = ()
    primary_keys: tuple[str, ...] = ()
    options: Mapping[str, str] = field(default_factory=dict, hash=False)
    comment: str | None = None
    time_millis: int = 0
    version: int = CURRENT_VERSION
    bucket_keys: tuple[str, ...] = field(init=False)

    def __post_init__(self) -> None:
        if self.primary_keys and not self.trimmed_primary_keys:
            raise InvalidRequest(
                f"the primary key ({', '.join(self.primary_keys)}) has no column beside the partition keys: "
                "a partition would hold a single row",
                code="invalid-key",
                column=self.primary_keys[0],
                hint="add a column to the primary key, or partition by fewer",
            )
        BUCKET.get(self.options)
        object.__setattr__(self, "bucket_keys", _bucket_keys(self) or self.trimmed_primary_keys)

    @property
    def trimmed_primary_keys(self) -> tuple[str, ...]:
        """The primary key without the partition keys: what tells the rows of a partition apart."""
        return tuple(name for name in self.primary_keys if name not in self.partition_keys)

    @property
    def crosses_partitions(self) -> bool:
        """Whether a key's row may move from partition to partition: the primary key lacks a partition key."""
        return bool(self.primary_keys) and not set(self.primary_keys).issuperset(self.partition_keys)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the columns in order."""
        return tuple(f.name for f in self.fields)

    def find(self, name: str) -> DataField | None:
        """The column of that name."""
        return next((f for f in self.fields if f.name == name), None)

    @property
    def by_id(self) -> Mapping[int, DataField]:
        """Columns by id."""
        return {f.id: f for f in self.fields}

    @classmethod
    def parse(cls, data: bytes, path: str | None = None) -> TableSchema:
        """Parses a schema file of any version.

        Args:
            data: The file's bytes.
            path: Where it lies, for errors.

        Raises:
            CorruptTable: `"invalid-schema"`: it is no schema; `.column` names the field.
            UnsupportedFeature: `"unsupported-schema-version"`: it is newer than version 3.
        """
        try:
            return _from_file(_decode(data))
        except (InvalidRequest, CorruptTable) as error:
            raise CorruptTable(
                f"the schema cannot be parsed: {error.message}",
                code="invalid-schema",
                path=path,
                column=error.column,
                hint="the file is damaged, or was not written by Paimon; tables need every schema that data refers to",
            ) from None
        except AlluviumError as error:
            error.path = path
            raise

    def format(self) -> bytes:
        """The file's bytes as Java writes them, layout included."""
        document: dict[str, JsonValue] = {
            "version": self.version,
            "id": self.id,
            "fields": [format_field(f) for f in self.fields],
            "highestFieldId": self.highest_field_id,
            "partitionKeys": list(self.partition_keys),
            "primaryKeys": list(self.primary_keys),
            "options": dict(self.options),
        }
        if self.comment is not None:
            document["comment"] = self.comment
        document["timeMillis"] = self.time_millis
        return _pretty(document, "").encode()

    def apply(self, changes: Sequence[SchemaChange], has_snapshots: bool = False) -> TableSchema:
        """The next version: this schema with the changes applied in order, all or none.

        Args:
            changes: Made by the functions of `SchemaChange`, or parsed by it.
            has_snapshots: Whether the table holds data, which forbids some changes of options.

        Raises:
            InvalidRequest: A change that the format forbids; `.code` says which rule, `.column` where.
        """
        # A file may say less than it holds; ids are never used twice.
        highest = max(self.highest_field_id, highest_field_id(self.fields))
        draft = Draft(
            list(self.fields), highest, self.partition_keys, self.primary_keys, dict(self.options), self.comment
        )
        evolve(draft, changes, has_snapshots)
        return _next(self, draft)

    @classmethod
    def create(
        cls,
        fields: Sequence[DataField],
        partition_keys: Sequence[str] = (),
        primary_keys: Sequence[str] = (),
        options: Mapping[str, str] | None = None,
        comment: str | None = None,
    ) -> TableSchema:
        """`schema-0` of a new table.

        Args:
            fields: Columns with their ids (`number_fields` gives them some).
            partition_keys: Names of columns, or the option `partition`.
            primary_keys: Names of columns, which become NOT NULL; or the option `primary-key`.
            options: Options of the table.
            comment: Comment of the table.

        Raises:
            InvalidRequest: A rule of tables is broken; `.code` says which, `.column` where.
        """
        keys = normalize_keys(fields, tuple(partition_keys), tuple(primary_keys), dict(options or {}))
        created = cls(
            0,
            keys.fields,
            highest_field_id(keys.fields),
            keys.partition_keys,
            keys.primary_keys,
            keys.options,
            comment,
            _now_ms(),
        )
        _ensure_plain_maps(created.options)
        ensure_valid(created)
        return created

    def as_dict(self) -> dict[str, NeutralValue]:
        """All of the schema as plain values, types taken apart, derived keys included."""
        return {
            "version": self.version,
            "id": self.id,
            "fields": [f.as_dict() for f in self.fields],
            "highestFieldId": self.highest_field_id,
            "partitionKeys": list(self.partition_keys),
            "primaryKeys": list(self.primary_keys),
            "trimmedPrimaryKeys": list(self.trimmed_primary_keys),
            "bucketKeys": list(self.bucket_keys),
            "options": dict(self.options),
            "comment": self.comment,
            "timeMillis": self.time_millis,
        }


def next_version(schema: TableSchema, fields: Sequence[DataField], highest: int) -> TableSchema:
    """The next version with other columns.

    Args:
        schema: The newest.
        fields: All columns, with their ids.
        highest: The greatest id that was ever given.

    Raises:
        InvalidRequest: A rule of tables is broken.
    """
    keys = (schema.partition_keys, schema.primary_keys)
    return _next(schema, Draft(list(fields), highest, *keys, dict(schema.options), schema.comment))


def _next(before: TableSchema, draft: Draft) -> TableSchema:
    keys = normalize_keys(draft.fields, draft.partition_keys, draft.primary_keys, draft.options)
    evolved = TableSchema(
        before.id + 1,
        keys.fields,
        draft.highest_field_id,
        keys.partition_keys,
        keys.primary_keys,
        keys.options,
        draft.comment,
        _now_ms(),
    )
    _ensure_plain_maps(evolved.options)
    ensure_valid(evolved, before)
    return evolved


def ensure_consistent(schema: TableSchema, path: str) -> None:
    """Refuses a schema file that parses, but does not say which column is which.

    Raises:
        CorruptTable: `"invalid-schema"`: two columns share a name or an id, or a key names no column.
    """
    names = list(schema.names)
    for name in names:
        if names.count(name) > 1:
            raise CorruptTable(f"two columns are named {name!r}", code="invalid-schema", path=path, column=name)
    ids = list(field_ids(schema.fields))
    if len(set(ids)) < len(ids):
        twice = next(i for i in ids if ids.count(i) > 1)
        raise CorruptTable(f"two fields have the id {twice}", code="invalid-schema", path=path)
    for name in (*schema.partition_keys, *schema.primary_keys):
        if name not in names:
            raise CorruptTable(f"the key column {name!r} is missing", code="invalid-schema", path=path, column=name)


def _now_ms() -> int:
    return int(time.time() * 1000)


def _bucket_keys(schema: TableSchema) -> tuple[str, ...]:
    text = schema.options.get(BUCKET_KEY, "")
    names = tuple(text.split(",")) if text.strip() else ()
    for name in names:
        problem = None
        if name not in schema.names:
            problem = "is no column"
        elif name in schema.partition_keys:
            problem = "is a partition key"
        elif schema.primary_keys and name not in schema.primary_keys:
            problem = "is not part of the primary key"
        if problem:
            raise InvalidRequest(
                f"the bucket key {name!r} {problem}", code="invalid-key", column=name, hint=f"set {BUCKET_KEY}"
            )
    return names


def _decode(data: bytes) -> SchemaFile:
    try:
        return msgspec.json.decode(data, type=SchemaFile)
    except DECODE_ERRORS as error:
        raise CorruptTable(str(error)) from None


def _ensure_plain_maps(options: Mapping[str, str]) -> None:
    """Paimon 2 may keep the values of a map's frequent keys in columns of their own: its files hold no map then.

    Raises:
        UnsupportedFeature: It does (`"unsupported-type"`).
    """
    for key, value in options.items():
        if key.startswith("fields.") and key.endswith(_MAP_LAYOUT) and value.strip().lower() != "default":
            raise UnsupportedFeature(
                f"maps that are stored as {value!r}",
                code="unsupported-type",
                column=key.removeprefix("fields.").removesuffix(_MAP_LAYOUT),
                features=(f"{key} = {value}",),
            )


def _from_file(file: SchemaFile) -> TableSchema:
    version = _FIRST_VERSION if file.version is None else file.version
    if version > CURRENT_VERSION:
        raise UnsupportedFeature(
            f"the schema file has version {version}, and Alluvium knows those up to {CURRENT_VERSION}",
            code="unsupported-schema-version",
            features=(f"schema version {version}",),
            hint="upgrade alluvium",
        )
    if version < _FIRST_VERSION or file.id < 0:
        raise CorruptTable("version and id must not be negative")
    options = {key: _option_text(value) for key, value in (file.options or {}).items()}
    _ensure_plain_maps(options)
    # "Version 1: should put `bucket -> 1` to `options` if there is no `bucket` key."
    if version <= 1:
        options.setdefault("bucket", "1")
    # "Versions 1 & 2: should put `file.format -> orc` to `options` if there is no `file.format` key."
    if version <= 2:
        options.setdefault("file.format", "orc")
    fields = tuple(parse_field(cast("JsonValue", node), place=f"the field {i}") for i, node in enumerate(file.fields))
    highest = highest_field_id(fields) if file.highest_field_id is None else file.highest_field_id
    return TableSchema(
        file.id,
        fields,
        highest,
        tuple(file.partition_keys or ()),
        tuple(file.primary_keys or ()),
        options,
        file.comment,
        file.time_millis or 0,
        version,
    )


def _option_text(value: str | int | float | bool) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def _pretty(node: JsonValue, indent: str) -> str:
    """JSON in the layout of Jackson's pretty printer, so that a file says the same byte by byte."""
    inner = indent + "  "
    if isinstance(node, dict) and node:
        members = [f"{inner}{_pretty(key, '')} : {_pretty(value, inner)}" for key, value in node.items()]
        return "{\n" + ",\n".join(members) + f"\n{indent}}}"
    if isinstance(node, list) and node:
        return "[ " + ", ".join(_pretty(item, indent) for item in node) + " ]"
    if isinstance(node, (dict, list)):
        return "{ }" if isinstance(node, dict) else "[ ]"
    return json.dumps(node, ensure_ascii=False)
