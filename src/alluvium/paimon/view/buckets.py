"""Which bucket a row is in: by the hash of its bucket key.

Specification: "`bucket=N>0` fixed: `abs(hash % N)`, hash = murmur3 over the bytes of the bucket key"; "`_TOTAL_BUCKETS`
is per partition and may differ from the option after a rescale".
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from alluvium.codecs.binary_rows.binary_row_encode import encode_rows, hash_rows
from alluvium.expr.columnar import literal_scalar
from alluvium.expr.tree import Column, Compare, Expression, Literal, conjuncts
from alluvium.paimon.log.schema_log import list_schema_ids
from alluvium.paimon.log.snapshot import Snapshot
from alluvium.paimon.schema.logical import to_logical
from alluvium.paimon.schema.table_schema import TableSchema
from alluvium.paimon.terms.options import BUCKET, BUCKET_FUNCTION
from alluvium.schema import types as t
from alluvium.schema.arrow import to_arrow
from alluvium.storage.parallel import map_parallel

#: Types whose literals are the very values that are hashed; a key of another type is not looked for.
_EXACT = (t.BOOLEAN, *t.INTEGRAL, t.STRING, t.DATE)


def wanted_hash(schema: TableSchema, where: Expression) -> int | None:
    """The hash of the only bucket key for which `where` can be true; None where it leaves several."""
    is_plain = BUCKET_FUNCTION.get(schema.options) == "default"
    if BUCKET.get(schema.options) < 1 or not is_plain or not schema.bucket_keys:
        return None
    equal = dict(pair for part in conjuncts(where) if (pair := _equality(part)) is not None)
    values, types = [], []
    for name in schema.bucket_keys:
        column = schema.find(name)
        if column is None or name not in equal:
            return None
        kind = to_logical(column.type)
        literal = equal[name]
        if kind not in _EXACT or literal.type != kind or literal.value is None or column.type.root == "CHAR":
            return None
        values.append(pa.array([literal_scalar(literal.value, kind).as_py()], to_arrow(kind)))
        types.append((kind, column.type.precision))
    return int(hash_rows(encode_rows(values, types))[0].as_py())


def keeps_buckets(snapshot: Snapshot) -> bool:
    """Whether rows were divided into buckets by the same values ever since the table was made.

    A bucket key's type may change, and with it the bytes that are hashed, or what is left of a text when it is read:
    what was written before lies in other buckets, and stays there when files are compacted, so that a file's own schema
    does not tell.
    """
    schema = snapshot.schema
    if not schema.id:
        return True
    numbers = sorted(number for number in list_schema_ids(snapshot.store, snapshot.branch) if number < schema.id)
    schemas = [*map_parallel(snapshot.schema_of, numbers), schema]
    return all(_divide_alike(one, other) for one, other in pairwise(schemas))


def _divide_alike(earlier: TableSchema, later: TableSchema) -> bool:
    """Whether a row that was written by one schema is in the bucket of what is read of it by the next."""
    if _division(earlier) != _division(later):
        return False
    return all(f <= g for f, g in zip(_lengths(earlier), _lengths(later), strict=True))


def _lengths(schema: TableSchema) -> list[int]:
    columns = (schema.find(name) for name in schema.bucket_keys)
    return [0 if f is None else f.type.length for f in columns]


def _division(schema: TableSchema) -> list[object]:
    columns = [schema.find(name) for name in schema.bucket_keys]
    # CHAR has blanks, which come and go.
    return [None if f is None else (f.id, to_logical(f.type), f.type.precision, f.type.root == "CHAR") for f in columns]


def _equality(part: Expression) -> tuple[str, Literal] | None:
    if not isinstance(part, Compare) or part.op not in ("=", "<=>"):
        return None
    for one, other in ((part.left, part.right), (part.right, part.left)):
        if isinstance(one, Column) and len(one.path) == 1 and isinstance(other, Literal):
            return one.path[0], other
    return None


def in_bucket(entries: pa.Table, hashed: int) -> pa.Array | None:
    """Which files are of the bucket that a key of this hash is in; None where a file does not say of how many."""
    totals = entries["total_buckets"]
    if totals.null_count or (pc.min(totals).as_py() or 0) <= 0:
        return None
    buckets = np.abs(np.fmod(np.int64(hashed), totals.to_numpy().astype(np.int64)))
    return pa.array(buckets == entries["bucket"].to_numpy())
