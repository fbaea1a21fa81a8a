"""Per-file statistics: bounds and null counts out of `add.stats`, and the text that goes there.

Specification: Delta protocol, "Per-file Statistics". The text that is written is that of delta-spark 4.4.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from alluvium.codecs.columns import (
    ZERO,
    boolean_column,
    repeated,
    scalar_of,
)
from alluvium.codecs.footers.parquet_footer import ColumnStats, FileFooter, FooterColumn
from alluvium.codecs.temporal_text import format_date, format_instant
from alluvium.delta.statistics.stats_json import DecodedStats, Path, StatsDecoder, leading_num_records
from alluvium.delta.statistics.stats_values import (
    EXACT_DIGITS,
    bound_column,
    bound_type,
    count_column,
    widened_decimals,
)
from alluvium.delta.terms.partition_values import parse_partition_values, partition_column
from alluvium.errors import InvalidRequest, suggest
from alluvium.schema import types as t
from alluvium.schema.types import DataType, Field, JsonValue, Struct
from alluvium.schema.types import Decimal as DecimalType

# "Timestamp columns are truncated down to milliseconds."
_LOST_BY_TRUNCATION_US = 999
_LAST_TRUNCATED_US = scalar_of((1 << 63) - 1 - _LOST_BY_TRUNCATION_US, pa.int64())
_PREFIX_LENGTH = 32
_HIGHEST = "\U0010ffff"
_NAME_PART = re.compile(r"`((?:[^`]|``)*)`|([^.`]+)")


@dataclass(frozen=True, slots=True)
class _Leaf:
    lower: pa.Array
    upper: pa.Array
    null_count: pa.Array


@dataclass(frozen=True, slots=True)
class _Decoded:
    num_rows: pa.Array
    tight: pa.Array
    leaves: Mapping[Path, _Leaf]


class AddStatistics:
    """Bounds and null counts of files, as the pruner asks for them; implements `expr.prune.FileStatistics`.

    The JSON is decoded when a column is first asked for, for all columns announced by `prepare` at once, and each
    column once. What a file does not tell, or tells wrongly, is null.

    Args:
        files: `add` actions, schema `delta.spec.FILES`; `stats_parsed` is used where `stats` is null.
        schema: The table's logical schema.
        partition_columns: Logical names.
        physical: Physical path of each logical path that differs from it.
        time_zone: Zone of timestamps whose text names none.
    """

    def __init__(
        self,
        files: pa.Table,
        schema: Struct,
        partition_columns: Iterable[str],
        physical: Mapping[Path, Path] | None = None,
        time_zone: str = "UTC",
    ) -> None:
        self._files = files
        self._schema = schema
        self._partition_columns = frozenset(partition_columns)
        self._physical = physical or {}
        self._time_zone = time_zone
        self._leaves: dict[Path, _Leaf] = {}
        self._exact: dict[Path, pa.Array] = {}
        self._num_rows: pa.Array | None = None
        self._wide: pa.Array | None = None

    @property
    def num_files(self) -> int:
        count: int = self._files.num_rows
        return count

    def prepare(self, paths: Iterable[Path]) -> None:
        """Decodes the statistics of all these columns in one pass; a later question costs nothing."""
        asked = [path for path in dict.fromkeys(paths) if path not in self._leaves and self._type_of(path) is not None]
        if asked or self._num_rows is None:
            self._decode(asked)

    def exact(self, path: Path) -> pa.Array | None:
        """Each file's one value of a partition column; None for other columns."""
        if len(path) != 1 or path[0] not in self._partition_columns:
            return None
        if path not in self._exact:
            found = self._schema.find_path(path)
            if found is None:
                return None
            texts = partition_column(self._files, self._physical.get(path, path)[0])
            self._exact[path] = parse_partition_values(texts, found.type, self._time_zone, path[0])
        return self._exact[path]

    def lower(self, path: Path) -> pa.Array | None:
        """A value that no value of the column is less than, one a file."""
        leaf = self._leaf(path)
        return None if leaf is None else leaf.lower

    def upper(self, path: Path) -> pa.Array | None:
        """A value that no value of the column is greater than, one a file."""
        leaf = self._leaf(path)
        return None if leaf is None else leaf.upper

    def null_count(self, path: Path) -> pa.Array | None:
        """Rows that are null, one count a file: exact, or 0 or all of `num_rows` where rows are masked."""
        leaf = self._leaf(path)
        return None if leaf is None else leaf.null_count

    def num_rows(self) -> pa.Array:
        """Rows of each data file, those that a deletion vector masks included; null where it is unknown."""
        if self._num_rows is None:
            leading = self._leading_num_rows()
            if leading is not None:
                return leading
            self._decode([])
        return self._num_rows

    def tight(self) -> pa.Array:
        """Whether the bounds of a file are of rows that are all live.

        "`tightBounds`: Whether per-column statistics are currently tight or wide". Where rows are masked they are
        taken for wide, whatever the file says.
        """
        if self._wide is None:
            self._decode([])
        return pc.invert(self._wide)

    def _leading_num_rows(self) -> pa.Array | None:
        if "stats" not in self._files.column_names or "stats_parsed" in self._files.column_names:
            return None
        found = leading_num_records(self._files["stats"])
        return None if found is None else _whole(found)

    def _leaf(self, path: Path) -> _Leaf | None:
        if self._type_of(path) is None:
            return None
        self.prepare([path])
        return self._leaves[path]

    def _type_of(self, path: Path) -> DataType | None:
        found = self._schema.find_path(path)
        if found is None or isinstance(found.type, Struct) or path[0] in self._partition_columns:
            return None
        return found.type

    def _decode(self, paths: Sequence[Path]) -> None:
        names = self._files.column_names
        # Tombstones have no statistics.
        texts = self._files["stats"] if "stats" in names else _nothing(self.num_files)
        parsed = _whole(self._files["stats_parsed"]) if "stats_parsed" in names else None
        fields = {path: f for path in paths if (f := self._schema.find_path(path)) is not None}
        decoded = self._from_text(texts, {self._physical.get(path, path): f.type for path, f in fields.items()})
        in_text = _whole(texts.is_valid())
        if self._num_rows is None:
            num_rows, tight = decoded.num_rows, decoded.tight
            if parsed is not None:
                num_rows = _prefer(in_text, num_rows, struct_member(parsed, ("numRecords",), pa.int64()))
                tight = _prefer(in_text, tight, pc.fill_null(struct_member(parsed, ("tightBounds",), pa.bool_()), True))
            self._num_rows = num_rows
            self._wide = pc.or_(pc.invert(tight), self._masked())
        for path, f in fields.items():
            physical = self._physical.get(path, path)
            leaf = decoded.leaves[physical]
            if parsed is not None:
                leaf = _merge(in_text, leaf, _from_struct(parsed, physical, f.type))
            self._leaves[path] = self._cautious(leaf, f)

    def _from_text(self, texts: pa.ChunkedArray, asked: Mapping[Path, DataType]) -> _Decoded:
        """The statistics that stand in texts: chunk by chunk, so that the objects of a few files exist at a time."""
        decoder = StatsDecoder(asked)
        chunks = texts.chunks or [texts.combine_chunks()]
        parts = [_typed(decoder.decode(chunk), asked, self._time_zone) for chunk in chunks]
        return _Decoded(
            pa.concat_arrays([part.num_rows for part in parts]),
            pa.concat_arrays([part.tight for part in parts]),
            {path: _joined([part.leaves[path] for part in parts]) for path in asked},
        )

    def _masked(self) -> pa.Array:
        if "deletionVector" not in self._files.column_names:
            return repeated(False, self.num_files)
        return _whole(self._files["deletionVector"].is_valid())

    def _cautious(self, leaf: _Leaf, f: Field) -> _Leaf:
        """Widens bounds by what writers cut off, and drops null counts that tell nothing."""
        lower, upper, nulls = leaf.lower, leaf.upper, leaf.null_count
        if f.type in (t.TIMESTAMP, t.TIMESTAMP_NTZ):
            # Not beyond the greatest of all, behind which the least would come.
            most = pc.min_element_wise(upper.cast(pa.int64()), _LAST_TRUNCATED_US, skip_nulls=False)
            upper = pc.add(most, _LOST_BY_TRUNCATION_US).cast(upper.type)
        if isinstance(f.type, DecimalType) and f.type.precision > EXACT_DIGITS:
            lower, upper = widened_decimals(lower, f.type, -1), widened_decimals(upper, f.type, 1)
        if f.type == t.DOUBLE and "delta.typeChanges" in f.metadata:
            # Older files have floats; `0.1` then stands for the float next to it, which may lie on either side.
            lower = pc.min_element_wise(lower, _through_float(lower), skip_nulls=False)
            upper = pc.max_element_wise(upper, _through_float(upper), skip_nulls=False)
        # "If the `nullCount` for a column is any value other than these two special cases [0 and numRecords], the
        # value carries no information and should be treated as if absent."
        if self._wide is not None and self._wide.true_count:
            useless = pc.and_(self._wide, pc.and_(pc.not_equal(nulls, ZERO), pc.not_equal(nulls, self._num_rows)))
            nulls = pc.if_else(pc.fill_null(useless, self._wide), scalar_of(None, pa.int64()), nulls)
        return _Leaf(lower, upper, nulls)


def _typed(decoded: DecodedStats, asked: Mapping[Path, DataType], time_zone: str) -> _Decoded:
    leaves = {}
    for path, data_type in asked.items():
        raw = decoded.leaves[path]
        low, high = (bound_column(values, data_type, time_zone) for values in (raw.low, raw.high))
        leaves[path] = _Leaf(low, high, count_column(raw.null_count))
    bounds = decoded.tight_bounds
    # Most writers do not say.
    unsaid = bounds.count(None) == len(bounds)
    tight = repeated(True, len(bounds)) if unsaid else boolean_column([value is not False for value in bounds])
    return _Decoded(count_column(decoded.num_records), tight, leaves)


def _joined(parts: Sequence[_Leaf]) -> _Leaf:
    return _Leaf(
        pa.concat_arrays([part.lower for part in parts]),
        pa.concat_arrays([part.upper for part in parts]),
        pa.concat_arrays([part.null_count for part in parts]),
    )


def _nothing(count: int) -> pa.ChunkedArray:
    return pa.chunked_array([pa.nulls(count, pa.string())])


def _whole(values: pa.Array | pa.ChunkedArray) -> pa.Array:
    return values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values


def _prefer(condition: pa.Array, first: pa.Array, second: pa.Array) -> pa.Array:
    return pc.if_else(condition, first, second)


def _merge(in_text: pa.Array, text: _Leaf, struct: _Leaf) -> _Leaf:
    return _Leaf(
        _prefer(in_text, text.lower, struct.lower),
        _prefer(in_text, text.upper, struct.upper),
        _prefer(in_text, text.null_count, struct.null_count),
    )


def _through_float(values: pa.Array) -> pa.Array:
    return values.cast(pa.float32(), safe=False).cast(pa.float64())


def _from_struct(parsed: pa.StructArray, path: Path, data_type: DataType) -> _Leaf:
    arrow_type = bound_type(data_type)
    return _Leaf(
        struct_member(parsed, ("minValues", *path), arrow_type),
        struct_member(parsed, ("maxValues", *path), arrow_type),
        struct_member(parsed, ("nullCount", *path), pa.int64()),
    )


def struct_member(values: pa.Array, path: Path, arrow_type: pa.DataType) -> pa.Array:
    """A leaf of nested structs under the type asked; nulls where it is not there, or not of such a type."""
    for name in path:
        if not pa.types.is_struct(values.type) or values.type.get_field_index(name) < 0:
            return pa.nulls(len(values), arrow_type)
        values = pc.struct_field(values, [name])
    try:
        return values.cast(arrow_type)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return pa.nulls(len(values), arrow_type)


def stats_columns(
    schema: Struct,
    partition_columns: Iterable[str],
    num_indexed_cols: int = 32,
    explicit: Sequence[str] | None = None,
) -> tuple[FooterColumn, ...]:
    """The leaves that files get statistics of, in schema order.

    Args:
        schema: The table's schema.
        partition_columns: They have no statistics, and do not count.
        num_indexed_cols: `delta.dataSkippingNumIndexedCols`: leading leaves; members of structs count one each, as do
            arrays and maps; -1 is all.
        explicit: `delta.dataSkippingStatsColumns`: names (dotted, parts in backticks where needed) that replace the
            leading ones; a struct stands for all its members.

    Raises:
        InvalidRequest: An explicit name is no column.
    """
    partitions = {name.lower() for name in partition_columns}
    leaves = [FooterColumn(path, f.type) for path, f in schema.leaves() if path[0].lower() not in partitions]
    if explicit is None:
        return tuple(leaves if num_indexed_cols < 0 else leaves[:num_indexed_cols])
    chosen = [_resolved(schema, _split_name(name), name) for name in explicit]
    return tuple(leaf for leaf in leaves if any(leaf.path[: len(path)] == path for path in chosen))


def _split_name(name: str) -> Path:
    return tuple(quoted.replace("``", "`") or plain.strip() for quoted, plain in _NAME_PART.findall(name.strip()))


def _resolved(schema: Struct, path: Path, name: str) -> Path:
    """The path in the schema's own spelling: names match without regard to case."""
    exact: list[str] = []
    for part in path:
        found = schema.find_path((*exact, part))
        if found is None:
            raise InvalidRequest(
                f"delta.dataSkippingStatsColumns names {name!r}, which is no column",
                code="unknown-column",
                column=name,
                hint=suggest(name, (".".join(leaf) for leaf, _ in schema.leaves())),
            )
        exact.append(found.name)
    return tuple(exact)


def format_stats(footers: Iterable[FileFooter], tight_bounds: bool | None = None) -> pa.Array:
    """The `stats` of new files as JSON text.

    Args:
        footers: One a file.
        tight_bounds: Value of `tightBounds`; None leaves it out, as writers do unless the table has deletion vectors.
    """
    return pa.array([_format_file(footer, tight_bounds) for footer in footers], pa.string())


def _format_file(footer: FileFooter, tight_bounds: bool | None) -> str:
    low: dict[str, object] = {}
    high: dict[str, object] = {}
    nulls: dict[str, object] = {}
    for path, column in footer.columns.items():
        _put(low, path, _format_bound(column, column.min, _truncated_min))
        _put(high, path, _format_bound(column, column.max, truncated_max))
        _put(nulls, path, column.null_count)
    document: dict[str, object] = {"numRecords": footer.num_rows}
    if footer.columns:
        document.update(minValues=low, maxValues=high, nullCount=nulls)
    if tight_bounds is not None:
        document["tightBounds"] = tight_bounds
    return msgspec.json.encode(document).decode()


def _put(document: dict[str, object], path: Path, value: object) -> None:
    if value is None:
        return
    for name in path[:-1]:
        below = document.setdefault(name, {})
        assert isinstance(below, dict), "a leaf cannot also be a struct"
        document = below
    document[path[-1]] = value


def _format_bound(
    column: ColumnStats, value: object, truncated: Callable[[str], str | None]
) -> JsonValue | msgspec.Raw:
    """A bound as JSON; None (none is written) for types that have no order worth skipping by."""
    if value is None or column.type in (t.BOOLEAN, t.BINARY):
        return None
    if isinstance(value, str):
        return truncated(value)
    if isinstance(value, Decimal):
        return msgspec.Raw(format(value, "f").encode())
    if isinstance(value, int) and column.type == t.DATE:
        return format_date(value)
    if isinstance(value, int) and column.type in (t.TIMESTAMP, t.TIMESTAMP_NTZ):
        seconds, fraction = format_instant(value, "T")
        return f"{seconds}.{fraction[:3]}{'Z' if column.type == t.TIMESTAMP else ''}"
    if isinstance(value, float) and not math.isfinite(value):
        # JSON has no such numbers.
        return "Infinity" if value > 0 else "-Infinity"
    return value if isinstance(value, (int, float)) else None


def _truncated_min(value: str) -> str:
    return value[:_PREFIX_LENGTH]


def truncated_max(value: str) -> str | None:
    """A short string that is not less than `value`: a prefix and a character that is greater than what was cut off.

    None where no such character exists within twice the prefix. Lengths are UTF-16 units, as in the JVM.
    """
    if len(value) <= _PREFIX_LENGTH and _units(value) <= _PREFIX_LENGTH:
        return value
    end = units = 0
    while units < _PREFIX_LENGTH:
        units += _units(value[end])
        end += 1
    # No character is greater than the highest one: it must stay.
    while end < len(value) and value[end] == _HIGHEST:
        if units >= 2 * _PREFIX_LENGTH:
            return None
        units += 2
        end += 1
    if end == len(value):
        return value
    return value[:end] + ("\x7f" if value[end] < "\x7f" else _HIGHEST)


def _units(text: str) -> int:
    return len(text) + sum(character > "\uffff" for character in text)
