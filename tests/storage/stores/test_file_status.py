from __future__ import annotations

import pytest

from alluvium.storage.stores.file_status import FileStatus, parse_file_statuses

#: What Hadoop 3.5 wrote for a file of the local disk (its length changed to need two bytes), and a directory.
FILE = (
    b'\x08\x02\x12\x0efile:/tmp/hh/x\x18\xac\x02"\x03\x08\xa4\x03*\x04root2\x04root8\xce\xe3\xfc\xe4\x9f4'
    b"@\x9a\xb1\xfb\xe4\x9f4P\x01X\x80\x80\x80\x10\x90\x01\x00"
)
DIRECTORY = b"\x08\x01\x12\x10file:/tmp/hh/d e\x18\x00"


def test_a_listing_is_parsed() -> None:
    data = (2).to_bytes(4, "big") + b"".join(len(m).to_bytes(4, "big") + m for m in (FILE, DIRECTORY))
    file, directory = parse_file_statuses(data)
    assert file == FileStatus("file:/tmp/hh/x", 300, 1795239653838, False)
    assert file.name == "x"
    assert directory == FileStatus("file:/tmp/hh/d e", 0, 0, True)
    assert directory.name == "d e"


def test_an_empty_listing() -> None:
    assert parse_file_statuses(bytes(4)) == []


def message(*fields: bytes) -> bytes:
    return b"".join(fields)


def listing(*messages: bytes) -> bytes:
    return len(messages).to_bytes(4, "big") + b"".join(len(one).to_bytes(4, "big") + one for one in messages)


TYPE_FILE, TYPE_DIR = b"\x08\x02", b"\x08\x01"
PATH = b"\x12\x03" + b"/a\xc3"[:2] + b"b"
#: Fields that a later Hadoop may add: a varint, bytes, and both fixed widths.
UNKNOWN = [b"\x98\x06\xac\x02", b"\x9a\x06\x02xy", b"\x99\x06" + bytes(8), b"\x9d\x06" + bytes(4)]


@pytest.mark.parametrize("unknown", UNKNOWN, ids=["varint", "bytes", "fixed64", "fixed32"])
def test_fields_that_nobody_knows_are_passed_over(unknown: bytes) -> None:
    size, modified = b"\x18\xac\x02", b"\x38\x05"
    for fields in (
        (unknown, TYPE_FILE, PATH, size, modified),
        (TYPE_FILE, unknown, PATH, unknown, size, modified, unknown),
    ):
        wanted = FileStatus("/ab", 300, 5, False)
        assert parse_file_statuses(listing(message(*fields), message(*fields))) == [wanted, wanted]


def test_kinds_and_names() -> None:
    found = parse_file_statuses(
        listing(message(TYPE_DIR, PATH), message(TYPE_FILE, PATH), message(b"\x08\x03", PATH), b"")
    )
    assert [one.is_directory for one in found] == [True, False, False, False]
    assert [(one.path, one.size, one.modified_ms) for one in found] == [("/ab", 0, 0)] * 3 + [("", 0, 0)]
    assert found[0].name == "ab" and parse_file_statuses(listing()) == []
