"""Changed rows of a table whose rows merge by key: new rows of the same keys are written, and no file anew."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

from alluvium.commands.rows.row_changes import BEFORE, FirstPass, Purpose
from alluvium.commands.rows.row_work import Edit, RowWork
from alluvium.errors import InvalidRequest
from alluvium.plan.changes import TOUCHED_FILES, ChangeKind, Committed, EditFigures, Preview
from alluvium.spark.naming.names import quote
from alluvium.spark.positions import KIND

#: Rows shown in an error.
_SHOWN = 5


@dataclass(frozen=True, slots=True)
class UpsertRows:
    """`RowChangeMode.UPSERT_KEYS`."""

    #: The new rows come out of the pass that finds the old ones.
    purpose: ClassVar[Purpose] = Purpose.ROWS
    needs_bits: ClassVar[bool] = False

    work: RowWork

    def preview(self) -> Preview:
        """No file goes, and none gets a mask."""
        return self.work.preview(EditFigures())

    def apply(self, first: FirstPass) -> Committed:
        """Writes deletions, new values and new rows, in one commit."""
        work = self.work
        if not work.total("gone") and not work.total("inserted"):
            return work.nothing()
        changed = work.single(first.rows.where(f"{KIND} <> {int(ChangeKind.COPY)}"))
        self.ensure_keys_stay(first)
        count = work.total("gone") + work.total("inserted")
        edit = Edit(changed, TOUCHED_FILES.empty_table(), live=count, inserted=work.total("inserted"))
        # One exchange brings the rows of a bucket together, whatever tasks they come from.
        return work.commit(replace(edit, is_spread=False))

    def ensure_keys_stay(self, first: FirstPass) -> None:
        """Another key is another row: that would be an insert beside the old one.

        Raises:
            InvalidRequest: A key would change (`"key-changed"`).
        """
        ensure_stay(self.work, first.rows, "delete the rows, and insert them under their new keys")


def ensure_stay(work: RowWork, rows: DataFrame, hint: str) -> None:
    """Raises where rows that are updated would have other values in columns that must stay
    (`RowTarget.before_columns`).

    Raises:
        InvalidRequest: `"key-changed"`.
    """
    keys = work.target.before_columns
    if BEFORE not in rows.columns or not work.total("updated"):
        return
    same = " and ".join(f"{BEFORE}.{quote(name)} <=> {quote(name)}" for name in keys)
    moved = rows.where(f"{KIND} = {int(ChangeKind.UPDATE)} and not ({same})")
    shown = sf.to_json(sf.struct(*(sf.col(quote(name)) for name in keys)))
    found = moved.select(sf.to_json(sf.col(BEFORE)), shown).limit(_SHOWN).collect()
    if found:
        listed = "".join(f"\n  {row[0]} would become {row[1]}" for row in found)
        raise InvalidRequest(
            f"an update would change keys{listed}", code="key-changed", url=work.target.url, column=keys[0], hint=hint
        )
