"""Files of a folder as a table that has no log: what CLONE takes in the place of a version of a table."""

from __future__ import annotations

import time

from alluvium.delta.description.upgrade import ProtocolRequest, required_protocol
from alluvium.delta.log.segment import LogSegment
from alluvium.delta.log.state import LogState
from alluvium.delta.terms.config import parse_config
from alluvium.delta.terms.spec import TOMBSTONES
from alluvium.delta.upkeep.convert.conversion import ConvertRequest
from alluvium.delta.upkeep.convert.convert import plan_conversion
from alluvium.delta.upkeep.convert.planned import plan_from
from alluvium.delta.view.snapshot import Snapshot
from alluvium.plan.scan import ScanPlan
from alluvium.storage.locating import locating
from alluvium.storage.store import Store

#: As the reference's history has it of what has no versions.
NO_VERSION = -1


def found_table(store: Store, request: ConvertRequest, plan: ScanPlan | None = None) -> Snapshot:
    """The table that CONVERT would make, which is nowhere written.

    Args:
        store: The folder.
        request: What is asked for.
        plan: Where the folder is a table of another format: by which it is read.

    Raises:
        AlluviumError: As `convert`.
    """
    with locating(store, None):
        made = plan_conversion(store, request) if plan is None else plan_from(store, plan, request)
    segment = LogSegment(NO_VERSION, None, (), (), int(time.time() * 1000))
    # As in the reference it has what its columns and properties need, and not what new tables begin with.
    metadata = made.config.metadata
    config = parse_config(required_protocol(metadata, None, ProtocolRequest(bare=True)), metadata)
    gone = TOMBSTONES.empty_table()
    state = LogState(segment, config.protocol, config.metadata, made.files, gone, {}, {}, None)
    return Snapshot(store, state, config, request.zone)
