"""Output: tables for people, JSON and CSV for programs. Figures are humanised for people only."""

from __future__ import annotations

import csv
import datetime as dt
import enum
import os
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import msgspec
import pyarrow as pa
from rich import box
from rich.console import Console
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from alluvium.cli.escapes import json_printable, may_be_formula, printable
from alluvium.errors import AlluviumError, CommitConflict

Row = Mapping[str, object]

#: Columns of the output where it is no terminal: enough for a path on a line.
_WIDTH_WITHOUT_TERMINAL = 140


class Format(str, enum.Enum):
    """How results are printed."""

    TABLE = "table"
    JSON = "json"
    CSV = "csv"


@dataclass(frozen=True, slots=True)
class Shown:
    """A column of a table for people.

    Attributes:
        key: Of the row.
        title: Over the column; the key where absent.
        text: How a value is written.
        right: Whether it is aligned to the right.
    """

    key: str
    title: str | None = None
    text: Callable[[object], str] | None = None
    right: bool = False


def open_console(*, stderr: bool = False) -> Console:
    """The terminal; wide where the output goes elsewhere and nobody says how wide."""
    stream = sys.stderr if stderr else sys.stdout
    width = None if stream.isatty() or "COLUMNS" in os.environ else _WIDTH_WITHOUT_TERMINAL
    return Console(stderr=stderr, width=width, highlight=False)


def print_rows(rows: Sequence[Row], columns: Sequence[Shown], how: Format, *, title: str = "", note: str = "") -> None:
    """Rows of one kind.

    Args:
        rows: What to print; JSON and CSV have all their keys.
        columns: What people see of them.
        how: The format.
        title: Over the table for people.
        note: Under it.
    """
    if how is Format.JSON:
        print_json([dict(row) for row in rows])
    elif how is Format.CSV:
        print_csv(rows, list(rows[0]) if rows else [c.key for c in columns])
    else:
        console = open_console()
        console.print(_table(rows, columns, title))
        if note:
            console.print(f"[dim]{escape(printable(note))}[/]")


def print_record(record: Row, how: Format, *, title: str = "", texts: Mapping[str, str] | None = None) -> None:
    """One thing and its properties.

    Args:
        record: What to print.
        how: The format.
        title: Over the table for people.
        texts: Values as people see them, where that is not the plain text.
    """
    if how is Format.JSON:
        print_json(dict(record))
    elif how is Format.CSV:
        print_csv([{"property": name, "value": value} for name, value in record.items()], ["property", "value"])
    else:
        grid = Table(
            box=None,
            show_header=False,
            title=escape(printable(title)) or None,
            title_style="bold",
            title_justify="left",
        )
        grid.add_column(style="cyan", no_wrap=True)
        grid.add_column(overflow="fold")
        for name, value in record.items():
            text = (texts or {}).get(name, plain_text(value))
            if text:
                grid.add_row(escape(printable(name)), Text(printable(text)))
        open_console().print(grid)


def print_json(value: object) -> None:
    encoded = msgspec.json.format(msgspec.json.encode(value, enc_hook=str), indent=2)
    sys.stdout.write(json_printable(encoded.decode()) + "\n")


def print_csv(rows: Iterable[Row], columns: Sequence[str]) -> None:
    """CSV as it is for programs; where a terminal reads, without what it may act on."""
    shown = printable if sys.stdout.isatty() else str
    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow([shown(name) for name in columns])
    formulas = 0
    for row in rows:
        cells = [plain_text(row.get(name)) for name in columns]
        formulas += sum(map(may_be_formula, cells))
        writer.writerow([shown(cell) for cell in cells])
    if formulas:
        begin = f"{counted(formulas, 'cell')} may be taken for formulas and run by a spreadsheet"
        open_console(stderr=True).print(Text("note  ", "bold").append(begin, "not bold"), soft_wrap=True)


def print_error(error: AlluviumError) -> None:
    """What went wrong, where, and the hint; no traceback."""
    console = open_console(stderr=True)
    message, _, hint = printable(str(error)).partition("\nhint: ")
    lines = [Text("error ", "bold red").append(message, "not bold red").append(f"  [{error.code}]", "not bold dim")]
    if isinstance(error, CommitConflict):
        lines += [Text(printable(f"  {c.rule}: version {c.version}: {c.message}"), "red") for c in error.conflicts]
    if hint:
        lines.append(Text("hint  ", "bold").append(hint, "not bold"))
    for line in lines:
        console.print(line, soft_wrap=True)


def plain_rows(table: pa.Table) -> list[dict[str, object]]:
    """Arrow rows as Python values; maps with text as keys are mappings."""
    rows: list[dict[str, object]] = table.to_pylist()
    maps = [f.name for f in table.schema if pa.types.is_map(f.type) and pa.types.is_string(f.type.key_type)]
    for row in rows:
        for name in maps:
            value = row[name]
            row[name] = dict(value) if isinstance(value, list) else value
    return rows


def plain_text(value: object) -> str:
    """A value as text: ISO times, JSON for what is nested, nothing for null."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, (dt.datetime, dt.date)):
        return value.isoformat()
    if isinstance(value, (Mapping, list, tuple, bytes)):
        return msgspec.json.encode(value, enc_hook=str).decode().strip('"')
    return str(value)


def count_text(value: object) -> str:
    """`336,776`."""
    return f"{value:,}" if isinstance(value, int) else "?"


def counted(count: int, noun: str) -> str:
    """`1 file`, `2 files`."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def size_text(value: object) -> str:
    """`4.2 MB`, in powers of 1000."""
    if not isinstance(value, int):
        return "?"
    if value < 1000:
        return f"{value} B"
    size, units = value / 1000, ["kB", "MB", "GB", "TB", "PB"]
    # As printed, 999.95 kB is 1000.0 kB, hence 1.0 MB.
    while size >= 999.95 and len(units) > 1:
        size /= 1000
        units.pop(0)
    return f"{size:.1f} {units[0]}"


def time_text(value: object) -> str:
    """`2013-01-31 12:00:00`, in UTC."""
    return value.strftime("%Y-%m-%d %H:%M:%S") if isinstance(value, dt.datetime) else ""


def pairs_text(value: object) -> str:
    """`a=1, b=2`; pairs without a value are left out."""
    if not isinstance(value, Mapping):
        return ""
    return ", ".join(f"{k}={v}" for k, v in value.items() if v not in (None, "", "[]"))


def metrics_text(value: object) -> str:
    """`+2 files, -1 file, 336,776 rows, 4.2 MB` of what a write tells of itself; other metrics as they are."""
    metrics = {k: str(v) for k, v in value.items()} if isinstance(value, Mapping) else {}
    parts = [write(int(metrics.pop(name))) for name, write in _METRICS.items() if metrics.get(name, "").isdecimal()]
    metrics.pop("numRemovedBytes", None)
    metrics = {name: text for name, text in metrics.items() if name not in _SHOWN_IF_ANY or text != "0"}
    return ", ".join(part for part in (*parts, pairs_text(metrics)) if part)


_METRICS: Mapping[str, Callable[[int], str]] = {
    "numFiles": lambda n: "+" + counted(n, "file"),
    "numRemovedFiles": lambda n: "-" + counted(n, "file"),
    "numOutputRows": lambda n: counted(n, "row"),
    "numDeletedRows": lambda n: "-" + counted(n, "row"),
    "numOutputBytes": size_text,
}
_SHOWN_IF_ANY = ("numCopiedRows", "numAddedChangeFiles")


def values_text(value: object) -> str:
    """`month=1/day=2`; null as `null`."""
    if not isinstance(value, Mapping):
        return ""
    return "/".join(f"{k}={'null' if v is None else v}" for k, v in value.items())


def _table(rows: Sequence[Row], columns: Sequence[Shown], title: str) -> Table:
    table = Table(
        box=box.SIMPLE_HEAD,
        title=escape(printable(title)) or None,
        title_style="bold",
        title_justify="left",
        pad_edge=False,
    )
    for column in columns:
        table.add_column(
            escape(printable(column.title or column.key)), justify="right" if column.right else "left", overflow="fold"
        )
    for row in rows:
        table.add_row(*(Text(printable((c.text or plain_text)(row.get(c.key)))) for c in columns))
    return table
