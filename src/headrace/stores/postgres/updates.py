"""Writing what a job's user says of it, with the lane and the tags that follow from that."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from headrace.model import Change
from headrace.stores.postgres.changes import NO_LANE, seqs_of
from headrace.stores.postgres.lanes import Lanes, lane_key
from headrace.stores.postgres.session import Session
from headrace.stores.postgres.texts import storable, storable_or_none


async def update(session: Session, lanes: Lanes, changes: Sequence[Change]) -> list[bool]:
    if not changes:
        return []
    before = [change.before for change in changes]
    after = [change.after for change in changes]
    lanes_read = await lanes.known(lane_key(job) for job in before)
    ((applied,),) = await session.write(
        "update",
        _each_once(await seqs_of(session, changes)),
        [storable(job.id) for job in before],
        [NO_LANE if lane is None else lane for lane in lanes_read],
        [job.version for job in before],
        [job.state for job in before],
        [job.version for job in after],
        await lanes.of(after),
        [msgspec.json.encode(job.tags).decode() for job in after],
        [storable_or_none(job.correlation_id) for job in after],
        [storable_or_none(job.callback_url) for job in after],
        [job.depth for job in after],
        [change.event.at for change in changes],
        [change.event.detail_json for change in changes],
    )
    written = frozenset(applied)
    return [position in written for position in range(1, len(changes) + 1)]


def _each_once(seqs: Sequence[int]) -> list[int]:
    """A second change of the same job comes too late: it is given a seq that no job has."""
    return [0 if seq in seqs[:place] else seq for place, seq in enumerate(seqs)]
