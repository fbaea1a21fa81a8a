"""What a task's failure to read a file means, told from what Spark and its causes say."""

from __future__ import annotations

import pytest

from alluvium.errors import CorruptTable, NotFound
from alluvium.spark.jvm.failures import NOT_THERE, error_of_file

ROOT, FILE = "file:///t", "file:/t/bucket-0/data-1.parquet"


@pytest.mark.parametrize(
    ("condition", "cause"),
    [
        (NOT_THERE, "org.apache.spark.SparkException: File does not exist."),
        # Another process removed it after Hadoop had looked at it, before it was opened.
        ("NO_HINT", f"java.nio.file.NoSuchFileException: {FILE.removeprefix('file:')}"),
        ("NO_HINT", f"java.io.FileNotFoundException: File {FILE} does not exist"),
    ],
)
def test_a_file_that_is_gone_is_missing_and_not_damaged(condition: str, cause: str) -> None:
    error = error_of_file(condition, ["org.apache.spark.SparkException: Job aborted", cause], ROOT, FILE)
    assert isinstance(error, NotFound)
    assert (error.code, error.url, error.path) == ("missing-file", ROOT, FILE)


def test_a_file_that_is_there_is_damaged_whatever_its_bytes_are_called() -> None:
    cause = f"java.lang.RuntimeException: {FILE} is not a Parquet file, said java.io.FileNotFoundException"
    error = error_of_file("NO_HINT", ["org.apache.spark.SparkException: Job aborted", cause], ROOT, FILE)
    assert isinstance(error, CorruptTable)
    assert (error.code, error.path) == ("damaged-file", FILE)
