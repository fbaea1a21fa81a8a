"""Names for states of a table: tags, branches, rollback."""

from __future__ import annotations

import copy
import datetime as dt
from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING

from alluvium.api.paimon.life.times import Duration, When, duration_ms, millis_of
from alluvium.errors import InvalidRequest
from alluvium.paimon.log.names import list_branches
from alluvium.paimon.log.schema_log import MAIN_BRANCH, load_latest_schema, not_a_table
from alluvium.paimon.log.travel import find_since, find_since_watermark, read_tag
from alluvium.paimon.schema.table_schema import TableSchema
from alluvium.paimon.terms.life_options import TAG_TIME_RETAINED_MS
from alluvium.paimon.terms.option_values import ensure_may_be_given
from alluvium.paimon.terms.spec import SnapshotDocument
from alluvium.paimon.upkeep.life import as_latest, auto_tags, branches, rollback, tags
from alluvium.plan.retry import DEFAULT_RETRY, RetryPolicy
from alluvium.storage.locating import locating
from alluvium.storage.store import Store

if TYPE_CHECKING:
    from typing_extensions import Self

#: What options begin with that choose rows.
_OF_READERS = ("scan.", "incremental-")


class TableHistory:
    """What `PaimonTable` does with the history of a table or of one of its branches. No Spark is needed."""

    _store: Store
    _branch: str = MAIN_BRANCH
    _options: Mapping[str, str] = MappingProxyType({})

    def _own_schema(self) -> TableSchema:
        newest = load_latest_schema(self._store, self._branch)
        if newest is None:
            raise (
                not_a_table(self._store)
                if self._branch == MAIN_BRANCH
                else branches.no_branch(self._store, self._branch)
            )
        return replace(newest, options={**newest.options, **self._options}) if self._options else newest

    def with_options(self, options: Mapping[str, str]) -> Self:
        """The same table, whose options are on top of its own as long as this object is used: they are not stored.

        Raises:
            InvalidRequest: As of `ensure_may_be_given`; or an option says which rows are read (`"invalid-option"`).
        """
        reads = next((key for key in options if key == "branch" or key.startswith(_OF_READERS)), None)
        if reads is not None:
            raise InvalidRequest(
                f"{reads} says which rows are read, and the newest ones are worked on",
                code="invalid-option",
                url=self._store.url,
                hint='PaimonTable.forPath(url, branch="...") is a branch',
            )
        with locating(self._store, None):
            ensure_may_be_given(self._own_schema().options, options)
        named = copy.copy(self)
        named._options = {**self._options, **options}
        return named

    def create_tag(
        self, tag: str, snapshot: int | None = None, time_retained: Duration | None = None, replace: bool = False
    ) -> int:
        """Gives a snapshot a name, under which it stays readable when it expires.

        Args:
            tag: The name.
            snapshot: Its id; None: the newest.
            time_retained: For how long the tag stays (`"7 d"`); None: as `tag.default-time-retained` says, or for ever.
            replace: Whether the tag is there, and names another snapshot from now on.

        Returns:
            The snapshot's id.

        Raises:
            InvalidRequest: There is a tag of that name (`"tag-exists"`), or no name or duration.
            NotFound: There is no such snapshot, or no tag to replace.
        """
        with locating(self._store, None):
            retained_ms = duration_ms(time_retained, "time_retained")
            if retained_ms is None:
                retained_ms = TAG_TIME_RETAINED_MS.get(self._own_schema().options)
            return tags.create_tag(self._store, tag, snapshot, retained_ms, self._branch, replace)

    def replace_tag(self, tag: str, snapshot: int | None = None, time_retained: Duration | None = None) -> int:
        """Has a tag that is there name another snapshot; as `create_tag`."""
        return self.create_tag(tag, snapshot, time_retained, replace=True)

    def create_tag_from_timestamp(self, tag: str, timestamp: When, time_retained: Duration | None = None) -> int:
        """Gives the first snapshot at or after a time a name; as `create_tag`.

        Raises:
            NotFound: All snapshots are older (`"snapshot-not-found"`).
            InvalidRequest: As of `create_tag`.
        """
        with locating(self._store, None):
            found = find_since(self._store, millis_of(timestamp, "timestamp"), self._branch)
        return self.create_tag(tag, found.id, time_retained)

    def create_tag_from_watermark(self, tag: str, watermark: int, time_retained: Duration | None = None) -> int:
        """Gives the first snapshot whose watermark is at least this a name, be it one that a tag keeps.

        Raises:
            NotFound: All watermarks are earlier, or there are none (`"snapshot-not-found"`).
            InvalidRequest: As of `create_tag`.
        """
        with locating(self._store, None):
            found = find_since_watermark(self._store, _watermark(watermark), self._branch)
        return self.create_tag(tag, found.id, time_retained)

    def rename_tag(self, tag: str, target_tag: str) -> None:
        """Gives a tag another name.

        Raises:
            NotFound: There is no such tag.
            InvalidRequest: The other name is taken (`"tag-exists"`).
        """
        with locating(self._store, None):
            tags.rename_tag(self._store, tag, target_tag, self._branch)

    def delete_tag(self, *names: str) -> None:
        """Deletes tags, with the files that nothing else needs. One that is not there is no error, as in Java."""
        with locating(self._store, None):
            for name in names:
                tags.delete_tag(self._store, name, self._branch)

    def expire_tags(self, older_than: When | None = None) -> list[str]:
        """Deletes tags whose `time_retained` is over; their names.

        Args:
            older_than: Those that were made before go, too.
        """
        now = dt.datetime.now()
        limit = None
        if older_than is not None:
            limit = dt.datetime.fromtimestamp(millis_of(older_than, "older_than") / 1000)
        with locating(self._store, None):
            return tags.expire_tags(self._store, now, limit, self._branch)

    def trigger_tag_automatic_creation(self) -> list[str]:
        """Makes the tags that the table's options ask for (`tag.automatic-creation`); their names.

        Raises:
            InvalidRequest: The options make no sense.
        """
        with locating(self._store, None):
            return auto_tags.create_due_tags(self._store, self._own_schema().options, self._branch)

    def tagged(self, tag: str) -> SnapshotDocument:
        """What a tag says of its snapshot.

        Raises:
            NotFound: There is no such tag.
        """
        with locating(self._store, None):
            return read_tag(self._store, tag, self._branch)

    def rollback_to(self, version: int | str, is_tag: bool | None = None) -> int:
        """Goes back to a snapshot or a tag: what came after is gone from the history, and tags of it, too.

        The files of what came after stay until `remove_orphan_files`.

        Args:
            version: A snapshot's id, or a tag.
            is_tag: Which of both; None: text of digits is an id, other text a tag.

        Returns:
            The snapshot's id.

        Raises:
            NotFound: There is no such snapshot or tag; nothing was changed.
        """
        with locating(self._store, None):
            if isinstance(version, bool) or not isinstance(version, (int, str)):
                raise InvalidRequest(f"{version!r} is no snapshot and no tag", code="invalid-version")
            by_tag = isinstance(version, str) and not version.isdecimal() if is_tag is None else is_tag
            if by_tag:
                return rollback.rollback_to_tag(self._store, str(version), self._branch)
            return rollback.rollback_to_snapshot(self._store, int(version), self._branch)

    def rollback_to_timestamp(self, timestamp: When) -> int:
        """Goes back to the newest snapshot at or before a time; as `rollback_to`."""
        with locating(self._store, None):
            return rollback.rollback_to_time(self._store, millis_of(timestamp, "timestamp"), self._branch)

    def rollback_to_watermark(self, watermark: int) -> int:
        """Goes back to the newest snapshot whose watermark is not beyond one; as `rollback_to`."""
        with locating(self._store, None):
            return rollback.rollback_to_watermark(self._store, _watermark(watermark), self._branch)

    def rollback_to_as_latest(
        self, tag: str | None = None, snapshot_id: int | None = None, retry: RetryPolicy = DEFAULT_RETRY
    ) -> as_latest.RolledBack:
        """Commits the state of a tag or a snapshot as the newest one: what came between stays in the history.

        A snapshot is kept by a tag `rollback-to-as-latest-...` from then on, as Java does it.

        Args:
            tag: The tag, or
            snapshot_id: the snapshot, be it one that only a tag keeps.
            retry: How often it is tried again when others commit.

        Raises:
            InvalidRequest: Neither or both were given (`"contradicting-options"`).
            NotFound: There is no such tag or snapshot; nothing was changed.
            CommitConflict: Others committed every time.
        """
        with locating(self._store, None):
            return as_latest.rollback_to_as_latest(self._store, snapshot_id, tag, self._branch, retry)

    def create_branch(self, branch: str, tag: str | None = None, ignore_if_exists: bool = False) -> None:
        """Makes a branch of the main one.

        Args:
            branch: Its name.
            tag: It begins as this tag; None: with the newest schema, and without rows.
            ignore_if_exists: Whether one that is there already is left as it is.

        Raises:
            InvalidRequest: There is one of that name (`"branch-exists"`), or it is no name.
            NotFound: There is no such tag.
        """
        with locating(self._store, None):
            if not ignore_if_exists or branch not in list_branches(self._store):
                branches.create_branch(self._store, branch, tag)

    def rename_branch(self, from_branch: str, to_branch: str) -> None:
        """Gives a branch another name; options that name it (`scan.fallback-branch`) are not altered.

        Raises:
            NotFound: There is no such branch.
            InvalidRequest: It is the main one, or the other name is taken (`"branch-exists"`), or is none.
        """
        with locating(self._store, None):
            branches.rename_branch(self._store, from_branch, to_branch)

    def delete_branch(self, *names: str) -> None:
        """Deletes branches; the files that they have written stay until `remove_orphan_files`.

        Raises:
            NotFound: There is no such branch.
            InvalidRequest: The table shows the rows of one, as its fallback (`"branch-in-use"`); none was deleted.
        """
        with locating(self._store, None):
            branches.ensure_not_shown(self._store, names)
            for name in names:
                branches.delete_branch(self._store, name)

    def fast_forward(self, branch: str) -> int:
        """Has the main branch go on as another one; what came on it since that one began is gone from its history.

        Returns:
            The newest snapshot's id.

        Raises:
            NotFound: There is no such branch.
            InvalidRequest: It has no snapshot (`"empty-branch"`).
        """
        with locating(self._store, None):
            return branches.fast_forward(self._store, branch)


def _watermark(value: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise InvalidRequest(f"{value!r} is no watermark", code="invalid-version", hint="a whole number")
    return value
