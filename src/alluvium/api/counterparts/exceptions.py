"""The exceptions of `delta.exceptions`: what lost a race, by what the winner did."""

from __future__ import annotations

from pyspark.errors import PySparkException


class DeltaConcurrentModificationException(PySparkException):
    """Somebody else's commit came first, and this one does not fit on top of it.

    In delta-spark's Python the others do not derive from it, as they do in its Java; here they do in Python, too.
    """


class ConcurrentWriteException(DeltaConcurrentModificationException):
    """Another commit wrote what this one cannot be reconciled with."""


class MetadataChangedException(DeltaConcurrentModificationException):
    """Another commit changed schema, partitioning or properties."""


class ProtocolChangedException(DeltaConcurrentModificationException):
    """Another commit changed the protocol, or created the table."""


class ConcurrentAppendException(DeltaConcurrentModificationException):
    """Another commit added rows that this one would have read."""


class ConcurrentDeleteReadException(DeltaConcurrentModificationException):
    """Another commit removed rows that this one has read."""


class ConcurrentDeleteDeleteException(DeltaConcurrentModificationException):
    """Another commit removed files that this one removes."""


class ConcurrentTransactionException(DeltaConcurrentModificationException):
    """Another commit moved the version of the same application."""
