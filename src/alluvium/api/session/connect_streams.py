"""`readStream` and `writeStream` over Spark Connect: refused by name, with what works."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

from alluvium.errors import UnsupportedFeature

FORMATS = ("delta", "paimon")


def load_stream(original: Callable[..., object], self: Any, *args: Any, **kwargs: Any) -> object:
    """`DataStreamReader.load` of a Connect session."""
    named = kwargs.get("format") or (args[1] if len(args) > 1 else None) or self._format
    if str(named).casefold() in FORMATS:
        _refuse("readStream", str(named))
    return original(self, *args, **kwargs)


def start_stream(original: Callable[..., object], self: Any, *args: Any, **kwargs: Any) -> object:
    """`DataStreamWriter.start` and `toTable` of a Connect session."""
    named = kwargs.get("format") or (args[1] if len(args) > 1 else None) or self._write_proto.format
    has_function = self._write_proto.HasField("foreach_batch") or self._write_proto.HasField("foreach_writer")
    if str(named).casefold() in FORMATS and not has_function:
        _refuse("writeStream", str(named))
    return original(self, *args, **kwargs)


def _refuse(door: str, named: str) -> NoReturn:
    raise UnsupportedFeature(
        f"{door} of {named} tables needs the driver's JVM, which a session of Spark Connect has not",
        code="no-jvm-for-streams",
        features=("streams",),
        hint="run the query on a classic session; or follow the table by alluvium.open(url).follow(start=offset), and "
        "write each batch by alluvium.write(df, url, mode='append', txnAppId=..., txnVersion=...)",
    )
