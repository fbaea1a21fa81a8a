"""After a commit: whatever goes wrong, the commit stands, and nobody is told otherwise."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from paimon_rows import append, make, open_target

from alluvium.paimon.log.travel import list_snapshots
from alluvium.paimon.upkeep.maintain import maintain

ONE = {"snapshot.num-retained.min": "1", "snapshot.num-retained.max": "1"}


@pytest.mark.parametrize(
    ("options", "kept"),
    [
        ({**ONE, "consumer.expiration-time": "soon"}, [2]),
        ({**ONE, "tag.automatic-creation": "never"}, [2]),
        ({**ONE, "tag.automatic-creation": "watermark", "sink.watermark-time-zone": "Mars/Olympus"}, [2]),
        ({**ONE, "changelog.num-retained.min": "few"}, [1, 2]),
        ({**ONE, "write-only": "perhaps"}, [1, 2]),
    ],
)
def test_what_options_ask_for_is_not_worth_failing_for(
    tmp_path: Path, options: dict[str, str], kept: list[int]
) -> None:
    store = make(str(tmp_path / "t"))
    for n in range(2):
        append(open_target(store), [{"k": n}])
    path = tmp_path / "t/snapshot/snapshot-1"
    path.write_text(json.dumps({**json.loads(path.read_text()), "watermark": 1000}))
    maintain(store, options)
    assert list_snapshots(store) == kept
