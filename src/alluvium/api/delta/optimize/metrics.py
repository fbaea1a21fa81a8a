"""What OPTIMIZE answers: one row, in delta-spark's columns, whoever shows it."""

from __future__ import annotations

from collections.abc import Sequence

from alluvium.commands.optimize.outcome import Optimized
from alluvium.delta.upkeep.clustering.zcubes import CubeFigures
from alluvium.schema import types as t
from alluvium.schema.types import Array, DataType, Field, Struct

_TEXT, _LONG = t.STRING, t.LONG


def _struct(**members: DataType) -> Struct:
    """Members of numbers are never null, as in delta-spark, but for those of `_maybe`."""
    return Struct(tuple(Field(name, kind, isinstance(kind, Struct)) for name, kind in members.items()))


def _maybe(struct: Struct, *names: str) -> Struct:
    """The same, where members of these names may be null."""
    return Struct(tuple(Field(f.name, f.type, f.nullable or f.name in names) for f in struct.fields))


_FILES = _maybe(_struct(min=_LONG, max=_LONG, avg=t.DOUBLE, totalFiles=_LONG, totalSize=_LONG), "min", "max")
_COUNTED = _struct(num=_LONG, size=_LONG)
_CUBES = _struct(numFiles=_LONG, size=_LONG)
_Z_ORDER = _maybe(
    _struct(
        strategyName=_TEXT,
        inputCubeFiles=_COUNTED,
        inputOtherFiles=_COUNTED,
        inputNumCubes=_LONG,
        mergedFiles=_COUNTED,
        numOutputCubes=_LONG,
        mergedNumCubes=_LONG,
    ),
    "strategyName",
    "mergedNumCubes",
)
_CLUSTERING = _struct(
    inputZCubeFiles=_CUBES, inputOtherFiles=_CUBES, inputNumZCubes=_LONG, mergedFiles=_CUBES, numOutputZCubes=_LONG
)
_PARALLELISM = _struct(
    maxClusterActiveParallelism=_LONG,
    minClusterActiveParallelism=_LONG,
    maxSessionActiveParallelism=_LONG,
    minSessionActiveParallelism=_LONG,
)
METRICS = _struct(
    numFilesAdded=_LONG,
    numFilesRemoved=_LONG,
    filesAdded=_FILES,
    filesRemoved=_FILES,
    partitionsOptimized=_LONG,
    zOrderStats=_Z_ORDER,
    clusteringStats=_CLUSTERING,
    numBins=_LONG,
    numBatches=_LONG,
    totalConsideredFiles=_LONG,
    totalFilesSkipped=_LONG,
    preserveInsertionOrder=t.BOOLEAN,
    numFilesSkippedToReduceWriteAmplification=_LONG,
    numBytesSkippedToReduceWriteAmplification=_LONG,
    startTimeMs=_LONG,
    endTimeMs=_LONG,
    totalClusterParallelism=_LONG,
    totalScheduledTasks=_LONG,
    autoCompactParallelismStats=_maybe(_PARALLELISM, *_PARALLELISM.names),
    deletionVectorStats=_struct(numDeletionVectorsRemoved=_LONG, numDeletionVectorRowsRemoved=_LONG),
    numTableColumns=_LONG,
    numTableColumnsWithStats=_LONG,
)
RESULT = Struct((Field("path", _TEXT), Field("metrics", METRICS)))
_LOOK_UPS = Array(_struct(column=_TEXT, before=t.DOUBLE, after=t.DOUBLE), False)
MEASURED = Struct((*RESULT.fields, Field("lookUps", _LOOK_UPS)))


def optimized_row(url: str, done: Optimized) -> dict[str, object]:
    """Where the table is, and what was done (`MEASURED`); members that tell of other things are null, or 0."""
    masks, masked_rows = done.masks
    metrics = {
        "numFilesAdded": len(done.added),
        "numFilesRemoved": len(done.removed),
        "filesAdded": _files(done.added),
        "filesRemoved": _files(done.removed),
        "partitionsOptimized": done.partitions,
        "zOrderStats": _z_order(done) if done.order_by else None,
        "clusteringStats": None if done.cubes is None else _clustering(done.cubes, done.bins),
        "numBins": done.bins,
        "numBatches": 1,
        "totalConsideredFiles": done.considered,
        "totalFilesSkipped": done.considered - len(done.removed),
        "preserveInsertionOrder": False,
        "numFilesSkippedToReduceWriteAmplification": 0,
        "numBytesSkippedToReduceWriteAmplification": 0,
        "startTimeMs": done.started_ms,
        "endTimeMs": done.ended_ms,
        "totalClusterParallelism": done.parallelism,
        "totalScheduledTasks": 0,
        "deletionVectorStats": {
            "numDeletionVectorsRemoved": masks,
            "numDeletionVectorRowsRemoved": masked_rows,
        }
        if masks
        else None,
        "numTableColumns": done.columns[0],
        "numTableColumnsWithStats": done.columns[1],
    }
    found = [{"column": one.column, "before": one.before, "after": one.after} for one in done.look_ups]
    named = {name: metrics.get(name) for name in METRICS.names}
    return {"path": url.rstrip("/"), "metrics": named, "lookUps": found}


def _files(sizes: Sequence[int]) -> dict[str, object]:
    return {
        "min": min(sizes, default=None),
        "max": max(sizes, default=None),
        "avg": sum(sizes) / len(sizes) if sizes else 0.0,
        "totalFiles": len(sizes),
        "totalSize": sum(sizes),
    }


def _z_order(done: Optimized) -> dict[str, object]:
    files = {"num": len(done.removed), "size": sum(done.removed)}
    return {
        "strategyName": "all",
        "inputCubeFiles": {"num": 0, "size": 0},
        "inputOtherFiles": files,
        "inputNumCubes": 0,
        "mergedFiles": files,
        "numOutputCubes": done.bins,
        "mergedNumCubes": None,
    }


def _clustering(cubes: CubeFigures, written: int) -> dict[str, object]:
    def counted(figures: tuple[int, int]) -> dict[str, int]:
        return dict(zip(("numFiles", "size"), figures, strict=True))

    return {
        "inputZCubeFiles": counted(cubes.in_cubes),
        "inputOtherFiles": counted(cubes.others),
        "inputNumZCubes": cubes.cubes,
        "mergedFiles": counted(cubes.merged),
        "numOutputZCubes": written,
    }
