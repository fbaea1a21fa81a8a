"""Procedures: arguments by position and by name, and the command line, which takes them, too."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from paimon_rows import append, make, open_target

from alluvium.api.paimon.life.procedures import PROCEDURES, bind_arguments, find_procedure
from alluvium.cli.app import main
from alluvium.errors import InvalidRequest


def test_arguments_are_bound_as_java_does() -> None:
    create = find_procedure("CREATE_TAG")
    assert bind_arguments("create_tag", create, ("t", "x"), {"Time_Retained": "1 d"}) == {
        "table": "t", "tag": "x", "snapshot": None, "time_retained": "1 d",
    }  # fmt: skip
    for positional, named, code in [
        (("t",), {}, "missing-argument"),
        (("t", "x", 1, "1 d", "more"), {}, "unknown-argument"),
        (("t", "x"), {"tag": "y"}, "unknown-argument"),
        (("t", "x"), {"snapshots": 1}, "unknown-argument"),
        (("t", "x", "one"), {}, "invalid-argument"),
    ]:
        with pytest.raises(InvalidRequest) as raised:
            bind_arguments("create_tag", create, positional, named)
        assert raised.value.code == code
    with pytest.raises(InvalidRequest):
        find_procedure("nope")


def printed(capsys: pytest.CaptureFixture[str], *arguments: str) -> object:
    with pytest.raises(SystemExit) as end:
        main(["paimon", *arguments, "--format", "json"])
    assert not end.value.code, capsys.readouterr().err
    return json.loads(capsys.readouterr().out)


def test_procedures_on_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    url = str(tmp_path / "t")
    store = make(url, "day")
    for day in ("2020-01-01", "2020-01-02", "9999-01-01"):
        append(open_target(store), [{"k": 1, "day": day}])
    assert printed(capsys, "create_tag", url, "tag=x", "snapshot=2") == [{"result": True}]
    assert printed(capsys, "expire_snapshots", url, "retain_max=1", "retain_min=1") == [{"deleted_snapshots_count": 2}]
    expired = [{"expired_partitions": "day=2020-01-01"}]
    assert printed(capsys, "expire_partitions", url, "expiration_time=1 d", "max_expires=1") == expired
    since = printed(capsys, "create_tag_from_timestamp", url, "tag=y", "timestamp=0", "time_retained=1 d")
    assert since == [{"tagName": "y", "snapshot": 3}]
    assert printed(capsys, "rollback", url, "version=x") == [{"result": True}]
    assert printed(capsys, "expire_tags", url) == [{"expired_tags": "No expired tags."}]
    assert printed(capsys, "remove_orphan_files", url) == [{"deletedFileCount": 0, "deletedFileTotalLenInBytes": 0}]
    assert {"compact", "fast_forward", "reset_consumer"} <= set(PROCEDURES)
