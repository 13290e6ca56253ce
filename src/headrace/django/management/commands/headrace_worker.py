"""`manage.py headrace_worker`: `headrace worker` for the tasks of this project, with the same options."""

from __future__ import annotations

import argparse
import sys
from typing import Any

from django.core.management.base import BaseCommand

from headrace.cli import main

_BaseCommand: Any = BaseCommand


class Command(_BaseCommand):  # type: ignore[misc]  # Django has no types
    help = "Run the enqueued tasks of this project. Options are those of `headrace worker`."

    def run_from_argv(self, argv: list[str]) -> None:
        """Django's own options are for Django, which has obeyed them by now; all others are the worker's."""
        django_only = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
        django_only.add_argument("--settings")
        django_only.add_argument("--pythonpath")
        _, words = django_only.parse_known_args(argv[2:])
        sys.exit(main(["worker", "headrace.django.worker:app", *words]))

    def handle(self, *_: object, **__: object) -> None:
        """For `call_command`: a worker with its default options."""
        sys.exit(main(["worker", "headrace.django.worker:app"]))
