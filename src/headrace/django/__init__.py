"""Headrace behind Django's own tasks, `django.tasks`.

    TASKS = {"default": {"BACKEND": "headrace.django.HeadraceBackend", "OPTIONS": {"url": "postgresql://…"}}}
    INSTALLED_APPS = [..., "headrace.django"]   # for manage.py headrace_worker

Importing it needs Django, which is no dependency of Headrace: whoever names the backend has it.
"""

from headrace.django.backend import HeadraceBackend

__all__ = ["HeadraceBackend"]
