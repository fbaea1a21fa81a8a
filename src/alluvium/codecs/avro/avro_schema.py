"""What a writer's Avro schema may look like before records are decoded by it.

A schema stands in the file that it describes, so whoever wrote the file chose it. A decoder follows it blindly: a type
that holds itself recurses until the process dies, and what takes no bytes can be repeated as often as a number says.

Specification: https://avro.apache.org/docs/1.11.1/specification/#schema-declaration.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from alluvium.errors import CorruptTable, UnsupportedFeature

#: Unions, records and lists count: a row within a row is two deeper, one within a list four. Decoders recurse as deep.
MAX_DEPTH = 128
#: Nodes of a schema, named types counted wherever they are used.
MAX_NODES = 100_000
#: Nodes of a record that take no bytes: they cost time and are paid for by nothing.
_MAX_EMPTY_NODES = 1_000

_PRIMITIVE_BYTES = {
    "null": 0, "boolean": 1, "int": 1, "long": 1, "float": 4, "double": 8, "bytes": 1, "string": 1,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class RecordShape:
    """The least that decoding one value costs.

    Attributes:
        min_bytes: That it takes in a file.
        nodes: Of its schema, named types counted wherever they are used.
        empty_nodes: Of them those that take no bytes.
    """

    min_bytes: int
    nodes: int
    empty_nodes: int


def measure_schema(schema: Any) -> RecordShape:
    """What a value of a schema takes.

    Args:
        schema: As JSON has it.

    Raises:
        CorruptTable: It is no schema (`"damaged-file"`).
        UnsupportedFeature: It is recursive, or so deep or wide that no table's is (`"avro-schema"`).
    """
    return _Measuring().measure(schema, 0, "")


class _Measuring:
    """One walk over a schema; a name is known from where it is defined."""

    def __init__(self) -> None:
        #: None while the type is being measured: whoever meets it then is inside of it.
        self._named: dict[str, RecordShape | None] = {}

    def measure(self, node: Any, depth: int, namespace: str) -> RecordShape:
        if depth > MAX_DEPTH:
            raise _unsupported(f"it is nested deeper than {MAX_DEPTH}")
        if isinstance(node, list):
            return _bounded(self._union(node, depth, namespace))
        if isinstance(node, str):
            return self._by_name(node, namespace)
        if not isinstance(node, Mapping):
            raise _damaged(f"{node!r:.80} is no schema")
        kind = node.get("type")
        if kind in ("record", "error", "enum", "fixed"):
            return _bounded(self._defined(node, depth, namespace))
        if kind == "array" or kind == "map":
            return self._repeated(node, depth, namespace)
        return self.measure(kind, depth + 1, namespace)

    def _by_name(self, name: str, namespace: str) -> RecordShape:
        if name in _PRIMITIVE_BYTES:
            size = _PRIMITIVE_BYTES[name]
            return RecordShape(size, 1, int(size == 0))
        for full in (_full_name(name, namespace), name):
            if full in self._named:
                shape = self._named[full]
                if shape is None:
                    raise _unsupported(f"the type {name!r:.80} holds itself")
                return shape
        raise _damaged(f"the type {name!r:.80} is not known")

    def _union(self, branches: list[Any], depth: int, namespace: str) -> RecordShape:
        shapes = [self.measure(branch, depth + 1, namespace) for branch in branches]
        if not shapes:
            raise _damaged("a union has no branch")
        # One byte at least says which branch follows.
        return RecordShape(
            1 + min(s.min_bytes for s in shapes), 1 + sum(s.nodes for s in shapes), max(s.empty_nodes for s in shapes)
        )

    def _defined(self, node: Mapping[str, Any], depth: int, namespace: str) -> RecordShape:
        name = node.get("name")
        if not isinstance(name, str):
            raise _damaged(f"a {node['type']} has no name")
        own = node.get("namespace", namespace)
        full = _full_name(name, own if isinstance(own, str) else namespace)
        self._named[full] = None
        shape = self._members(node, depth, full.rpartition(".")[0])
        self._named[full] = shape
        return shape

    def _members(self, node: Mapping[str, Any], depth: int, namespace: str) -> RecordShape:
        if node["type"] == "enum":
            return RecordShape(1, 1, 0)
        if node["type"] == "fixed":
            size = node.get("size")
            if not isinstance(size, int) or size < 0:
                raise _damaged("a fixed type has no size")
            return RecordShape(size, 1, int(size == 0))
        fields = node.get("fields")
        if not isinstance(fields, list) or not all(isinstance(f, Mapping) and "type" in f for f in fields):
            raise _damaged("a record has no fields")
        shapes = [self.measure(f["type"], depth + 1, namespace) for f in fields]
        min_bytes = sum(s.min_bytes for s in shapes)
        empty = sum(s.empty_nodes for s in shapes) + int(min_bytes == 0)
        return RecordShape(min_bytes, 1 + sum(s.nodes for s in shapes), empty)

    def _repeated(self, node: Mapping[str, Any], depth: int, namespace: str) -> RecordShape:
        item = self.measure(node.get("items" if node["type"] == "array" else "values"), depth + 1, namespace)
        if node["type"] == "array" and item.min_bytes == 0:
            raise _unsupported("the items of an array take no bytes, so their number is bounded by nothing")
        # One byte: the block of no items that ends it.
        return _bounded(RecordShape(1, 1 + item.nodes, 0))


def _full_name(name: str, namespace: str) -> str:
    return f"{namespace}.{name}" if namespace and "." not in name else name


def _bounded(shape: RecordShape) -> RecordShape:
    if shape.nodes > MAX_NODES or shape.empty_nodes > _MAX_EMPTY_NODES:
        raise _unsupported(f"it has more than {MAX_NODES} nodes, or {_MAX_EMPTY_NODES} that take no bytes")
    return shape


def _unsupported(reason: str) -> UnsupportedFeature:
    return UnsupportedFeature(f"the schema of an Avro file: {reason}", code="avro-schema", features=("avro-schema",))


def _damaged(reason: str) -> CorruptTable:
    return CorruptTable(f"the schema of an Avro file is none: {reason}", code="damaged-file")
