"""Which handler serves which route: every route of the table has one."""

from headrace.api.table import ROUTES
from headrace.server import (
    administration,
    bulk,
    events,
    jobs,
    probes,
    questions,
    queues,
    schedules,
    sessions,
    work,
)
from headrace.server.call import Handlers

HANDLERS: Handlers = {
    **jobs.HANDLERS,
    **work.HANDLERS,
    **events.HANDLERS,
    **queues.HANDLERS,
    **schedules.HANDLERS,
    **questions.HANDLERS,
    **bulk.HANDLERS,
    **sessions.HANDLERS,
    **administration.HANDLERS,
    **probes.HANDLERS,
}

_without = [route.name for route in ROUTES if route not in HANDLERS]
assert not _without, f"no handler serves {_without}"
