"""When the versions of a stream of changes were committed."""

from __future__ import annotations

from stream_log import Log, add, metadata

from alluvium.delta.streams.batch import BatchChanges
from alluvium.delta.streams.offset import Offset
from alluvium.delta.streams.stream import Stream


def test_times_that_commits_carry_since_the_stream_was_made() -> None:
    """ "For commits with version >= `delta.inCommitTimestampEnablementVersion`, readers should use" them."""
    log = Log("stream-times", add("a"), delta__enableChangeDataFeed="true")
    stream = log.stream(changes=True, starting_version=0)
    again = log.stream(changes=True, starting_version=3)
    log.commit(add("b"))
    enabled = {
        "delta__enableChangeDataFeed": "true",
        "delta__enableInCommitTimestamps": "true",
        "delta__inCommitTimestampEnablementVersion": "2",
        "delta__inCommitTimestampEnablementTimestamp": "2000",
    }
    features = {"readerFeatures": [], "writerFeatures": ["changeDataFeed", "inCommitTimestamp"]}
    protocol = {"protocol": {"minReaderVersion": 3, "minWriterVersion": 7, **features}}
    log.commit(protocol, metadata(**enabled), add("c"), carried=2000)
    log.commit(add("d"), carried=3000)

    def times(of: Stream, begin: int, end: int) -> list[int]:
        assert of.latest(Offset("t", begin)) == Offset("t", 4)
        (source,) = of.batch(Offset("t", begin), Offset("t", end))
        assert isinstance(source, BatchChanges)
        return [source.feed.times[version] for version in range(begin, end)]

    before, *carried = times(stream, 1, 4)
    assert before > 3000
    assert carried == [2000, 3000]
    # Whoever goes on behind the commit that says so.
    assert times(again, 3, 4) == [3000]
    # And the batch comes again with the same.
    assert times(stream, 1, 4) == [before, 2000, 3000]
