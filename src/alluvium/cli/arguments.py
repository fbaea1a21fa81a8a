"""Arguments that the commands share, and how they become an open table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

import alluvium
from alluvium.cli.render import Format
from alluvium.errors import InvalidRequest

if TYPE_CHECKING:
    # A format is loaded when a table of it is met.
    from alluvium.api.paimon.paimon_view import PaimonView

#: What arguments are, by name: click's help has no place for it.
ABOUT = {
    "URL": "A local path or URL (file:, s3://, gs://, abfss://).",
    "START": "A version or an ISO time (UTC).",
    "[END]": "A version or an ISO time; the latest.",
    "NAME": "snapshots, schemas, files, tags, audit_log, ...",
    "V1": "A version.",
    "V2": "Another version.",
    "FIRST": "First version.",
    "LAST": "Last version.",
    "PROCEDURE": "create_tag, expire_snapshots, remove_orphan_files, ...",
    "[NAME=VALUE]...": "The procedure's arguments: tag=monday snapshot=3.",
    "READER": "The version that readers have to know: 1, 2 or 3.",
    "WRITER": "The version that writers have to know: 2 to 7.",
    "TARGET": "Where the clone goes: a local path or URL.",
}


def _chosen_format(context: click.Context, parameter: click.Parameter, value: str) -> Format:
    return Format(value)


URL = click.Argument(["url"], metavar="URL")
FORMAT = click.Option(
    ["--format", "-f", "how"],
    type=click.Choice([one.value for one in Format], case_sensitive=False),
    default=Format.TABLE.value,
    show_default=True,
    callback=_chosen_format,
    help="How to print.",
)
VERSION = click.Option(["--version", "-v"], type=int, help="This version instead of the newest.")
TIMESTAMP = click.Option(["--timestamp", "-t"], help="The newest version at or before this ISO time (UTC).")
WHERE = click.Option(["--where", "-w"], help="A predicate in Spark SQL.")
COLUMNS = click.Option(["--columns", "-c"], help="Names, separated by commas.")
ROWS = click.Option(["--limit", "-n"], type=click.IntRange(min=0), default=20, show_default=True, help="Rows to print.")
LIMIT = click.Option(["--limit", "-n"], type=int, help="At most so many.")
STORAGE = click.Option(
    ["--storage-option"], multiple=True, metavar="KEY=VALUE", help="For the object store; repeatable."
)


def open_table(
    url: str, version: int | None = None, timestamp: str | None = None, storage: Sequence[str] | None = None
) -> alluvium.Table | PaimonView:
    """The table that the arguments name."""
    return alluvium.open(url, version=version, timestamp=timestamp, storage_options=parse_storage(storage))


def parse_storage(pairs: Sequence[str] | None) -> dict[str, str]:
    """Options of the object store from `KEY=VALUE` texts.

    Raises:
        InvalidRequest: A text without `=`.
    """
    return parse_pairs(pairs, "--storage-option region=eu-central-1")


def parse_pairs(pairs: Sequence[str] | None, example: str) -> dict[str, str]:
    """`KEY=VALUE` texts as a mapping.

    Args:
        pairs: The texts.
        example: One as it should be, for the hint.

    Raises:
        InvalidRequest: A text without `=`.
    """
    found: dict[str, str] = {}
    for pair in pairs or ():
        key, equals, value = pair.partition("=")
        if not (key and equals):
            raise InvalidRequest(f"{pair!r} is not KEY=VALUE", code="invalid-option", hint=example)
        found[key] = value
    return found
