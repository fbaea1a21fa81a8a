"""Changes of a table's description: each takes a configuration and gives the next, with what the history says of it.

Refusals are those of the reference implementation. Nothing here touches storage or rows: `add_constraint` relies on
its caller to have checked them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

import msgspec

from alluvium.delta.description.create import ensure_columns
from alluvium.delta.description.upgrade import (
    FEATURE_PREFIX,
    MIN_READER,
    MIN_WRITER,
    configure,
    find_feature,
    split_protocol_request,
)
from alluvium.delta.terms.config import TableConfig
from alluvium.delta.terms.properties import (
    CONSTRAINT_PREFIX,
    TABLE_ATTRIBUTES,
    canonical_property,
    ensure_consistent,
    settable_properties,
)
from alluvium.delta.terms.spec import DomainMetadata, Metadata
from alluvium.errors import InvalidRequest
from alluvium.plan.changes import Operation
from alluvium.schema.spark_json import format_schema
from alluvium.schema.types import JsonValue, Struct


@dataclass(frozen=True, slots=True)
class Change:
    """A change of a table's description.

    Attributes:
        config: After it.
        operation: What the history says of it, but for the engine.
        reads: Whether it depends on the rows of the table, so that concurrent writers of rows conflict with it.
        domains: Metadata domains that it sets.
    """

    config: TableConfig
    operation: Operation
    reads: bool = False
    domains: tuple[DomainMetadata, ...] = ()


def set_properties(config: TableConfig, properties: Mapping[str, str]) -> Change:
    """Sets table properties; those that speak of the protocol upgrade it and are not stored."""
    request, rest = split_protocol_request(properties)
    attributes = {name: rest.pop(name) for name in list(rest) if name in TABLE_ATTRIBUTES}
    constraints = sorted(name for name in rest if name.lower().startswith(CONSTRAINT_PREFIX))
    if constraints:
        raise InvalidRequest(
            f"a constraint is not set as a property: {constraints[0]}",
            code="reserved-property",
            hint="addConstraint(name, condition)",
        )
    settable = settable_properties(rest)
    configuration = {**config.metadata.configuration, **settable}
    ensure_consistent(configuration)
    ensure_columns(config.schema, configuration)
    metadata = msgspec.structs.replace(
        config.metadata,
        configuration=configuration,
        description=attributes.get("comment", config.metadata.description),
    )
    shown = to_json({_shown_name(name): value for name, value in properties.items()})
    return Change(configure(metadata, config, request), Operation("SET TBLPROPERTIES", {"properties": shown}))


def _shown_name(name: str) -> str:
    folded = name.lower()
    if folded.startswith(FEATURE_PREFIX):
        # The reference forgets the case of a feature among properties.
        return folded
    for known in (MIN_READER, MIN_WRITER):
        if folded == known.lower():
            return known
    return canonical_property(name)


def unset_properties(config: TableConfig, names: Iterable[str], if_exists: bool = True) -> Change:
    """Removes table properties.

    Raises:
        InvalidRequest: One is not set (`unknown-property`), and `if_exists` is false.
    """
    configuration = dict(config.metadata.configuration)
    by_folded = {name.lower(): name for name in configuration}
    given = [*names]
    for name in given:
        # Two names of one's own may differ in case alone.
        stored = name if name in configuration else by_folded.get(name.lower())
        if stored is None and not if_exists and name != "comment":
            raise InvalidRequest(f"table property {name!r} is not set", code="unknown-property")
        configuration.pop(stored or name, None)
    ensure_consistent(configuration)
    description = None if "comment" in given else config.metadata.description
    metadata = msgspec.structs.replace(config.metadata, configuration=configuration, description=description)
    parameters: dict[str, JsonValue] = {"properties": to_json(given), "ifExists": if_exists}
    return Change(configure(metadata, config), Operation("UNSET TBLPROPERTIES", parameters))


def upgrade_protocol(config: TableConfig, reader: int, writer: int) -> Change:
    """Supports what the legacy versions imply, too; lower ones than the table's change nothing."""
    return set_properties(config, {MIN_READER: str(reader), MIN_WRITER: str(writer)})


def add_feature(config: TableConfig, name: str) -> Change:
    """Supports a feature, and those that it needs."""
    change = set_properties(config, {FEATURE_PREFIX + name: "supported"})
    shown = to_json({FEATURE_PREFIX + find_feature(name).name: "supported"})
    return replace(change, operation=replace(change.operation, parameters={"properties": shown}))


def add_constraint(config: TableConfig, name: str, condition: str) -> Change:
    """Adds a CHECK constraint. The caller has checked that it holds for the rows that are there.

    Raises:
        InvalidRequest: There is one of that name (`constraint-exists`), in any case.
    """
    key = CONSTRAINT_PREFIX + name.lower()
    existing = constraint_key(config, name)
    if existing is not None:
        raise InvalidRequest(
            f"there is a constraint {name!r} already: {config.metadata.configuration[existing]}",
            code="constraint-exists",
            hint="drop it first, or choose another name",
        )
    if not name or "." in name:
        raise InvalidRequest(f"{name!r} is not the name of a constraint", code="invalid-constraint")
    metadata = _with_configuration(config, {**config.metadata.configuration, key: condition})
    operation = Operation("ADD CONSTRAINT", {"name": name, "expr": condition})
    return Change(configure(metadata, config), operation, reads=True)


def drop_constraint(config: TableConfig, name: str, if_exists: bool = False) -> Change:
    """Drops a CHECK constraint.

    Raises:
        InvalidRequest: There is none of that name (`unknown-constraint`), and `if_exists` is false.
    """
    existing = constraint_key(config, name)
    if existing is None and not if_exists:
        known = [k[len(CONSTRAINT_PREFIX) :] for k in config.metadata.configuration if k.startswith(CONSTRAINT_PREFIX)]
        raise InvalidRequest(
            f"there is no constraint {name!r}",
            code="unknown-constraint",
            hint=f"there are: {', '.join(sorted(known))}" if known else "the table has none",
        )
    configuration = dict(config.metadata.configuration)
    parameters: dict[str, JsonValue] = {"name": name}
    if existing is not None:
        parameters["expr"] = configuration.pop(existing)
    parameters["existed"] = "false" if existing is None else "true"
    metadata = _with_configuration(config, configuration)
    return Change(configure(metadata, config), Operation("DROP CONSTRAINT", parameters))


def constraint_key(config: TableConfig, name: str) -> str | None:
    """The property that holds a constraint, in the case in which it is stored."""
    wanted = (CONSTRAINT_PREFIX + name).lower()
    return next((key for key in config.metadata.configuration if key.lower() == wanted), None)


def _with_configuration(config: TableConfig, configuration: dict[str, str]) -> Metadata:
    return msgspec.structs.replace(config.metadata, configuration=configuration)


def to_json(value: object) -> str:
    return msgspec.json.encode(value).decode()


def with_schema(config: TableConfig, schema: Struct, metadata: Metadata | None = None) -> TableConfig:
    """The configuration with other columns, and the protocol that they need."""
    metadata = metadata or config.metadata
    ensure_columns(schema, metadata.configuration)
    return configure(msgspec.structs.replace(metadata, schema_string=format_schema(schema)), config)
