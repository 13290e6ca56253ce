"""Every route there is."""

from headrace.api import (
    administration,
    bulk,
    events,
    jobs,
    probes,
    questions,
    queues,
    schedules,
    work,
)
from headrace.api.route import Route

ROUTES: tuple[Route, ...] = (
    *jobs.ROUTES,
    *work.ROUTES,
    *events.ROUTES,
    *queues.ROUTES,
    *schedules.ROUTES,
    *questions.ROUTES,
    *bulk.ROUTES,
    *administration.ROUTES,
    *probes.ROUTES,
)
