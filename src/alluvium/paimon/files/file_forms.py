"""In which form the files of a table are written: by whom, and with which options of the writer.

Spark's own writer writes Parquet and ORC wherever it has the types as Paimon's readers expect them; Python workers
write the rest, and Avro. It is decided from the schema and its options alone, but for dates of the other calendar.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from alluvium.errors import InvalidRequest, UnsupportedFeature
from alluvium.paimon.files.orc_times import days_of_spark
from alluvium.paimon.schema.table_schema import TableSchema
from alluvium.paimon.schema.types import DataType
from alluvium.paimon.terms.options import FILE_BLOCK_SIZE, FILE_COMPRESSION, FILE_FORMAT, ZSTD_LEVEL
from alluvium.plan.write import Check

FORMATS = ("parquet", "orc", "avro")
#: What a table may tell Parquet's writer, without the column that may stand behind it.
_PARQUET_LAYOUT = frozenset(
    {
        "parquet.block.size",
        "parquet.block.row.count.limit",
        "parquet.bloom.filter.adaptive.enabled",
        "parquet.bloom.filter.candidates.number",
        "parquet.bloom.filter.enabled",
        "parquet.bloom.filter.expected.ndv",
        "parquet.bloom.filter.fpp",
        "parquet.bloom.filter.max.bytes",
        "parquet.column.index.truncate.length",
        "parquet.compression.codec.zstd.level",
        "parquet.compression.codec.zstd.workers",
        "parquet.dictionary.page.size",
        "parquet.enable.dictionary",
        "parquet.page.row.count.limit",
        "parquet.page.size",
        "parquet.page.size.check.estimate",
        "parquet.page.size.row.check.max",
        "parquet.page.size.row.check.min",
        "parquet.page.write-checksum.enabled",
        "parquet.statistics.truncate.length",
        "parquet.writer.version",
    }
)
_ORC_LAYOUT = frozenset(
    {
        "orc.base.delta.ratio",
        "orc.block.padding",
        "orc.block.padding.tolerance",
        "orc.block.size",
        "orc.bloom.filter.columns",
        "orc.bloom.filter.fpp",
        "orc.buffer.size.enforce",
        "orc.column.encoding.direct",
        "orc.compress.size",
        "orc.compression.strategy",
        "orc.compression.zstd.level",
        "orc.compression.zstd.windowlog",
        "orc.dictionary.early.check",
        "orc.dictionary.implementation",
        "orc.dictionary.key.threshold",
        "orc.encoding.strategy",
        "orc.row.index.stride",
        "orc.rows.between.memory.checks",
        "orc.stripe.row.count",
        "orc.stripe.size",
    }
)
_ENCRYPTION: Mapping[str, tuple[str, ...]] = {
    "parquet": ("parquet.crypto.", "parquet.encryption."),
    "orc": ("orc.encrypt", "orc.mask", "orc.key.provider"),
}
#: The codecs of formats whose writers know few, by the names that tables may have for them.
_CODECS: Mapping[str, Mapping[str, str]] = {
    "orc": {
        **{name: name for name in ("zstd", "snappy", "zlib", "lz4", "none")},
        "gzip": "zlib",
        "deflate": "zlib",
        "uncompressed": "none",
        "null": "none",
    },
    "avro": {
        **{name: name for name in ("zstd", "snappy", "deflate", "null")},
        "zstandard": "zstd",
        "gzip": "deflate",
        "zlib": "deflate",
        "uncompressed": "null",
        "none": "null",
    },
}
#: In ORC: those whose footers we read, which tell the statistics of what Spark has written.
_READ_BACK = ("zstd", "snappy", "zlib", "none")
#: Precisions of timestamps whose files have microseconds.
_MICROS = (4, 5, 6)


def field_id(file_format: str, number: int) -> dict[str, str] | None:
    """What the metadata of a file's column, as Arrow has it, says of the column's number; None: nothing."""
    # The latter is an attribute of ORC's.
    names = {"parquet": "PARQUET:field_id", "orc": "paimon.id"}
    return {names[file_format]: str(number)} if file_format in names else None


def written_by_workers(schema: TableSchema, options: Mapping[str, str]) -> bool:
    """Whether Spark's own writer cannot write the files, whatever the rows are.

    Args:
        schema: Of the table.
        options: As of `writer_options`.
    """
    file_format = FILE_FORMAT.get(schema.options)
    if file_format == "avro" or (file_format == "orc" and options["compression"] not in _READ_BACK):
        return True
    return not all(_has_form_in_spark(f.type, file_format) for f in schema.fields)


def _has_form_in_spark(data_type: DataType, file_format: str) -> bool:
    """Whether Spark's own writer writes the type as Paimon's readers expect it.

    In Parquet fractions of seconds are microseconds there, and there is no time of the day. In ORC that is an integer;
    but timestamps without a zone are written as integers, too, and instants as the local times of whoever writes.
    """
    root = data_type.root
    if file_format == "orc":
        other = root.startswith("TIMESTAMP")
    else:
        other = root == "TIME_WITHOUT_TIME_ZONE" or (
            root.startswith("TIMESTAMP") and data_type.precision not in _MICROS
        )
    return not other and all(_has_form_in_spark(inner, file_format) for inner in types_within(data_type))


def types_within(data_type: DataType) -> tuple[DataType, ...]:
    """The types that a type is made of."""
    inner = (data_type.element, data_type.key, data_type.value, *(f.type for f in data_type.fields))
    return tuple(one for one in inner if one is not None)


def spark_writes_where(schema: TableSchema) -> tuple[Check, ...]:
    """What must hold of all rows for Spark's own writer to write them (see `WritePlan.spark_writes_where`)."""
    return tuple(days_of_spark(schema)) if FILE_FORMAT.get(schema.options) == "orc" else ()


def writer_options(schema: TableSchema, given: Sequence[tuple[str, str]]) -> dict[str, str]:
    """What the writer is told: of the table's options those that say how files are laid out, then those of the call.

    Others name classes that the writer would load; one that asks for encryption cannot be left out unsaid.

    Raises:
        InvalidRequest: A codec that the format's files are not written with (`"invalid-table-option"`).
        UnsupportedFeature: `"encrypted-files"`.
    """
    file_format = FILE_FORMAT.get(schema.options)
    for name in schema.options:
        if name.startswith(_ENCRYPTION.get(file_format, ())):
            raise UnsupportedFeature(
                f"the table's option {name} asks for encrypted files",
                code="encrypted-files",
                features=("encryption",),
                hint="write with the engine that has the keys, or remove the option",
            )
    made = {"orc": _orc_options, "parquet": _parquet_options}.get(file_format, _avro_options)(schema.options)
    made |= dict(given)
    made["compression"] = _codec(made["compression"], file_format)
    return made


def _parquet_options(options: Mapping[str, str]) -> dict[str, str]:
    # "parquet.enable.dictionary#column"
    own = {name: value for name, value in options.items() if name.partition("#")[0] in _PARQUET_LAYOUT}
    own["compression"] = FILE_COMPRESSION.get(options)
    own["parquet.compression.codec.zstd.level"] = str(ZSTD_LEVEL.get(options))
    return own


def _orc_options(options: Mapping[str, str]) -> dict[str, str]:
    made = {"orc.compression.zstd.level": str(ZSTD_LEVEL.get(options))}
    if FILE_BLOCK_SIZE.is_set(options):
        made["orc.stripe.size"] = str(FILE_BLOCK_SIZE.get(options))
    made |= {name: value for name, value in options.items() if name in _ORC_LAYOUT}
    # As in Java the format's own option comes before that of all formats.
    made["compression"] = options.get("orc.compress") or FILE_COMPRESSION.get(options)
    # What the cluster may say otherwise: days are those of Paimon's files, see `orc_times`.
    made["orc.proleptic.gregorian"] = "false"
    return made


def _avro_options(options: Mapping[str, str]) -> dict[str, str]:
    return {"compression": FILE_COMPRESSION.get(options)}


def _codec(name: str, file_format: str) -> str:
    known = _CODECS.get(file_format)
    if known is None:
        return name
    if name.lower() not in known:
        raise InvalidRequest(
            f"{file_format} files are not compressed by {name!r} here",
            code="invalid-table-option",
            hint=f'"file.compression" is one of {", ".join(sorted(set(known.values())))}',
        )
    return known[name.lower()]
