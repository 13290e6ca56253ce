"""Every route there is."""

from headrace.api import jobs, probes
from headrace.api.route import Route

ROUTES: tuple[Route, ...] = (*jobs.ROUTES, *probes.ROUTES)
