"""delta-rs by its Python package. It imports nothing of the project."""

from __future__ import annotations

import pyarrow as pa
from deltalake import CommitProperties, DeltaTable, write_deltalake
from deltalake.exceptions import CommitFailedError

from history.acts import Act
from history.writers.loop import Idle, Lost

#: Not `compact`: of two compactions of one version both are committed (1.6.6), and each row stands twice
#: (`test_two_compactions_of_delta_rs`).
VERBS = frozenset({"append", "add", "move", "stamp", "drop"})


class DeltalakeWriter:
    """Carries acts out.

    Args:
        url: The table.
    """

    def __init__(self, url: str) -> None:
        self._url = url

    def __call__(self, act: Act) -> None:
        said = CommitProperties(custom_metadata={"userMetadata": act.note}, max_commit_retries=30)
        try:
            getattr(self, "_" + act.verb)(act, said)
        except CommitFailedError as error:
            raise Lost from error

    def _append(self, act: Act, said: CommitProperties) -> None:
        count = len(act.ids)
        columns = {
            "p": pa.array(["e"] * count),
            "id": pa.array(act.ids, pa.int64()),
            "v": pa.array([10] * count, pa.int64()),
            "last": pa.array([act.token] * count),
        }
        write_deltalake(self._url, pa.table(columns), mode="append", commit_properties=said)

    def _add(self, act: Act, said: CommitProperties) -> None:
        self._update(act, f"v + {act.amount}", said)

    def _move(self, act: Act, said: CommitProperties) -> None:
        self._update(act, f"CASE WHEN id = {act.a} THEN v - {act.amount} ELSE v + {act.amount} END", said)

    def _stamp(self, act: Act, said: CommitProperties) -> None:
        self._update(act, f"v + {act.amount}", said)

    def _update(self, act: Act, value: str, said: CommitProperties) -> None:
        table = DeltaTable(self._url)
        updates = {"v": value, "last": f"'{act.token}'"}
        done = table.update(predicate=act.condition, updates=updates, commit_properties=said)
        if not done["num_updated_rows"]:
            raise Idle

    def _drop(self, act: Act, said: CommitProperties) -> None:
        if not DeltaTable(self._url).delete(act.condition, commit_properties=said)["num_deleted_rows"]:
            raise Idle
