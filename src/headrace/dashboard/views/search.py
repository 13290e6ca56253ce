"""The one field that finds anything: a job by its id, a queue, a type, a worker, a schedule, a tag."""

from __future__ import annotations

from typing import NamedTuple

from headrace.dashboard.asked import Asked, View
from headrace.dashboard.navigation import SECTIONS
from headrace.dashboard.views.presence import seen_lately
from headrace.errors import HeadraceError, JobNotFound

HITS_MAX = 20
TYPES_FROM = 200
"""The newest jobs: the types among them are known by name."""


class Hit(NamedTuple):
    kind: str
    name: str
    href: str


async def search(asked: Asked) -> str | View:
    """Where the one thing that is meant is, or the page to choose on."""
    text = (asked.word("q") or "").strip()
    found = await hits(asked, text)
    if found and found[0].kind == "job":
        return found[0].href
    exact = [hit for hit in found if hit.name == text]
    if len(exact) == 1:
        return exact[0].href
    return View("search.html", f"Search: {text}", {"text": text, "hits": found}, every_seconds=None)


async def hits(asked: Asked, text: str) -> list[Hit]:
    """A job by its whole id first; then what has the text in its name."""
    text = text.strip()
    links, manager = asked.links, asked.manager
    found: list[Hit] = []
    if text:
        try:
            job = await manager.get(text)
            found.append(Hit("job", f"{job.type} {job.id}", links.to("job", id=job.id)))
        except (JobNotFound, HeadraceError):
            pass
    wanted = text.casefold()

    def takes(name: str) -> bool:
        return wanted in name.casefold()

    found += (
        Hit("page", section.name, links.to(section.path))
        for section in SECTIONS
        if takes(section.name) and (asked.may_administer or not section.for_operators)
    )
    tallies = (await manager.overview()).tallies
    queues = sorted({tally.queue for tally in tallies})
    found += (Hit("queue", name, links.to("queue", name=name)) for name in queues if takes(name))
    newest = (await manager.find(newest_first=True, limit=TYPES_FROM)).jobs
    types = sorted({job.type for job in newest})
    found += (Hit("type", name, links.to("jobs", type=name)) for name in types if takes(name))
    found += (
        Hit("worker", one.seen.worker, links.to("worker", name=one.seen.worker))
        for one in await seen_lately(asked)
        if takes(one.seen.worker)
    )
    found += (
        Hit("schedule", one.name, links.to("schedules"))
        for one in await manager.schedules()
        if takes(one.name)
    )
    if "=" in text:
        found.append(Hit("tag", text, links.to("jobs", tag=text)))
    return found[:HITS_MAX]
