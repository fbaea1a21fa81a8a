"""The table that a statement is about, among other scans; without a JVM."""

from __future__ import annotations

from pathlib import Path

from alluvium.spark.scan.own_table import OwnTable


def test_a_scan_of_the_table_itself(tmp_path: Path):
    for name in ("t", "copy"):
        (tmp_path / name).mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "t")
    own = OwnTable(f"file:{tmp_path}/t", "its id")
    assert own.is_read_by((f"file:{tmp_path}/t", "3", "another")) is True
    assert own.is_read_by((f"file:{tmp_path}/link", "3", "its id")) is True
    assert own.is_read_by((f"file:{tmp_path}/copy", "3", "its id")) is False
    # Perhaps a mount that only the server has, or another name of a bucket.
    assert own.is_read_by(("file:/nowhere/t", "3", "its id")) is None
    assert own.is_read_by(("s3a://b/t", "1..3", "changes", "its id")) is None
    assert own.is_read_by(("s3a://b/t", "3", "another")) is False
    assert OwnTable(f"file:{tmp_path}/t").is_read_by(("s3a://b/t", "", "")) is False
