"""Writing what a job's user says of it, putting contents into another form, and deleting jobs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec
from msgspec.structs import asdict, replace

from headrace.model import Change
from headrace.stores.base import Rewrite
from headrace.stores.postgres.commit import NO_LANE, seqs_of
from headrace.stores.postgres.lanes import Lanes, lane_key
from headrace.stores.postgres.session import Session
from headrace.stores.postgres.values import storable, storable_or_none, transposed


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


async def rewrite(session: Session, rewrites: Sequence[Rewrite]) -> list[bool]:
    """Those of the same job at the same version count as one: what the last of them gives is written."""
    merged: dict[tuple[str, int], Rewrite] = {}
    for one in rewrites:
        place = (one.job_id, one.version)
        merged[place] = _over(merged.get(place), one)
    if not merged:
        return []
    ((seqs,),) = await session.write(
        "rewrite",
        *transposed(
            (
                (
                    storable(one.job_id),
                    one.version,
                    one.payload_json,
                    one.result_json,
                    one.checkpoint_json,
                    one.log_json,
                    storable_or_none(one.failure_message),
                )
                for one in merged.values()
            ),
            7,
        ),
    )
    written = {place: seq is not None for place, seq in zip(merged, seqs, strict=True)}
    return [written[one.job_id, one.version] for one in rewrites]


def _over(first: Rewrite | None, then: Rewrite) -> Rewrite:
    if first is None:
        return then
    given = {name: value for name, value in asdict(then).items() if value is not None}
    return replace(first, **given)


async def delete(session: Session, jobs: Mapping[str, int]) -> bool:
    if not jobs:
        return True
    ((deleted,),) = await session.write(
        "delete", [storable(job_id) for job_id in jobs], list(jobs.values())
    )
    return bool(deleted)
