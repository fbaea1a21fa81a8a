"""ORC files as ORC's library for Java writes them in some zone, made of Arrow's."""

from __future__ import annotations

import io
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import orc

import alluvium
from alluvium.codecs.footers.orc_tail import Message, fields_of, messages_of, number_of
from alluvium.portable.files.nested import with_members

_INSTANT = pa.timestamp("us", "UTC")
# Footer, StripeInformation, StripeFooter, PostScript
_STRIPES, _WRITER = 3, 9
_BEFORE, _FOOTER_LENGTH = (1, 2, 3), 4
_WRITER_TIMEZONE = 3
_LENGTH_OF_FOOTER = 1


def java_file(rows: pa.Table, zone: str | None, lies: Message | None = None) -> bytes:
    """A file of Java's library; a zone is what its stripe calls the writer's, and `lies` is told of where that lies."""
    sink = io.BytesIO()
    orc.write_table(rows, sink, compression="uncompressed")
    data = sink.getvalue()
    length = data[-1]
    postscript = {**fields_of(data[-1 - length : -1])}
    end = len(data) - 1 - length
    begin = end - number_of(postscript, _LENGTH_OF_FOOTER)
    footer = {number: values for number, values in fields_of(data[begin:end]).items() if number != _WRITER}
    (stripe,) = messages_of(footer, _STRIPES)
    at = sum(number_of(stripe, field) for field in _BEFORE)
    after = at + number_of(stripe, _FOOTER_LENGTH)
    told = {n: values for n, values in fields_of(data[at:after]).items() if n != _WRITER_TIMEZONE}
    tail = _bytes(told if zone is None else {**told, _WRITER_TIMEZONE: [zone.encode()]})
    whole = _bytes({**footer, _STRIPES: [_bytes({**stripe, _FOOTER_LENGTH: [len(tail)], **(lies or {})})]})
    last = _bytes({**postscript, _LENGTH_OF_FOOTER: [len(whole)]})
    return data[:at] + tail + data[after:begin] + whole + last + bytes([len(last)])


def _bytes(message: Message) -> bytes:
    parts = []
    for number, values in message.items():
        for value in values:
            if isinstance(value, int):
                parts += [_varint(number << 3), _varint(value)]
            else:
                parts += [_varint(number << 3 | 2), _varint(len(value)), value]
    return b"".join(parts)


def _varint(number: int) -> bytes:
    found = []
    while number > 0x7F:
        found.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*found, number])


def stored_by_clock(values: pa.Array, zone: str) -> pa.Array:
    """Instants as Paimon's Java stores them in a zone: those at which its clock shows what UTC's does at the true ones."""
    if pa.types.is_list(values.type):
        instants = values.cast(pa.list_(_INSTANT))
        return with_members(instants, lambda _, member: stored_by_clock(member, zone))
    shown = values.cast(pa.timestamp("us"))
    return pc.assume_timezone(shown, zone, ambiguous="earliest", nonexistent="latest").cast(_INSTANT)


def write_as_java(url: str, zone: str, tells_zone: bool, *plain: str, only: str | None = None) -> None:
    """The data files of a Paimon table again, as its Java writes them in a zone.

    Args:
        url: The table's.
        zone: Of Java.
        tells_zone: Whether the files name it.
        plain: Columns that hold no instants.
        only: The path of the only file.
    """
    for path in alluvium.open(url).files()["path"].to_pylist() if only is None else [only]:
        file = Path(url) / path
        rows = orc.read_table(file).combine_chunks()
        columns = {
            name: column.combine_chunks() if name in plain else stored_by_clock(column.combine_chunks(), zone)
            for name, column in zip(rows.column_names, rows.columns, strict=True)
        }
        file.write_bytes(java_file(pa.table(columns), zone if tells_zone else None))
