"""Actions of a commit and the log entry they become: `assemble`, `actions`, `partitions`, `winners`."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal

import msgspec
import pyarrow as pa
import pytest
from delta_values import LEGACY, make_config, make_draft, make_files, make_metadata, make_stats, removal_of
from hypothesis import given
from hypothesis import strategies as st

from alluvium.delta.commit.assemble import assemble
from alluvium.delta.commit.draft import Draft
from alluvium.delta.commit.winners import read_winners
from alluvium.delta.features.feature import CommitContext
from alluvium.delta.log.names import commit_path
from alluvium.delta.terms.actions import Actions, format_entry, format_file_actions, tombstones_of, total
from alluvium.delta.terms.spec import FILES, TOMBSTONES, Add, CommitInfo, DomainMetadata, Remove, Txn, parse_actions
from alluvium.delta.view.partitions import partition_constants, partition_keys, partitions_predicate
from alluvium.errors import CorruptTable, InvalidRequest
from alluvium.plan.changes import Operation, ReadScope
from alluvium.schema.types import DATE, DOUBLE, LONG, STRING, Field, Struct
from alluvium.schema.types import Decimal as DecimalType
from alluvium.storage.stores.memory import MemoryStore


def lines(entry: bytes) -> list[dict[str, dict[str, object]]]:
    return [msgspec.json.decode(line) for line in entry.splitlines()]


def test_an_entry_is_one_document_a_line_with_the_commit_info_first():
    """ "Delta files use new-line delimited JSON format, where every action is stored as a single line JSON document." """
    files = make_files({"path": "a", "stats": make_stats(1, 2)}, {"path": "b"})
    actions = Actions(
        protocol=LEGACY,
        metadata=make_metadata(),
        added=files,
        removed=removal_of(make_files({"path": "c\nd"})),
        txns=(Txn(app_id="app", version=7),),
        domains=(DomainMetadata(domain="d", configuration="{}", removed=False),),
    )
    entry = format_entry({"operation": "WRITE"}, actions)
    assert entry.endswith(b"}\n")
    assert [next(iter(line)) for line in lines(entry)] == [
        "commitInfo", "metaData", "protocol", "txn", "domainMetadata", "add", "add", "remove",
    ]  # fmt: skip


def test_nulls_are_left_out_and_null_partition_values_are_kept():
    files = make_files({"path": "a", "partitionValues": {"p": None, "q": "1"}})
    (line,) = format_file_actions("add", files)
    assert msgspec.json.decode(line) == {
        "add": {
            "path": "a",
            "partitionValues": {"p": None, "q": "1"},
            "size": 1,
            "modificationTime": 0,
            "dataChange": True,
        }
    }


def test_a_deletion_vector_is_written_without_its_nulls():
    vector = {"storageType": "i", "pathOrInlineDv": "abc", "offset": None, "sizeInBytes": 3, "cardinality": 1}
    (line,) = format_file_actions("add", make_files({"path": "a", "deletionVector": vector}))
    assert "offset" not in msgspec.json.decode(line)["add"]["deletionVector"]


def test_a_tombstone_has_all_that_extended_metadata_promises():
    """ "When `true` the fields `partitionValues`, `size`, and `tags` are present" """
    files = make_files({"path": "a", "size": 9, "partitionValues": {"p": "x"}, "tags": [("k", "v")], "baseRowId": 4})
    removed = tombstones_of(files, 123, data_change=False)
    assert removed.schema == TOMBSTONES
    (action,) = parse_actions(b"\n".join(format_file_actions("remove", removed)))
    assert action == Remove(
        path="a", deletion_timestamp=123, data_change=False, extended_file_metadata=True,
        partition_values={"p": "x"}, size=9, tags={"k": "v"}, base_row_id=4,
    )  # fmt: skip


@given(
    st.lists(
        st.tuples(
            st.text(min_size=1), st.integers(0, 2**62), st.dictionaries(st.text(), st.none() | st.text(), max_size=2)
        ),
        max_size=5,
    )
)
def test_what_is_written_is_what_is_read(rows: list[tuple[str, int, dict[str, str | None]]]):
    files = make_files(*({"path": path, "size": size, "partitionValues": values} for path, size, values in rows))
    read = parse_actions(format_entry({"operation": "é\n"}, Actions(added=files)))
    assert read[0] == CommitInfo({"operation": "é\n"})
    assert read[1:] == [
        Add(path=path, partition_values=values, size=size, modification_time=0, data_change=True)
        for path, size, values in rows
    ]


def test_the_total_of_nothing_is_zero():
    assert total(FILES.empty_table().column("size")) == 0
    assert total(make_files({"path": "a", "size": 2}, {"path": "b", "size": 3}).column("size")) == 5


def test_the_entry_goes_to_the_version_after_the_base():
    entry = assemble(
        make_draft(Actions(added=make_files({"path": "a"})), read_version=41),
        CommitContext(make_config(), version=42, now_ms=1_234),
    )
    assert (entry.version, entry.path) == (42, "_delta_log/00000000000000000042.json")
    info = lines(entry.data)[0]["commitInfo"]
    assert list(info) == [
        "timestamp", "operation", "operationParameters", "readVersion", "isolationLevel", "isBlindAppend",
        "operationMetrics", "engineInfo", "txnId",
    ]  # fmt: skip
    assert (info["timestamp"], info["readVersion"], info["isBlindAppend"]) == (1_234, 41, True)


def test_a_table_s_first_commit_has_read_no_version():
    actions = Actions(protocol=LEGACY, metadata=make_metadata())
    info = lines(assemble(make_draft(actions, read_version=-1), CommitContext(make_config())).data)[0]["commitInfo"]
    assert "readVersion" not in info


def test_assembling_anew_keeps_the_draft_s_identity():
    draft = make_draft(Actions(added=make_files({"path": "a"})))
    first, second = (
        lines(assemble(draft, CommitContext(make_config(), version=base)).data)[0]["commitInfo"] for base in (0, 5)
    )
    assert first == second
    assert make_draft(Actions()).txn_id != make_draft(Actions()).txn_id


def test_user_metadata_stands_in_the_commit_info():
    draft = Draft(Actions(), ReadScope.nothing(), Operation("WRITE", user_metadata="nightly"), 0)
    assert (
        lines(assemble(draft, CommitContext(make_config(), version=1)).data)[0]["commitInfo"]["userMetadata"]
        == "nightly"
    )


@pytest.mark.parametrize(
    ("read", "removes", "blind"),
    [(ReadScope.nothing(), False, True), (ReadScope.table(), False, False), (ReadScope.nothing(), True, False)],
)
def test_a_blind_append_has_neither_read_nor_removed(read: ReadScope, removes: bool, blind: bool):
    removed = removal_of(make_files({"path": "a"})) if removes else removal_of(make_files())
    assert make_draft(Actions(removed=removed), read).is_blind_append is blind


def test_features_look_at_what_is_committed():
    config = make_config(properties={"delta.appendOnly": "true"})
    draft = make_draft(Actions(removed=removal_of(make_files({"path": "a"}))))
    with pytest.raises(InvalidRequest) as caught:
        assemble(draft, CommitContext(config, version=1))
    assert caught.value.code == "append-only"


TYPED = Struct(
    (Field("id", LONG), Field("d", DATE), Field("n", DecimalType(4, 1)), Field("f", DOUBLE), Field("s", STRING))
)


def partitioned(*values: dict[str, str | None]) -> pa.Table:
    return make_files(*({"path": str(i), "partitionValues": v} for i, v in enumerate(values)))


def test_partition_values_are_typed_by_the_schema():
    config = make_config(TYPED, ["d", "n", "s"])
    found = partition_constants(
        partitioned({"d": "2024-02-29", "n": "1.5", "s": "x"}, {"d": None, "n": "", "s": ""}), config, "UTC"
    )
    assert found.to_pylist() == [
        {"d": dt.date(2024, 2, 29), "n": Decimal("1.5"), "s": "x"},
        # "An empty string for any type translates to a `null` partition value."
        {"d": None, "n": None, "s": None},
    ]


def test_a_partition_value_that_is_none_of_the_type_is_reported():
    with pytest.raises(CorruptTable) as caught:
        partition_constants(partitioned({"d": "soon"}), make_config(TYPED, ["d"]), "UTC")
    assert caught.value.code == "invalid-partition-value"


def test_keys_are_equal_for_equal_values_however_they_are_written():
    config = make_config(TYPED, ["n", "s"])
    keys = partition_keys(
        partitioned({"n": "1.50", "s": "x"}, {"n": "1.5", "s": "x"}, {"n": "1.5", "s": "y"}), config, "UTC"
    )
    one, same, other = keys.to_pylist()
    assert one == same != other


texts = st.none() | st.text(alphabet="ab\x00nv:1", min_size=1, max_size=4)


@given(st.tuples(texts, texts), st.tuples(texts, texts))
def test_keys_tell_all_pairs_of_values_apart(one: tuple[str | None, str | None], other: tuple[str | None, str | None]):
    config = make_config(Struct((Field("id", LONG), Field("a", STRING), Field("b", STRING))), ["a", "b"])
    rows = [{"a": a, "b": b} for a, b in (one, other)]
    first, second = partition_keys(partitioned(*rows), config, "UTC").to_pylist()
    assert (first == second) == (one == other)


def test_without_partition_columns_all_files_have_one_key():
    assert len(set(partition_keys(partitioned({}, {}), make_config(), "UTC").to_pylist())) == 1


def test_the_predicate_of_partitions_is_true_in_them_alone():
    config = make_config(TYPED, ["d", "s"])
    files = partitioned({"d": "2024-01-01", "s": "x"}, {"d": "2024-01-01", "s": "x"}, {"d": None, "s": "y"})
    predicate = partitions_predicate(files, config, "UTC")
    assert predicate is not None
    text = repr(predicate)
    assert text.count("<=>") == 4
    assert "datetime.date(2024, 1, 1)" in text


def test_too_many_partitions_or_none_have_no_predicate():
    config = make_config(TYPED, ["s"])
    assert partitions_predicate(partitioned(), config, "UTC") is None
    assert partitions_predicate(partitioned(*({"s": str(n)} for n in range(501))), config, "UTC") is None
    assert partitions_predicate(partitioned(*({"s": str(n)} for n in range(500))), config, "UTC") is not None


def test_winners_are_read_as_the_conflict_rules_want_them():
    store = MemoryStore("winners", "/t")
    files = make_files({"path": "a", "partitionValues": {"p": None}, "tags": [("k", "v")]})
    store.put(
        commit_path(3),
        format_entry({"timestamp": 5, "operation": "WRITE", "isBlindAppend": True}, Actions(added=files)),
    )
    store.put(
        commit_path(4),
        format_entry(
            {"engineInfo": "else"},
            Actions(LEGACY, make_metadata(), removed=removal_of(files), txns=(Txn(app_id="a", version=1),)),
        ),
    )
    first, second = read_winners(store, 3, 4)
    assert (first.version, first.operation, first.timestamp_ms, first.is_blind_append) == (3, "WRITE", 5, True)
    assert first.actions.added.equals(files)
    assert (second.engine, second.is_blind_append, second.actions.protocol) == ("else", False, LEGACY)
    assert second.actions.metadata == make_metadata()
    assert second.actions.removed.column("path").to_pylist() == ["a"]
    assert second.actions.txns == (Txn(app_id="a", version=1),)


def test_a_winner_without_commit_info_is_read_all_the_same():
    store = MemoryStore("winners-bare", "/t")
    store.put(commit_path(0), b'{"txn":{"appId":"a","version":1}}\n')
    (winner,) = read_winners(store, 0, 0)
    assert (winner.operation, winner.is_blind_append) == (None, False)
