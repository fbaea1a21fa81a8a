"""What the reader of a stream agrees to: columns that are renamed, dropped, or get wider types."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import NoReturn

from alluvium.delta.streams.column_changes import ColumnChanges
from alluvium.errors import InvalidRequest

RENAME, DROP, TYPE_CHANGE = "allowSourceColumnRename", "allowSourceColumnDrop", "allowSourceColumnTypeChange"
#: Settings that say the same, of all streams, or with `.ckpt_` and a number behind it of one.
_BOTH = "spark.databricks.delta.streaming.allowSourceColumnRenameAndDrop"
_SETTINGS = {
    RENAME: ("spark.databricks.delta.streaming.allowSourceColumnRename", _BOTH),
    DROP: ("spark.databricks.delta.streaming.allowSourceColumnDrop", _BOTH),
    TYPE_CHANGE: ("spark.databricks.delta.streaming.allowSourceColumnTypeChange",),
}
_OUTSIDE = "spark.databricks.delta.streaming.allowSchemaLocationOutsideCheckpointLocation"
_ALWAYS = "always"


@dataclass(frozen=True, slots=True)
class Agreement:
    """What was said.

    Attributes:
        options: `allowSourceColumn...` of the reader: `always`, or the version of the change.
        setting: Asks the session for a setting.
    """

    options: Mapping[str, str]
    setting: Callable[[str], str | None]

    def covers(self, kind: str, version: int, place: str) -> bool:
        """Whether a kind of change is agreed to.

        Args:
            kind: The option that agrees to it.
            version: The last version of the changes.
            place: Where the query keeps what it knows of the source.
        """
        wanted = (_ALWAYS, str(version))
        if self.options.get(kind, "").strip().lower() in wanted:
            return True
        for name in _SETTINGS[kind]:
            if (self.setting(name) or "").lower() == _ALWAYS:
                return True
            if (self.setting(f"{name}.ckpt_{java_hash(place)}") or "").lower() in wanted:
                return True
        return False

    def ensure_under(self, location: str, place: str) -> None:
        """Refuses a log of columns that does not lie in the query's checkpoint: it belongs to no other query.

        Raises:
            InvalidRequest: `tracking-location-outside`.
        """
        checkpoint = place.rpartition("/sources/")[0]
        if f"{_plain(location)}/".startswith(f"{_plain(checkpoint)}/"):
            return
        if (self.setting(_OUTSIDE) or "").lower() == "true":
            return
        raise InvalidRequest(
            f"schemaTrackingLocation, {location!r}, must lie in the query's checkpoint {checkpoint!r}, whose log it is",
            code="tracking-location-outside",
            path=location,
            hint="give the same path as checkpointLocation, or one below it",
        )


def ensure_agreed(changes: ColumnChanges, versions: tuple[int, int], place: str, agreement: Agreement) -> None:
    """Refuses to go on behind changes that nobody agreed to.

    Args:
        changes: What was changed.
        versions: The version before, and the last one of the changes.
        place: Where the query keeps what it knows of the source.
        agreement: What was said.

    Raises:
        InvalidRequest: `stream-schema-changed` where types clash, else `stream-change-not-agreed`.
    """
    if changes.clashing:
        raise InvalidRequest(
            f"version {versions[1]} changed the column {changes.clashing[0]!r} to a type that its older rows have not",
            code="stream-schema-changed",
            version=versions[1],
            column=changes.clashing[0],
            hint="begin with a new checkpoint",
        )
    found = ((RENAME, changes.renamed), (DROP, changes.dropped), (TYPE_CHANGE, changes.widened))
    missing = [kind for kind, columns in found if columns and not agreement.covers(kind, versions[1], place)]
    if missing:
        _refuse(changes, missing, versions, place)


def _refuse(changes: ColumnChanges, missing: list[str], versions: tuple[int, int], place: str) -> NoReturn:
    options = ", ".join(f'.option("{name}", "{versions[1]}")' for name in missing)
    settings = ", ".join(f"{_SETTINGS[kind][0]}.ckpt_{java_hash(place)}" for kind in missing)
    raise InvalidRequest(
        f"columns of the table changed between version {versions[0]} and {versions[1]}: {changes}",
        code="stream-change-not-agreed",
        version=versions[1],
        hint=f"see to the sink, then let it pass by {options} of the reader, or by setting {settings} to the same; "
        '"always" instead of the version lets later changes of the kind pass, too',
    )


def java_hash(text: str) -> int:
    """As `String.hashCode` of Java, by which settings name a query's source."""
    data = text.encode("utf-16-be")
    found = 0
    for high, low in zip(data[::2], data[1::2], strict=True):
        found = (31 * found + (high << 8 | low)) & 0xFFFFFFFF
    return found - (1 << 32) if found >= 1 << 31 else found


def _plain(path: str) -> str:
    """Without the scheme of local files, which one may have and the other not."""
    rest = path.removeprefix("file:").rstrip("/")
    return "/" + rest.lstrip("/") if rest.startswith("/") else rest
