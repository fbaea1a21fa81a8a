"""All verbs on Paimon tables, and how often each comes."""

from __future__ import annotations

from model.paimon import holders as h
from model.paimon import verbs as v

VERBS: dict[str, tuple[v.Bind, int]] = {
    "append": (v.append, 14),
    "overwrite": (v.overwrite, 2),
    "dynamic_overwrite": (v.dynamic_overwrite, 2),
    "replace_where": (v.replace_where, 3),
    "delete": (v.delete, 6),
    "update": (v.update, 6),
    "merge": (v.merge, 7),
    "compact": (v.compact, 5),
    "compact_manifests": (v.compact_manifests, 2),
    "create_tag": (v.create_tag, 3),
    "delete_tag": (v.delete_tag, 1),
    "rollback": (v.rollback, 2),
    "rollback_as_latest": (v.rollback_as_latest, 2),
    "purge": (v.purge, 1),
    "lose_file": (v.lose_file, 1),
    "copy": (v.copy, 2),
    "expire": (v.expire, 3),
    "orphans": (v.orphans, 2),
    "add_column": (v.add_column, 2),
    "rename_column": (v.rename_column, 2),
    "drop_column": (v.drop_column, 1),
    "widen": (v.widen, 2),
    "set_option": (v.set_option, 2),
    "create_branch": (h.create_branch, 3),
    "append_to_branch": (h.append_to_branch, 6),
    "delete_branch": (h.delete_branch, 1),
    "fast_forward": (h.fast_forward, 3),
    "set_consumer": (h.set_consumer, 2),
}
