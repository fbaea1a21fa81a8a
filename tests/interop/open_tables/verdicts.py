"""Where another reader does not read what we wrote: what it says, and why that is right or its own fault.

A refusal of a table that is not listed fails the test, and so does an entry that is not met any more.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Verdict:
    """What a reader makes of tables, in some or all of their versions.

    Attributes:
        reader: Which one.
        tables: Of which tables.
        said: A pattern of its own message; or of `rows: ours | theirs` or `types: ours | theirs`, where it reads otherwise.
        why: What lies behind it.
    """

    reader: str
    tables: tuple[str, ...]
    said: str
    why: str


#: What the reader does not know, and says so.
REFUSED = (
    Verdict(
        "dataset",
        (
            "v2_checkpoint", "v2_checkpoint_with_a_classic_name", "v2_checkpoint_of_several_sidecars",
            "changed_rows_by_vectors", "vectors_in_files", "dropped_features", "mapped_names_as_a_feature", "widened",
            "vacuum_protocol_check", "everything_at_once", "odd_folder", "altered_without_spark",
        ),
        "but these are not yet supported by the deltalake reader",
        "deltalake's dataset knows no features of readers but timestamps without a zone and variants",
    ),
    Verdict(
        "query",
        ("widened", "everything_at_once"),
        "Unsupported table features required: .TypeWidening",
        "deltalake knows no widened types",
    ),
    Verdict(
        "query",
        ("vacuum_protocol_check",),
        "Unsupported table features required: .VacuumProtocolCheck",
        "a feature of readers by name, though it asks nothing of them",
    ),
    Verdict(
        "query",
        ("mapped_maps_of_structs",),
        "Cannot cast column 'col-.* from 'Map",
        "deltalake adds no fields to structs that are values of maps",
    ),
    Verdict("duckdb", ("void_column",), "Unsupported Delta table type: 'void'", "DuckDB's kernel has no such type"),
    Verdict("duckdb", ("variants",), "Unsupported Arrow type VARIANT", "it reads them, but has no Arrow for them: see `sql`"),
    Verdict(
        "duckdb",
        ("odd_folder",),
        "Cannot open file .*/a b 100|can't decode byte",
        "with % or letters beyond ASCII in the table's own path the extension asks for files at garbled ones",
    ),
)  # fmt: skip

#: Rows that it reads otherwise, and not by our doing: of the same tables by delta-spark 4.4 it makes the same, and
#: delta-spark reads in ours what we read.
WRONG = (
    Verdict(
        "dataset",
        (
            "mapped_names", "mapped_numbers", "mapped_maps_of_structs", "mapped_partitions", "mapped_later", "iceberg_compat",
            "altered_without_spark",
        ),
        "^rows: .*None|^rows: .* 0: $",
        "where column mapping goes by a legacy protocol it takes renamed columns for missing ones: delta-rs issue 930",
    ),
    Verdict(
        "duckdb",
        ("mapped_partitions", "iceberg_compat"),
        r"^rows: .*, \d, 'v\d+'\] \| .*, None, 'v\d+'\]$",
        "partition columns of mapped tables are null to it, or each other's: duckdb-delta issues 50 and 343",
    ),
    Verdict(
        "dataset",
        ("bounds_of_numbers",),
        "^rows: 3 . 1: .*nan",
        "not wrong: to Spark, DataFusion and DuckDB NaN is greater than all numbers, to pyarrow than none",
    ),
    Verdict(
        "query",
        ("changed_rows_by_vectors",),
        "^rows: 38 . 34: .*'delete', 4",
        "of a file that goes with its vector its change feed tells rows that were gone before; delta-spark reads it as we do",
    ),
)  # fmt: skip
