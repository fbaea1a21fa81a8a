"""Changes carried out on a draft of a schema, one after the other. Specification: "Update Schema"."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from alluvium.errors import InvalidRequest, suggest
from alluvium.paimon.schema.casts import can_cast, may_cast
from alluvium.paimon.schema.changes import (
    AddColumn,
    DropColumn,
    DropPrimaryKey,
    Move,
    RemoveOption,
    RenameColumn,
    SchemaChange,
    SetOption,
    UpdateColumnComment,
    UpdateColumnDefault,
    UpdateColumnNullability,
    UpdateColumnPosition,
    UpdateColumnType,
    UpdateComment,
)
from alluvium.paimon.schema.defaults import ensure_default
from alluvium.paimon.schema.numbering import number_within
from alluvium.paimon.schema.option_names import forget_in_options, rename_in_options
from alluvium.paimon.schema.types import DataField, DataType
from alluvium.paimon.terms.options import (
    ADD_COLUMN_BEFORE_PARTITION,
    EXPLICIT_TYPE_CASTING_DISABLED,
    NULL_TO_NOT_NULL_DISABLED,
    ensure_option_may_change,
)

#: Changes the list of fields that holds the named one.
EditFields: TypeAlias = Callable[[list[DataField], str], None]
EditType: TypeAlias = Callable[[DataType], DataType]

#: The names that stand for what is inside of a type without names.
_INNER = {"ARRAY": "element", "MAP": "value"}


@dataclass(slots=True)
class Draft:
    """A schema while it changes."""

    fields: list[DataField]
    highest_field_id: int
    partition_keys: tuple[str, ...]
    primary_keys: tuple[str, ...]
    options: dict[str, str]
    comment: str | None

    def next_id(self) -> int:
        """ "Column id, automatic increment": never one that was used before."""
        self.highest_field_id += 1
        return self.highest_field_id


@dataclass(frozen=True, slots=True)
class _Rules:
    """What the options said before the changes, and whether there is data."""

    options: Mapping[str, str]
    has_snapshots: bool

    def ensure_nullability(self, old: bool, new: bool, path: tuple[str, ...]) -> None:
        if old and not new and NULL_TO_NOT_NULL_DISABLED.get(self.options):
            raise _refusal(
                "nullable-to-not-null",
                "holds nulls, or may: it cannot become NOT NULL",
                path,
                f"set {NULL_TO_NOT_NULL_DISABLED.key} = false, if there are none",
            )


def evolve(draft: Draft, changes: Sequence[SchemaChange], has_snapshots: bool) -> None:
    """Carries the changes out on the draft.

    Raises:
        InvalidRequest: A change is refused; the draft is then of no use.
    """
    rules = _Rules(dict(draft.options), has_snapshots)
    for change in changes:
        carry_out = _CHANGES.get(type(change))
        if carry_out is None:
            raise InvalidRequest(f"{change!r} is no schema change", code="invalid-schema-change")
        carry_out(draft, change, rules)


def _refusal(code: str, problem: str, path: tuple[str, ...], hint: str | None = None) -> InvalidRequest:
    name = ".".join(path)
    return InvalidRequest(f"column {name!r} {problem}", code=code, column=name, hint=hint)


def _missing(path: tuple[str, ...], known: Sequence[str] = ()) -> InvalidRequest:
    return _refusal("column-missing", "does not exist", path, suggest(path[-1], known))


def _index(fields: list[DataField], path: tuple[str, ...]) -> int:
    for i, f in enumerate(fields):
        if f.name == path[-1]:
            return i
    raise _missing(path, [f.name for f in fields])


def _edit_fields(
    fields: list[DataField], path: tuple[str, ...], edit: EditFields, inner: EditType | None = None, at: int = 0
) -> None:
    """Lets `edit` change the list of fields that holds the path's last name, or `inner` an element or value."""
    if at == len(path) - 1:
        edit(fields, path[at])
        return
    i = _index(fields, path[: at + 1])
    fields[i] = replace(fields[i], type=_edit_within(fields[i].type, path, edit, inner, at + 1))


def _edit_within(t: DataType, path: tuple[str, ...], edit: EditFields, inner: EditType | None, at: int) -> DataType:
    if t.root == "ROW":
        members = list(t.fields)
        _edit_fields(members, path, edit, inner, at)
        return replace(t, fields=tuple(members))
    name = _INNER.get(t.root)
    child = t.element if t.root == "ARRAY" else t.value
    if name != path[at] or child is None:
        raise _missing(path[: at + 1], [name] if name else [])
    if at == len(path) - 1:
        if inner is None:
            raise _refusal("column-missing", f"is the {name} of {t}, and no column", path)
        changed = inner(child)
    else:
        changed = _edit_within(child, path, edit, inner, at + 1)
    return replace(t, element=changed) if t.root == "ARRAY" else replace(t, value=changed)


def _replace_field(path: tuple[str, ...], change: Callable[[DataField], DataField]) -> EditFields:
    def edit(fields: list[DataField], name: str) -> None:
        i = _index(fields, path)
        fields[i] = change(fields[i])

    return edit


def _edit_types(draft: Draft, path: tuple[str, ...], change: EditType) -> None:
    _edit_fields(draft.fields, path, _replace_field(path, lambda f: replace(f, type=change(f.type))), change)


def _ensure_no_key(
    draft: Draft, path: tuple[str, ...], verb: str, primary: bool = True, partition: bool = True
) -> None:
    # Keys are columns of the table: nested ones are none.
    if len(path) > 1:
        return
    if partition and path[0] in draft.partition_keys:
        raise _refusal("key-column", f"is a partition key: it cannot be {verb}", path)
    if primary and path[0] in draft.primary_keys:
        raise _refusal("key-column", f"is part of the primary key: it cannot be {verb}", path)


def _set_option(draft: Draft, change: SetOption, rules: _Rules) -> None:
    if rules.has_snapshots:
        ensure_option_may_change(rules.options, change.key, change.value)
    draft.options[change.key] = change.value


def _remove_option(draft: Draft, change: RemoveOption, rules: _Rules) -> None:
    if rules.has_snapshots:
        ensure_option_may_change(rules.options, change.key, None)
    draft.options.pop(change.key, None)


def _update_comment(draft: Draft, change: UpdateComment, rules: _Rules) -> None:
    draft.comment = change.comment


def _add_column(draft: Draft, change: AddColumn, rules: _Rules) -> None:
    if not change.type.nullable:
        raise _refusal("add-not-null", "cannot be added as NOT NULL: older rows have no value", change.path)
    number = draft.next_id()
    added = DataField(number, change.path[-1], number_within(change.type, draft.next_id), change.comment)

    def edit(fields: list[DataField], name: str) -> None:
        if any(f.name == name for f in fields):
            raise _refusal("column-exists", "exists already", change.path)
        fields.insert(_new_position(draft, fields, change, rules), added)

    _edit_fields(draft.fields, change.path, edit)


def _new_position(draft: Draft, fields: list[DataField], change: AddColumn, rules: _Rules) -> int:
    move = change.move
    if move is None:
        before_partition = len(change.path) == 1 and ADD_COLUMN_BEFORE_PARTITION.get(rules.options)
        partition = [i for i, f in enumerate(fields) if f.name in draft.partition_keys] if before_partition else []
        return partition[0] if partition else len(fields)
    if move.kind in ("FIRST", "LAST"):
        return 0 if move.kind == "FIRST" else len(fields)
    reference = _index(fields, (*change.path[:-1], _reference(move)))
    return reference + 1 if move.kind == "AFTER" else reference


def _reference(move: Move) -> str:
    if move.reference is None:
        raise InvalidRequest(f"a move {move.kind} needs a column to refer to", code="invalid-schema-change")
    return move.reference


def _rename_column(draft: Draft, change: RenameColumn, rules: _Rules) -> None:
    path = change.path
    _ensure_no_key(draft, path, "renamed", primary=False)

    def edit(fields: list[DataField], name: str) -> None:
        i = _index(fields, path)
        if len(path) == 1 and fields[i].type.root == "BLOB":
            raise _refusal("blob-column", "holds blobs: it cannot be renamed", path)
        if any(f.name == change.new_name for f in fields):
            raise _refusal("column-exists", "exists already", (*path[:-1], change.new_name))
        fields[i] = replace(fields[i], name=change.new_name)

    _edit_fields(draft.fields, path, edit)
    if len(path) == 1:
        draft.primary_keys = tuple(change.new_name if name == path[0] else name for name in draft.primary_keys)
        rename_in_options(draft.options, path[0], change.new_name)


def _drop_column(draft: Draft, change: DropColumn, rules: _Rules) -> None:
    _ensure_no_key(draft, change.path, "dropped")

    def edit(fields: list[DataField], name: str) -> None:
        dropped = fields.pop(_index(fields, change.path))
        if not fields:
            raise _refusal("drop-all-columns", "is the last one: it cannot be dropped", change.path)
        if len(change.path) == 1:
            forget_in_options(draft.options, name, dropped.type.root)

    _edit_fields(draft.fields, change.path, edit)


def _update_column_type(draft: Draft, change: UpdateColumnType, rules: _Rules) -> None:
    _ensure_no_key(draft, change.path, "changed")
    explicit = not EXPLICIT_TYPE_CASTING_DISABLED.get(rules.options)

    def retype(old: DataType) -> DataType:
        new = change.type
        if len(change.path) == 1 and "BLOB" in (old.root, new.root):
            raise _refusal("blob-column", f"cannot go from {old} to {new}: blobs stay blobs", change.path)
        if change.keep_nullability:
            new = new.with_nullable(old.nullable)
        else:
            rules.ensure_nullability(old.nullable, new.nullable, change.path)
        if not (may_cast(old, new, explicit) and can_cast(old, new)):
            raise _refusal("cast-not-allowed", f"cannot go from {old} to {new}", change.path)
        return new

    _edit_types(draft, change.path, retype)


def _update_column_nullability(draft: Draft, change: UpdateColumnNullability, rules: _Rules) -> None:
    if change.nullable:
        _ensure_no_key(draft, change.path, "nullable", partition=False)

    def change_nullability(old: DataType) -> DataType:
        rules.ensure_nullability(old.nullable, change.nullable, change.path)
        return old.with_nullable(change.nullable)

    _edit_types(draft, change.path, change_nullability)


def _update_column_comment(draft: Draft, change: UpdateColumnComment, rules: _Rules) -> None:
    edit = _replace_field(change.path, lambda f: replace(f, description=change.comment))
    _edit_fields(draft.fields, change.path, edit)


def _update_column_default(draft: Draft, change: UpdateColumnDefault, rules: _Rules) -> None:
    def set_default(f: DataField) -> DataField:
        ensure_default(f.type, change.default, ".".join(change.path))
        return replace(f, default=change.default)

    _edit_fields(draft.fields, change.path, _replace_field(change.path, set_default))


def _update_column_position(draft: Draft, change: UpdateColumnPosition, rules: _Rules) -> None:
    move, fields = change.move, draft.fields
    old = _index(fields, (move.column,))
    if move.kind in ("FIRST", "LAST"):
        new = 0 if move.kind == "FIRST" else len(fields) - 1
        stays = old == new
    else:
        reference = _index(fields, (_reference(move),))
        stays = old == reference
        new = reference + (move.kind == "AFTER") - (old < reference)
    if stays:
        raise _refusal("move-onto-itself", "is there already", (move.column,))
    fields.insert(new, fields.pop(old))


def _drop_primary_key(draft: Draft, change: DropPrimaryKey, rules: _Rules) -> None:
    if rules.has_snapshots:
        raise InvalidRequest("the primary key cannot be dropped once the table holds data", code="primary-key-change")
    draft.primary_keys = ()


#: Each function takes its own kind of change.
_CHANGES: Mapping[type[SchemaChange], Callable[[Draft, Any, _Rules], None]] = {
    SetOption: _set_option,
    RemoveOption: _remove_option,
    UpdateComment: _update_comment,
    AddColumn: _add_column,
    RenameColumn: _rename_column,
    DropColumn: _drop_column,
    UpdateColumnType: _update_column_type,
    UpdateColumnNullability: _update_column_nullability,
    UpdateColumnComment: _update_column_comment,
    UpdateColumnDefault: _update_column_default,
    UpdateColumnPosition: _update_column_position,
    DropPrimaryKey: _drop_primary_key,
}
