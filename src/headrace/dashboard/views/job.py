"""One job: what it is, why it does not run, its attempts, and what it was at any moment of its life."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from headrace import history
from headrace.dashboard import contents, graph, timeline
from headrace.dashboard.asked import Asked, View
from headrace.dashboard.same import Same, command, curl
from headrace.manager import Explanation
from headrace.manager.explanation import Why
from headrace.manager.refusals import KEEP_DAYS
from headrace.manager.retention import REDRIVABLE
from headrace.model import LEASED, TERMINAL, Event, Job, State

EVENTS_MAX = 5000
"""Of one job. More are read from the command line."""
EVENTS_SHOWN = 200
GRAPH_NODES = 200
GRAPH_DEPTH = 4
LOG_SHOWN = 200
REFUSED_KEPT = timedelta(days=KEEP_DAYS)


@dataclass(frozen=True)
class Moment:
    """The job as it was after one of its events."""

    index: int
    """Among its events, from 1."""
    of: int
    event: Event
    row: Mapping[str, Any]
    """Folded from the events up to this one."""

    @property
    def is_last(self) -> bool:
        return self.index == self.of


async def job(asked: Asked) -> View:
    job_id = asked.word("id") or ""
    found = await asked.manager.get(job_id)
    events = await asked.manager.events(job_id=found.id, limit=EVENTS_MAX)
    moment = _moment(asked, events)
    past = moment is not None and not moment.is_last
    seen = events if moment is None else events[: moment.index]
    until = seen[-1].at if past and seen else asked.now
    refused = await _refused(asked, found, until)
    lanes = timeline.lanes(found.created_at, history.attempts(seen), until, refused)
    explanation = None if past else await asked.manager.explain(found.id)
    return View(
        "job.html",
        f"{found.type} {found.id}",
        {
            "job": found,
            "state": moment.row["state"] if past and moment else found.state,
            "past": past,
            "moment": moment,
            "explanation": explanation,
            "mends": () if explanation is None else mends(asked, explanation),
            "lanes": lanes,
            "strays": timeline.strays(refused, lanes),
            "events": seen[-EVENTS_SHOWN:][::-1],
            "events_left_out": max(0, len(seen) - EVENTS_SHOWN),
            "all_events": events,
            "contents": _contents(asked, found),
            "failed": await _failed(asked, found),
            "log": found.log[-LOG_SHOWN:] if asked.sees_contents else [],
            "drawing": await _drawing(asked, found),
            "redriven_as": (await asked.manager.redriven_as([found.id])).get(found.id),
            "can_redrive": found.state in REDRIVABLE and asked.may_operate and not past,
            "can_cancel": found.state not in TERMINAL
            and found.state is not State.CANCELLING
            and asked.may_operate
            and not past,
            "can_update": found.state not in TERMINAL and asked.may_operate and not past,
            "can_delete": found.state in TERMINAL and asked.may_operate and not past,
            "is_leased": found.state in LEASED and not past,
        },
        same=_same(asked, found),
        topics=(f"job:{found.id}",),
        # Progress, checkpoints and log lines leave no event; nor does what explains a wait.
        every_seconds=None if past else (1.0 if found.state in LEASED else 2.0),
    )


def _moment(asked: Asked, events: Sequence[Event]) -> Moment | None:
    """`?at=SEQ`: after the last event up to that one. None: no events are left of it."""
    if not events:
        return None
    index = len(events)
    at = asked.word("at")
    if at is not None and at.isdecimal():
        index = max(1, sum(event.seq <= int(at) for event in events))
    return Moment(index, len(events), events[index - 1], history.fold(events[:index]))


def _contents(asked: Asked, found: Job) -> list[contents.Content]:
    if not asked.sees_contents:
        return []
    parts = (
        contents.content("arguments", found.payload_json),
        contents.content("result", found.result_json),
        contents.content("checkpoint", found.checkpoint_json),
    )
    return [part for part in parts if part is not None]


async def _failed(asked: Asked, found: Job) -> Sequence[Any]:
    """The last attempts that failed, with their stacks: the newest first."""
    if not asked.sees_contents or not (found.failures or found.losses):
        return ()
    return (await asked.manager.failed_attempts(found.id))[::-1]


async def _drawing(asked: Asked, found: Job) -> Any:
    """What it waits for and what waits for it; nothing where it stands alone."""
    around = await asked.manager.graph(found.id, depth=GRAPH_DEPTH, nodes_max=GRAPH_NODES)
    if len(around.nodes) < 2:  # noqa: PLR2004 - itself
        return None
    nodes = [graph.Node(one.id, one.type, one.state) for one in around.nodes]
    edges = [(link.before, link.after) for link in around.links]
    return graph.draw(graph.lay_out(nodes, edges), asked.links, here=found.id)


async def _refused(asked: Asked, found: Job, until: datetime) -> list[timeline.Refused]:
    """Writes that came too late, up to the moment that is looked at."""
    since = max(found.created_at, asked.now - REFUSED_KEPT)
    noted = await asked.manager.refused_writes(since, job_id=found.id)
    return [
        timeline.Refused(
            one.at, one.worker, one.attempt, one.verb, one.code, one.held_by, one.held_attempt
        )
        for one in noted.writes[::-1]
        if one.at <= until or found.is_terminal
    ]


@dataclass(frozen=True)
class Mend:
    """What can be done about a reason: a link, or an act."""

    told: str
    href: str | None = None
    act: str | None = None
    fields: tuple[tuple[str, str], ...] = ()


def mends(asked: Asked, explanation: Explanation) -> list[Sequence[Mend]]:
    """For each reason, in order, what would mend it."""
    return [
        [
            one
            for one in _mends(asked, explanation.job, reason)
            if one.act is None or asked.may_operate
        ]
        for reason in explanation.reasons
    ]


def _mends(asked: Asked, found: Job, reason: Any) -> Sequence[Mend]:
    queue = asked.links.to("queue", name=found.queue)
    match reason.why:
        case Why.PAUSED:
            return [Mend("Resume the queue", act="resume", fields=(("queue", found.queue),))]
        case Why.NOT_DUE:
            return [Mend("Run it now", act="reschedule", fields=(("id", found.id),))]
        case Why.CONCURRENCY_LIMIT | Why.RATE_LIMIT:
            return [
                Mend(
                    "Who holds the slots",
                    href=asked.links.to("jobs", queue=found.queue, state="running"),
                ),
                Mend("Its limits", href=asked.links.to("limits", queue=found.queue)),
            ]
        case Why.NO_WORKER:
            return [Mend("Workers", href=asked.links.to("workers"))]
        case Why.NO_ROOM | Why.BEHIND | Why.READY:
            return [
                Mend("Its queue", href=queue),
                Mend(
                    "Make it critical",
                    act="update",
                    fields=(("id", found.id), ("priority", "critical")),
                ),
            ]
        case Why.BLOCKED:
            return [Mend("What it waits for", href="#graph")]
        case Why.LEASE_LAPSED | Why.RUNNING | Why.CANCELLING:
            return [Mend("Its worker", href=asked.links.to("worker", name=found.assignee))]
        case _:
            return []


def _same(asked: Asked, found: Job) -> Sequence[Same]:
    tenant = asked.manager.tenant
    path, job_id = "/jobs/{}", found.id
    return (
        Same(
            "Show this job",
            command("show", job_id, tenant=tenant),
            curl(asked.address, path, job_id),
        ),
        Same(
            "Its events",
            command("events", job=job_id, tenant=tenant),
            curl(asked.address, f"{path}/events", job_id),
        ),
        Same(
            "Why is it not running?",
            command("explain", job_id, tenant=tenant),
            curl(asked.address, f"{path}/explain", job_id),
        ),
        *(
            Same(
                f"{act.title()} it",
                command(act, job_id, tenant=tenant),
                curl(asked.address, f"{path}/{act}", job_id, method="POST", body={}),
            )
            for act in (["redrive"] if found.state in REDRIVABLE else [])
            + ([] if found.is_terminal else ["cancel"])
        ),
    )
