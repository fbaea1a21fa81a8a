from __future__ import annotations

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
