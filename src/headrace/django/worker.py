"""The application of a Django project: `headrace worker headrace.django.worker:app` runs its tasks."""

from __future__ import annotations

import django
from django.apps import apps
from django.conf import settings
from django.utils.module_loading import autodiscover_modules

from headrace.app import Headrace
from headrace.django.backend import HeadraceBackend
from headrace.django.interface import task_backends
from headrace.errors import InvalidInput


def load() -> Headrace:
    """That of the first backend in TASKS that is Headrace's, with the tasks of all installed apps."""
    if not apps.ready:
        django.setup()
    autodiscover_modules("tasks")
    for alias in getattr(settings, "TASKS", {}):
        backend = task_backends[alias]
        if isinstance(backend, HeadraceBackend):
            app: Headrace = backend.app
            return app
    raise InvalidInput(
        "no backend in TASKS of the settings is headrace.django.HeadraceBackend; nothing was started"
    )


app = load()
