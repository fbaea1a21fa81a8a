"""What must not be null inside of a value, as Spark SQL over it."""

from __future__ import annotations

from alluvium.schema.types import Array, DataType, Map, Struct


def quote(path: tuple[str, ...]) -> str:
    """A column path as SQL."""
    return ".".join("`" + name.replace("`", "``") + "`" for name in path)


def required_inside(data_type: DataType, value: str, depth: int = 0) -> str | None:
    """The condition that what must not be null inside of an array, map or struct is not; None where nothing must.

    True where the value itself is null. `contains_null` is no promise: the reference does not enforce it, and writes
    nulls where it is false.
    """
    element = f"e{depth}"
    if isinstance(data_type, Array):
        inner = required_inside(data_type.element, element, depth + 1)
        return None if inner is None else f"({value} is null or forall({value}, {element} -> {inner}))"
    if isinstance(data_type, Map):
        parts = (
            f"forall({function}({value}), {element} -> {inner})"
            for function, of in (("map_keys", data_type.key), ("map_values", data_type.value))
            if (inner := required_inside(of, element, depth + 1)) is not None
        )
        joined = " and ".join(parts)
        return f"({value} is null or ({joined}))" if joined else None
    if isinstance(data_type, Struct):
        conditions = []
        for f in data_type.fields:
            member = f"{value}.{quote((f.name,))}"
            if not f.nullable:
                conditions.append(f"{member} is not null")
            if (inner := required_inside(f.type, member, depth)) is not None:
                conditions.append(inner)
        return f"({value} is null or ({' and '.join(conditions)}))" if conditions else None
    return None
