"""One way to read lines of the log: every reader takes the same for a line, and for damage."""

from __future__ import annotations

import uuid
from collections.abc import Callable

import msgspec
import pytest
from delta_values import LEGACY, make_metadata

from alluvium.delta.log.names import commit_path
from alluvium.delta.log.read import read_commits
from alluvium.delta.log.read_changes import parse_changes, parse_head
from alluvium.delta.log.sidecar import parse_json_head
from alluvium.delta.log.timeline import read_commit_infos
from alluvium.delta.terms.lines import decode_line, decode_lines, split_lines
from alluvium.delta.terms.spec import Add, CommitInfo, format_actions, parse_actions
from alluvium.errors import CorruptTable
from alluvium.storage.stores.memory import MemoryStore

MARK = b"\xef\xbb\xbf"
PATH = commit_path(0)
ADD = Add(path="f", partition_values={}, size=1, modification_time=1, data_change=True)
ENTRY = format_actions([CommitInfo({"operation": "WRITE"}), LEGACY, make_metadata(), ADD])


def store_of(data: bytes) -> MemoryStore:
    store = MemoryStore(uuid.uuid4().hex, "t")
    store.put(PATH, data)
    return store


def of_actions(data: bytes) -> object:
    return len(parse_actions(data, path=PATH, version=0)) == 4


def of_state(data: bytes) -> object:
    store = store_of(data)
    found = read_commits(store, store.list_from("_delta_log"))
    if found.damage:
        raise found.damage
    return found.protocol == LEGACY and found.metadata == make_metadata() and sum(len(b) for b in found.adds) == 1


def of_changes(data: bytes) -> object:
    found = parse_changes(data, PATH, 0)
    return (found.protocol, found.metadata, found.added.num_rows) == (LEGACY, make_metadata(), 1)


def of_head(data: bytes) -> object:
    return parse_head(data, PATH, 0) == (LEGACY, make_metadata())


def of_checkpoint(data: bytes) -> object:
    found = parse_json_head(data, PATH)
    return found.lists_files and found.actions == (LEGACY, make_metadata())


def of_history(data: bytes) -> object:
    ((version, info, _),) = read_commit_infos(store_of(data))
    return version == 0 and info is not None and info.operation == "WRITE"


READERS = [of_actions, of_state, of_changes, of_head, of_checkpoint, of_history]
#: Those that look at every line.
WHOLE = [of_actions, of_state, of_changes, of_checkpoint]


@pytest.mark.parametrize("read", READERS)
@pytest.mark.parametrize(
    "data",
    [
        ENTRY,
        MARK + ENTRY,
        ENTRY.removesuffix(b"\n"),
        MARK + b"\n" + ENTRY + b"\n\n",
        ENTRY.replace(b"\n", b"\r\n"),
        b" \t\n" + ENTRY.replace(b"\n", b"\n  \n\t\n"),
        ENTRY + b'{"unknown":{"a":1}}\n',
    ],
)
def test_what_counts_as_a_line(read: Callable[[bytes], object], data: bytes) -> None:
    assert read(data) is True


@pytest.mark.parametrize("read", WHOLE)
@pytest.mark.parametrize(
    ("damaged", "line"),
    [
        (ENTRY + b'{"txn"', 5),
        (ENTRY + b"\n[]", 6),
        (ENTRY + b'{"protocol":{"minReaderVersion":1,"minWriterVersion":2,"readerFeatures":["\xff"]}}', 5),
        (ENTRY + b'{"a":' + b"[" * 5000, 5),
        (ENTRY.replace(b"}\n{", b"}{", 1), 1),
        (b"\n" + ENTRY.replace(b"}\n{", b"}{", 1), 2),
        (MARK + MARK + ENTRY, 1),
        (ENTRY + MARK, 5),
        (ENTRY + b'{"x"\n:1}', 5),
    ],
)
def test_what_counts_as_damage(read: Callable[[bytes], object], damaged: bytes, line: int) -> None:
    with pytest.raises(CorruptTable) as caught:
        read(damaged)
    assert (caught.value.code, caught.value.path) == ("damaged-line", PATH)
    assert caught.value.message.startswith(f"line {line} of the log entry is damaged")


class Number(msgspec.Struct):
    n: int


def test_lines_have_their_numbers() -> None:
    data = b"a\n\n \t\nb\r\n\xef\xbb\xbfc"
    assert list(split_lines(data)) == [(1, b"a"), (4, b"b\r"), (5, MARK + b"c")]
    assert list(split_lines(MARK + data)) == list(split_lines(data))
    # Of some lines of a file the mark is no mark, and they are counted on.
    assert list(split_lines(data, 7)) == [(7, b"a"), (10, b"b\r"), (11, MARK + b"c")]
    assert list(split_lines(MARK + b"a", 3)) == [(3, MARK + b"a")]
    assert list(split_lines(MARK)) == list(split_lines(b"")) == list(split_lines(b" \n")) == []


def test_lines_that_mention_something() -> None:
    decoder = msgspec.json.Decoder(Number)
    data = b'{"n":1}\nbroken\n{"n":2,"x":0}\n{"n":"x"}'
    assert [found.n for found in decode_lines(data, decoder, "p", 3, b'"x":')] == [2]
    with pytest.raises(CorruptTable) as caught:
        list(decode_lines(data, decoder, "p", 3, b'"x"'))
    assert "line 4 " in caught.value.message
    found = decode_lines(data, decoder, "p", 3)
    assert next(found).n == 1
    with pytest.raises(CorruptTable) as caught:
        next(found)
    assert (caught.value.code, caught.value.path, caught.value.version) == ("damaged-line", "p", 3)
    assert caught.value.message.startswith("line 2 of the log entry is damaged")
    assert decode_line(b'{"n":5}', decoder, 1, None, None).n == 5
