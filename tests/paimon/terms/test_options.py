"""Options by their names in Paimon's `CoreOptions`: defaults, older names, and which texts are values."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from alluvium.errors import InvalidRequest
from alluvium.paimon.terms import compaction_options, life_options
from alluvium.paimon.terms import options as o
from alluvium.paimon.terms.durations import ensure_duration, parse_duration
from alluvium.paimon.terms.life_options import keeps_changelogs
from alluvium.paimon.terms.option_values import wrong_values

#: What a table without any option has, by the specification's name; and the older names of the same.
DEFAULTS: list[tuple[str, object, tuple[str, ...]]] = [
    ("bucket", -1, ()),
    ("file.format", 'parquet', ()),
    ("merge-engine", 'deduplicate', ()),
    ("changelog-producer", 'none', ()),
    ("sequence.field", (), ()),
    ("sequence.field.sort-order", 'ascending', ()),
    ("chain-table.enabled", False, ()),
    ("rowkind.field", '', ()),
    ("upsert-key", (), ()),
    ("deletion-vectors.enabled", False, ()),
    ("deletion-vectors.modifiable", False, ()),
    ("deletion-vectors.bitmap64", False, ()),
    ("deletion-vectors.merge-on-read", False, ()),
    ("row-tracking.enabled", False, ()),
    ("data-evolution.enabled", False, ()),
    ("ignore-delete", False, ('first-row.ignore-delete', 'deduplicate.ignore-delete', 'partial-update.ignore-delete')),
    ("ignore-update-before", False, ()),
    ("partial-update.remove-record-on-delete", False, ()),
    ("aggregation.remove-record-on-delete", False, ()),
    ("partial-update.remove-record-on-sequence-group", (), ()),
    ("streaming-read-overwrite", False, ()),
    ("streaming-read-append-overwrite", False, ()),
    ("snapshot.num-retained.min", 10, ()),
    ("snapshot.num-retained.max", 2147483647, ()),
    ("changelog.num-retained.min", None, ()),
    ("changelog.num-retained.max", None, ()),
    ("record-level.expire-time", None, ()),
    ("record-level.time-field", '', ()),
    ("blob-descriptor-field", (), ('blob.stored-descriptor-fields',)),
    ("blob-external-storage-field", (), ()),
    ("blob-view-field", (), ()),
    ("vector-field", (), ()),
    ("clustering.columns", (), ('sink.clustering.by-columns',)),
    ("clustering.incremental", False, ()),
    ("bucket-append-ordered", True, ()),
    ("pk-clustering-override", False, ()),
    ("table-read.sequence-number.enabled", False, ()),
    ("alter-column-null-to-not-null.disabled", True, ()),
    ("disable-explicit-type-casting", False, ()),
    ("add-column-before-partition", False, ()),
    ("scan.mode", 'default', ('log.scan',)),
    ("scan.fallback-branch", '', ()),
    ("num-sorted-run.compaction-trigger", 5, ()),
    ("num-levels", None, ()),
    ("file.compression", 'zstd', ()),
    ("file.block-size", None, ()),
    ("orc.timestamp-ltz.legacy.type", True, ()),
    ("file.compression.zstd-level", 1, ()),
    ("target-file-size", 268435456, ()),
    ("source.split.open-file-cost", 4194304, ()),
    ("compaction.min.file-num", 5, ()),
    ("compaction.delete-ratio-threshold", 0.2, ()),
    ("data-file.path-directory", '', ()),
    ("index-file-in-data-file-dir", False, ()),
    ("partition.default-name", '__DEFAULT_PARTITION__', ()),
    ("partition.legacy-name", True, ()),
    ("data-file.thin-mode", False, ()),
    ("dynamic-bucket.target-row-num", 2000000, ()),
    ("dynamic-bucket.max-buckets", -1, ()),
    ("postpone.target-row-num-per-bucket", None, ()),
    ("postpone.default-bucket-num", 1, ()),
    ("write-only", False, ('write.compaction-skip',)),
    ("sequence.snapshot-ordering", False, ()),
    ("force-lookup", False, ()),
    ("data-file.prefix", 'data-', ()),
    ("primary-key.nullable", False, ()),
    ("data-file.external-paths", '', ()),
    ("bucket-function.type", 'default', ()),
    ("manifest.format", 'avro', ()),
    ("manifest.compression", 'zstd', ()),
    ("manifest.target-file-size", 8388608, ()),
    ("manifest.merge-min-count", 30, ()),
    ("metadata.stats-mode", 'truncate(16)', ()),
    ("metadata.stats-dense-store", True, ()),
    ("metadata.stats-keep-first-n-columns", -1, ()),
    ("snapshot.time-retained", 3600000, ()),
    ("snapshot.expire.limit", 50, ()),
    ("changelog.time-retained", None, ()),
    ("snapshot.clean-empty-directories", False, ('snapshot.expire.clean-empty-directories',)),
    ("consumer.expiration-time", None, ()),
    ("partition.expiration-time", None, ()),
    ("partition.expiration-strategy", 'values-time', ()),
    ("partition.expiration-max-num", 100, ()),
    ("partition.timestamp-pattern", None, ()),
    ("partition.timestamp-formatter", None, ()),
    ("partition.mark-done-action", ('success-file',), ()),
    ("tag.automatic-creation", 'none', ()),
    ("tag.creation-period", 'daily', ()),
    ("tag.creation-period-duration", None, ()),
    ("tag.creation-delay", 0, ()),
    ("tag.period-formatter", 'with_dashes', ()),
    ("tag.num-retained-max", None, ()),
    ("tag.default-time-retained", None, ()),
    ("tag.time-expire-enabled", True, ()),
    ("tag.automatic-completion", False, ()),
    ("sink.watermark-time-zone", 'UTC', ()),
    ("compaction.max-size-amplification-percent", 200, ()),
    ("compaction.size-ratio", 1, ()),
    ("compaction.optimization-interval", None, ()),
    ("compaction.total-size-threshold", None, ()),
    ("compaction.incremental-size-threshold", None, ()),
    ("full-compaction.delta-commits", None, ()),
    ("compaction.force-up-level-0", False, ()),
    ("compaction.force-rewrite-all-files", False, ()),
    ("target-file-size", 134217728, ()),
    ("changelog-producer.row-deduplicate", False, ()),
    ("changelog-producer.row-deduplicate-ignore-fields", (), ()),
    ("changelog-file.prefix", 'changelog-', ()),
]  # fmt: skip


def options() -> list[o.Option[object]]:
    modules = (o, life_options, compaction_options)
    found = {id(one): one for module in modules for one in vars(module).values() if isinstance(one, o.Option)}
    return list(found.values())


def test_names_and_defaults() -> None:
    """They stand in schema files: another name is an option that nobody has set."""
    assert [(one.key, one.default, one.fallback_keys) for one in options()] == DEFAULTS
    for one in options():
        assert one.get({}) == one.default and not one.is_set({"other": "x"})


#: Values of each form, as an option's text, and texts that are none.
FORMS: dict[str, tuple[list[tuple[str, object]], list[str]]] = {
    "flag": ([("true", True), (" FALSE ", False)], ["", "yes", "1", "truex"]),
    "number": ([("7", 7), ("+5", 5), ("10", 10)], ["", "x", "1.5", "1_0", "99999999999999999999"]),
    "size": ([("7", 7), ("1 kb", 1024), ("8MB", 8 << 20), ("2 gibibytes", 2 << 30), ("1t", 1 << 40), ("3 m", 3 << 20), ("5 b", 5)],
             ["", "mb", "1 pb", "-1 mb", "1.5 mb"]),
    "duration": ([("7", 7), ("2 d", 172_800_000), ("3H", 10_800_000), ("5 min", 300_000), ("5m", 300_000), ("9 s", 9_000), ("1 ms", 1),
                  ("1999 µs", 1), ("2000000 ns", 2)], ["", "h", "1 y", "-1 h", "1.5 d"]),
    "names": ([("a, b,,c", ("a", "b", "c")), ("", ())], []),
}  # fmt: skip
OF_FORM = {
    "flag": ["write-only", "deletion-vectors.enabled", "lookup-wait", "commit.force-compact", "commit.force-create-snapshot",
             "metastore.partitioned-table", "end-input.check-partition-expire", "write-buffer-spillable", "async-file-write",
             "tag.create-success-file", "write-buffer-for-append", "fields.k.ignore-retract", "first-row.ignore-delete",
             "write.compaction-skip", "snapshot.expire.clean-empty-directories"],
    "number": ["num-sorted-run.stop-trigger", "full-compaction.delta-commits", "sort-spill-threshold", "read.batch-size",
               "write.batch-size", "commit.max-retries", "bucket", "snapshot.num-retained.min", "manifest.compression.zstd-level",
               "file.compression.zstd-level", "num-levels", "num-sorted-run.compaction-trigger", "postpone.default-bucket-num",
               "dynamic-bucket.target-row-num", "dynamic-bucket.max-buckets", "postpone.target-row-num-per-bucket"],
    "size": ["source.split.target-size", "write-buffer-size", "page-size", "cache-page-size", "local-merge-buffer-size",
             "deletion-vector.index-file.target-size", "lookup.cache-max-memory-size", "lookup.cache-max-disk-size",
             "sort-spill-buffer-size", "write-buffer-spill.max-disk-size", "file-reader-async-threshold", "target-file-size"],
    "duration": ["partition.expiration-check-interval", "partition.idle-time-to-done", "continuous.discovery-interval",
                 "lookup.cache-file-retention", "commit.timeout", "snapshot.time-retained", "tag.creation-delay"],
}  # fmt: skip
CODECS = ["none", "null", "uncompressed", "snappy", "gzip", "lzo", "brotli", "lz4", "lz4_raw", "lz4_hadoop", "zstd", "zstandard",
          "zlib", "deflate", "bzip2", "xz"]  # fmt: skip
WORDS = {
    "merge-engine": ["deduplicate", "partial-update", "aggregation", "first-row"],
    "changelog-producer": ["none", "input", "full-compaction", "lookup"],
    "sequence.field.sort-order": ["ascending", "descending"],
    "partition.expiration-strategy": ["values-time", "update-time"],
    "tag.automatic-creation": ["none", "process-time", "watermark", "batch"],
    "tag.creation-period": ["daily", "hourly", "two-hours"],
    "tag.period-formatter": ["with_dashes", "without_dashes", "without_dashes_and_spaces"],
    "snapshot.expire.execution-mode": ["sync", "async"],
    "incremental-between-scan-mode": ["auto", "delta", "changelog", "diff"],
    "manifest.format": ["avro", "parquet", "orc"],
    **dict.fromkeys(("file.compression", "changelog-file.compression", "manifest.compression"), CODECS),
}  # fmt: skip
BY_KEY = {one.key: one for one in options()}


@pytest.mark.parametrize(("form", "key"), [(form, key) for form, keys in OF_FORM.items() for key in keys])
def test_values_and_what_is_none(form: str, key: str) -> None:
    values, wrong = FORMS[form]
    for text, value in values:
        assert list(wrong_values({key: text})) == []
        if key in BY_KEY:
            assert BY_KEY[key].get({key: text}) == value and BY_KEY[key].is_set({key: text})
    for text in wrong:
        ((found, message),) = wrong_values({"other": "y", key: text})
        assert found == key and key in message and repr(text) in message
        if key in BY_KEY and form != "number":
            with pytest.raises(InvalidRequest) as caught:
                BY_KEY[key].get({key: text})
            assert caught.value.code == "invalid-table-option"


@pytest.mark.parametrize("key", WORDS)
def test_words(key: str) -> None:
    for word in WORDS[key]:
        for text in (word, word.upper(), word.replace("-", "_"), f" {word} "):
            assert list(wrong_values({key: text})) == []
            if key in BY_KEY and key not in ("file.compression", "manifest.compression", "manifest.format"):
                assert BY_KEY[key].get({key: text}) == word
        assert [found for found, _ in wrong_values({key: f"{word}x"})] == [key]
    assert [found for found, _ in wrong_values({key: ""})] == [key]


@pytest.mark.parametrize(
    ("key", "least", "most"),
    [("num-levels", 2, None), ("num-sorted-run.compaction-trigger", 1, None), ("dynamic-bucket.target-row-num", 1, 2**63 - 1),
     ("dynamic-bucket.max-buckets", -1, 2**31 - 1), ("postpone.default-bucket-num", 1, None),
     ("postpone.target-row-num-per-bucket", 1, 2**63 - 1), ("file.compression.zstd-level", -131072, 22), ("bucket", -(2**31), 2**31 - 1)],
)  # fmt: skip
def test_bounds(key: str, least: int, most: int | None) -> None:
    for value, good in ((least, True), (least - 1, False), (most or 100, True), ((most or 2**31 - 1) + 1, False)):
        assert (list(wrong_values({key: str(value)})) == []) == good
    assert bool(list(wrong_values({key: "0"}))) == (least > 0 or key == "dynamic-bucket.max-buckets")


@pytest.mark.parametrize("key", ["metadata.stats-mode", "changelog-file.stats-mode", "fields.k.stats-mode"])
def test_modes_of_statistics(key: str) -> None:
    for text in ("none", "Counts", " full ", "truncate(1)", "TRUNCATE(16)", "truncate(0016)", "truncate(999999999)"):
        assert list(wrong_values({key: text})) == []
    for text in (
        "",
        "all",
        "truncate",
        "truncate()",
        "truncate(0)",
        "truncate(-1)",
        "truncate(9999999999)",
        "truncate(1) "[:-1] + "x",
    ):
        assert [found for found, _ in wrong_values({key: text})] == [key]


def test_older_names_count_where_the_newer_one_is_not_set() -> None:
    for one in options():
        for older in one.fallback_keys:
            value = "true" if isinstance(one.default, bool) else "full"
            assert one.is_set({older: value}) and one.get({older: value}) == one.parse(value)
            other = "false" if isinstance(one.default, bool) else "default"
            assert one.get({one.key: other, older: value}) == one.parse(other)


def test_options_that_nobody_knows_are_left_alone() -> None:
    assert list(wrong_values({"owner": "?", "fields.k.other": "x", "ignore-retract": "x"})) == []


@settings(max_examples=60, derandomize=True)
@given(
    st.integers(0, 10**6),
    st.sampled_from(
        [("d", 86_400_000), ("days", 86_400_000), ("hours", 3_600_000), ("minutes", 60_000), ("sec", 1000), ("", 1)]
    ),
    st.sampled_from(["", " ", "   "]),
)
def test_durations(count: int, unit: tuple[str, int], blank: str) -> None:
    text = f"{blank}{count}{blank}{unit[0]}"
    assert parse_duration(text) == parse_duration(text.upper()) == ensure_duration("x", text) == count * unit[1]
    with pytest.raises(InvalidRequest) as caught:
        ensure_duration("what", f"-{text.strip()}")
    assert caught.value.code == "invalid-duration" and "what" in caught.value.message


@pytest.mark.parametrize(
    ("options", "kept"),
    [
        ({}, False),
        ({"changelog.num-retained.min": "11"}, True),
        ({"changelog.num-retained.min": "10"}, False),
        ({"snapshot.num-retained.max": "20", "changelog.num-retained.max": "21"}, True),
        ({"changelog.num-retained.max": "5"}, False),
        ({"changelog.time-retained": "61 min"}, True),
        ({"changelog.time-retained": "1 h"}, False),
    ],
)
def test_changelogs_that_outlive_their_snapshots(options: dict[str, str], kept: bool) -> None:
    assert keeps_changelogs(options) == kept


def test_levels_and_sizes() -> None:
    assert compaction_options.num_levels({}) == 6
    assert compaction_options.num_levels({"num-sorted-run.compaction-trigger": "3"}) == 4
    assert compaction_options.num_levels({"num-levels": "9"}) == 9
    assert compaction_options.target_size({}) == 128 << 20
    assert compaction_options.large_size({"target-file-size": "1000 b"}) == 700
    for options, wanted in (
        ({}, False), ({"changelog-producer": "lookup"}, True), ({"changelog-producer": "full-compaction"}, False),
        ({"deletion-vectors.enabled": "true"}, True), ({"merge-engine": "first-row"}, True), ({"force-lookup": "true"}, True),
    ):  # fmt: skip
        assert compaction_options.needs_lookup(options) == wanted
        assert compaction_options.makes_changelog_of_lookups(options) == (options.get("changelog-producer") == "lookup")


@pytest.mark.parametrize(
    ("every", "number", "is_due"),
    [
        (None, None, False), (None, 0, False), ("1", None, True), ("5", None, True), ("0", None, False), ("0", 3, False),
        ("1", 0, True), ("1", 7, True), ("3", 0, False), ("3", 1, False), ("3", 2, True), ("3", 3, False), ("3", 5, True),
    ],
)  # fmt: skip
def test_when_a_writer_compacts_in_full(every: str | None, number: int | None, is_due: bool) -> None:
    options = {} if every is None else {"full-compaction.delta-commits": every}
    assert compaction_options.is_full_due(options, number) is is_due


#: What files were written by: such options stay as they are once the table holds data.
IMMUTABLE = """
aggregation.remove-record-on-delete blob-descriptor-field blob-external-storage-field blob-external-storage-path
bucket-function.type bucket-key data-evolution.enabled data-file.path-directory force-lookup index-file-in-data-file-dir
merge-engine partial-update.remove-record-on-delete partial-update.remove-record-on-sequence-group partition
pk-clustering-override primary-key primary-key.nullable row-tracking.enabled rowkind.field
"""


def refusal(options: dict[str, str], key: str, value: str | None) -> str | None:
    try:
        o.ensure_option_may_change(options, key, value)
    except InvalidRequest as error:
        assert key in str(error) or key.startswith(("bucket", "deletion"))
        return error.code
    return None


@pytest.mark.parametrize("key", IMMUTABLE.split())
def test_options_that_stay(key: str) -> None:
    for options, value, code in (
        ({}, "x", "immutable-option"), ({key: "y"}, "x", "immutable-option"), ({key: "y"}, None, "immutable-option"),
        ({}, None, "immutable-option"), ({key: "x"}, "x", None),
    ):  # fmt: skip
        assert refusal(options, key, value) == code
    assert frozenset(IMMUTABLE.split()) == o.IMMUTABLE_OPTIONS


BUCKETS = "bucket-change"
VECTORS = "deletion-vectors-change"
IGNORED = "ignore-delete-change"


@pytest.mark.parametrize(
    ("options", "key", "value", "code"),
    [
        ({"bucket": "2"}, "bucket", "4", None), ({"bucket": "2"}, "bucket", "2", None), ({"bucket": "2"}, "bucket", None, BUCKETS),
        ({"bucket": "2"}, "bucket", "-1", BUCKETS), ({"bucket": "-1"}, "bucket", "4", BUCKETS), ({}, "bucket", "4", BUCKETS),
        ({}, "bucket", None, BUCKETS), ({"bucket": "-1"}, "bucket", "-1", None), ({"bucket": "2"}, "bucket", "-2", None),
        ({}, "deletion-vectors.enabled", "true", VECTORS), ({}, "deletion-vectors.enabled", " TRUE ", VECTORS),
        ({}, "deletion-vectors.enabled", "false", None), ({}, "deletion-vectors.enabled", None, None),
        ({"deletion-vectors.enabled": "true"}, "deletion-vectors.enabled", None, VECTORS),
        ({"deletion-vectors.enabled": "true"}, "deletion-vectors.enabled", "false", VECTORS),
        ({"deletion-vectors.enabled": "true"}, "deletion-vectors.enabled", "TRUE", None),
        ({"deletion-vectors.enabled": "true", "deletion-vectors.modifiable": "true"}, "deletion-vectors.enabled", "false", None),
        ({"deletion-vectors.modifiable": "true"}, "deletion-vectors.enabled", "true", None),
        *(
            case
            for key in ("ignore-delete", "ignore-update-before")
            for case in (
                ({key: "true"}, key, "false", IGNORED), ({key: " TRUE"}, key, "false", IGNORED), ({key: "true"}, key, " True ", None),
                ({key: "true"}, key, None, None), ({}, key, "true", None), ({key: "false"}, key, "true", None), ({}, key, "false", None),
                ({key: "false"}, key, "FALSE", None),
            )
        ),
        ({}, "clustering.columns", "a", None), ({"pk-clustering-override": "false"}, "clustering.columns", "a", "immutable-option"),
        ({"pk-clustering-override": "true"}, "clustering.columns", None, "immutable-option"),
        ({"pk-clustering-override": "true", "clustering.columns": "a"}, "clustering.columns", "a", None),
        ({}, "anything", "x", None), ({"anything": "x"}, "anything", None, None),
    ],
)  # fmt: skip
def test_options_that_change_under_conditions(
    options: dict[str, str], key: str, value: str | None, code: str | None
) -> None:
    assert refusal(options, key, value) == code


@pytest.mark.parametrize(
    ("unit", "bits"),
    [(name, bits) for bits, names in enumerate([["", "b", "bytes"], ["k", "kb", "kibibytes"], ["m", "mb", "mebibytes"], ["g", "gb", "gibibytes"],
                                               ["t", "tb", "tebibytes"]]) for name in names],
)  # fmt: skip
def test_units_of_sizes(unit: str, bits: int) -> None:
    for text in (f"3{unit}", f" 3 {unit.upper()} ", f"03  {unit.title()}"):
        assert o.parse_size(text) == 3 << (10 * bits)
    for wrong in (f"3{unit}x", f"{unit}", f"-3{unit}", f"3.0{unit}", f"3 {unit} 4"):
        with pytest.raises(ValueError, match="size"):
            o.parse_size(wrong)


@pytest.mark.parametrize(
    "mode",
    ["default", "latest-full", "full", "latest", "compacted-full", "from-timestamp", "from-creation-timestamp", "from-file-creation-time",
     "from-snapshot", "from-snapshot-full", "incremental"],
)  # fmt: skip
def test_modes_of_scans(mode: str) -> None:
    for key in ("scan.mode", "log.scan"):
        assert o.SCAN_MODE.get({key: mode.upper()}) == mode
        with pytest.raises(InvalidRequest):
            o.SCAN_MODE.get({key: f"{mode}x"})
