"""Arguments that the commands share, and how they become an open table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import typer

import alluvium
from alluvium.api.paimon.paimon_view import PaimonView
from alluvium.cli.render import Format
from alluvium.errors import InvalidRequest

UrlArgument = Annotated[
    str, typer.Argument(metavar="URL", help="A local path or URL (file:, s3://, gs://, abfss://).", show_default=False)
]
FormatOption = Annotated[Format, typer.Option("--format", "-f", help="How to print.", case_sensitive=False)]
VersionOption = Annotated[
    int | None, typer.Option("--version", "-v", help="This version instead of the newest.", show_default=False)
]
TimestampOption = Annotated[
    str | None,
    typer.Option("--timestamp", "-t", help="The newest version at or before this ISO time (UTC).", show_default=False),
]
WhereOption = Annotated[str | None, typer.Option("--where", "-w", help="A predicate in Spark SQL.", show_default=False)]
ColumnsOption = Annotated[
    str | None, typer.Option("--columns", "-c", help="Names, separated by commas.", show_default=False)
]
LimitOption = Annotated[int, typer.Option("--limit", "-n", help="Rows to print.", min=0)]
StorageOption = Annotated[
    list[str] | None,
    typer.Option("--storage-option", metavar="KEY=VALUE", help="For the object store; repeatable.", show_default=False),
]


def open_table(
    url: str, version: int | None = None, timestamp: str | None = None, storage: Sequence[str] | None = None
) -> alluvium.Table | PaimonView:
    """The table that the arguments name."""
    return alluvium.open(url, version=version, timestamp=timestamp, storage_options=parse_storage(storage))


def parse_storage(pairs: Sequence[str] | None) -> dict[str, str]:
    """`KEY=VALUE` texts as a mapping.

    Raises:
        InvalidRequest: A text without `=`.
    """
    options: dict[str, str] = {}
    for pair in pairs or ():
        key, equals, value = pair.partition("=")
        if not (key and equals):
            raise InvalidRequest(
                f"{pair!r} is not KEY=VALUE", code="invalid-option", hint="--storage-option region=eu-central-1"
            )
        options[key] = value
    return options
