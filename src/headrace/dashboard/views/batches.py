"""Batches: how far each is, and what it is made of."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from headrace.completion import Role
from headrace.dashboard import charts, graph
from headrace.dashboard.asked import Asked, View
from headrace.dashboard.same import Same, command, curl
from headrace.manager import BatchProgress
from headrace.model import Job, State

LOOKED_AT = 500
"""The newest jobs: the batches among them are listed. Others are found by their id."""
MEMBERS_DRAWN = 200
MEMBERS_SHOWN = 25


@dataclass(frozen=True)
class Row:
    progress: BatchProgress
    newest: Job
    """Of its jobs, as far as they were looked at."""


async def batches(asked: Asked) -> View:
    page = await asked.manager.find(newest_first=True, limit=LOOKED_AT)
    newest: dict[str, Job] = {}
    for job in page.jobs:
        for batch_id in _batches_of(job):
            newest.setdefault(batch_id, job)
    rows = [Row(await asked.manager.batch(batch_id), job) for batch_id, job in newest.items()]
    return View(
        "batches.html",
        "Batches",
        {
            "rows": rows,
            "looked_at": len(page.jobs),
            "looked_to": page.jobs[-1].created_at if page.jobs else None,
            "is_all": page.cursor is None,
        },
        same=(),
    )


async def batch(asked: Asked) -> View:
    batch_id = asked.word("id") or ""
    progress = await asked.manager.batch(batch_id)
    members = (await asked.manager.find(tags=[Role.MEMBER.of(batch_id)], limit=MEMBERS_DRAWN)).jobs
    others = [
        job
        for role in (Role.JOIN, Role.CALLBACK)
        for job in (await asked.manager.find(tags=[role.of(batch_id)], limit=MEMBERS_DRAWN)).jobs
    ]
    bad = await asked.manager.find(
        tags=[Role.MEMBER.of(batch_id)],
        states=(State.FAILED, State.DEAD, State.CANCELLED, State.ABANDONED),
        newest_first=True,
        limit=MEMBERS_SHOWN,
    )
    return View(
        "batch.html",
        f"Batch {batch_id}",
        {
            "progress": progress,
            "tag": Role.MEMBER.of(batch_id),
            "parts": charts.of_states(progress.states),
            "callback": others[-1] if others else None,
            "members": members[:MEMBERS_SHOWN],
            "bad": bad.jobs,
            "drawing": _drawing(asked, members, others),
        },
        same=(
            Same(
                "How far it is",
                command("batch", batch_id, tenant=asked.manager.tenant),
                curl(asked.address, "/batches/{}", batch_id),
            ),
        ),
        every_seconds=2.0,
    )


def _batches_of(job: Job) -> list[str]:
    head = Role.MEMBER.of("")
    return [tag.removeprefix(head) for tag in job.tags if tag.startswith(head)]


def _drawing(asked: Asked, members: Sequence[Job], others: Sequence[Job]) -> object:
    """Its jobs and what waits for them; nothing where nothing waits for them."""
    if not others:
        return None
    joins, last = others[:-1], others[-1]
    nodes = [graph.Node(job.id, job.type, job.state) for job in (*members, *others)]
    middle = [join.id for join in joins] or [last.id]
    edges = [(job.id, middle[0]) for job in members]
    edges += [(join.id, last.id) for join in joins]
    return graph.draw(graph.lay_out(nodes, edges), asked.links)
