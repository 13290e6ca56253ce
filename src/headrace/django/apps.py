"""The application of Django that brings `manage.py headrace_worker`."""

from typing import Any

from django.apps import AppConfig

_AppConfig: Any = AppConfig


class HeadraceConfig(_AppConfig):  # type: ignore[misc]  # Django has no types
    name = "headrace.django"
    label = "headrace"
    verbose_name = "Headrace"
