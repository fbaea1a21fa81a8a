"""By which columns a stream's table may be partitioned, known before the first batch, without a JVM."""

from __future__ import annotations

import pytest
from stream_log import Log, add, metadata

from alluvium.api.delta.streams.writer import WRITE_STREAM, _ensure_layout
from alluvium.api.options import parse_options
from alluvium.delta.view.snapshot import load_snapshot
from alluvium.errors import InvalidRequest
from alluvium.spark.streams.queries import SaidOfWriter


def test_a_complete_output_that_overwrites_the_schema_may_partition_anew() -> None:
    log = Log("layout", add("a"))
    log.commit(metadata((("id", "long"), ("v", "long"))))
    snapshot = load_snapshot(log.store)

    def ensure(mode: str, **options: str) -> None:
        said = SaidOfWriter("delta", options, mode, "", ("id",), ())
        _ensure_layout(snapshot.config.schema, said, snapshot, parse_options(options, WRITE_STREAM, ()))

    for mode, options in (("Append", {"overwriteSchema": "true"}), ("Complete", {})):
        with pytest.raises(InvalidRequest) as caught:
            ensure(mode, **options)
        assert caught.value.code == "partition-mismatch"
    ensure("Complete", overwriteSchema="true")
