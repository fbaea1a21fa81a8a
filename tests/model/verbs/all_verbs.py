"""Which verbs there are, and how often each comes."""

from __future__ import annotations

import random
from collections.abc import Callable

from model.state import Bound, World
from model.verbs import description as d
from model.verbs import evolution as e
from model.verbs import rows as r
from model.verbs import upkeep as u

Bind = Callable[[World, random.Random], Bound | None]

VERBS: dict[str, tuple[Bind, int]] = {
    "append": (r.append, 10),
    "overwrite": (r.overwrite, 2),
    "replace_where": (r.replace_where, 3),
    "dynamic_overwrite": (r.dynamic_overwrite, 2),
    "replace_using": (r.replace_using, 2),
    "delete": (r.delete, 6),
    "update": (r.update, 6),
    "merge": (r.merge, 8),
    "optimize": (u.optimize, 3),
    "z_order": (u.z_order, 1),
    "purge": (u.purge, 1),
    "vacuum": (u.vacuum, 1),
    "restore": (u.restore, 3),
    "checkpoint": (u.checkpoint, 2),
    "compact_log": (u.compact_log, 1),
    "clean_log": (u.clean_log, 1),
    "repair": (u.repair, 1),
    "clone": (u.clone, 2),
    "add_column": (d.add_column, 2),
    "rename_column": (d.rename_column, 2),
    "drop_column": (d.drop_column, 1),
    "widen": (d.widen, 2),
    "set_property": (d.set_property, 4),
    "add_constraint": (d.add_constraint, 1),
    "drop_constraint": (d.drop_constraint, 1),
    "cluster_by": (d.cluster_by, 1),
    "drop_feature": (d.drop_feature, 1),
    # In place of verbs without (`delta_game.make_script`).
    "append_wider": (e.append_wider, 0),
    "overwrite_wider": (e.overwrite_wider, 0),
    "merge_wider": (e.merge_wider, 0),
}
