"""The schema that a data file has itself."""

from __future__ import annotations

import re

import pyarrow as pa
import pyarrow.parquet as pq

from alluvium.delta.view.snapshot import Snapshot
from alluvium.errors import CorruptTable
from alluvium.storage.paths import split_file

_OUTSIDE = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:|/")


def read_stored_schema(snapshot: Snapshot, path: str) -> pa.Schema:
    """The columns in the file of a path, as scan plans name it.

    Raises:
        CorruptTable: It cannot be read (`damaged-file`).
    """
    if _OUTSIDE.match(path):
        directory, name = split_file(path)
        store = snapshot.open_store(directory)
    else:
        store, name = snapshot.store, path
    try:
        with store.open_input(name) as file:
            return pq.read_schema(file)
    except (pa.ArrowException, OSError) as error:
        raise CorruptTable(f"a data file cannot be read: {error}", code="damaged-file", path=path) from None
