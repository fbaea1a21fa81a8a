"""Reading as a stream stays within a fixed memory, however large the table is."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from plain_writer import commit_rows, open_target

from alluvium.storage.open import open_store

FILES, ROWS = 24, 400_000

READ = """
import sys, pyarrow as pa, alluvium
rows = sum(batch.num_rows for batch in alluvium.open(sys.argv[1]).to_batches())
print(rows, pa.default_memory_pool().max_memory())
"""


@pytest.mark.slow
def test_peak_memory_does_not_grow_with_the_table(tmp_path: Path) -> None:
    def peak(files: int) -> tuple[int, int]:
        url = str(tmp_path / str(files))
        commit_rows(open_target(open_store(url)), [0])
        log = Path(url, "_delta_log")
        generator = np.random.default_rng(1)
        adds = []
        for n in range(files):
            data = pa.table({"id": generator.integers(0, 2**60, ROWS), "p": [f"{n} {i}" for i in range(ROWS)]})
            pq.write_table(data, Path(url, f"{n}.parquet"), row_group_size=50_000)
            size = Path(url, f"{n}.parquet").stat().st_size
            adds.append(
                f'{{"add":{{"path":"{n}.parquet","partitionValues":{{}},"size":{size},"modificationTime":0,"dataChange":true}}}}'
            )
        (log / f"{1:020d}.json").write_text("\n".join(adds) + "\n")
        out = subprocess.run([sys.executable, "-c", READ, url], capture_output=True, text=True, check=True).stdout
        rows, memory = map(int, out.split())
        return rows, memory

    few_rows, few = peak(2)
    many_rows, many = peak(FILES)
    assert (few_rows, many_rows) == (2 * ROWS + 1, FILES * ROWS + 1)
    assert many < 1.5 * few, f"{few} bytes for 2 files, {many} for {FILES}"
