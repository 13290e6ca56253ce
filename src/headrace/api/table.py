"""Every route there is."""

from headrace.api import administration, events, jobs, probes, queues, schedules, work
from headrace.api.route import Route

ROUTES: tuple[Route, ...] = (
    *jobs.ROUTES,
    *work.ROUTES,
    *events.ROUTES,
    *queues.ROUTES,
    *schedules.ROUTES,
    *administration.ROUTES,
    *probes.ROUTES,
)
