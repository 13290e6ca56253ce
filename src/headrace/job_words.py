"""Methods that jobs have in other libraries, and what to write here. Pure.

A job is a record: it knows no store.
"""

from __future__ import annotations

from typing import Final, NoReturn

ELSEWHERE: Final = {
    "cancel": "await app.cancel(job)",
    "delete": "await (await app.manager()).delete([job.id])",
    "get": "await app.wait(job), with a timeout",
    "ready": "(await app.get(job)).is_terminal",
    "refresh": "await app.get(job), which gives the job as it is now",
    "retry": "await (await app.manager()).redrive([job.id])",
    "revoke": "await app.cancel(job)",
    "status": "job.state",
    "successful": "job.state is State.COMPLETED",
    "update": "await app.update(job, priority=…)",
    "wait": "await app.wait(job)",
}


class Elsewhere:
    """Stands for a method that there is not: an AttributeError that says what to write."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __get__(self, job: object, owner: type | None = None) -> NoReturn:
        raise AttributeError(
            f"'Job' object has no attribute {self._name!r}: write {ELSEWHERE[self._name]} "
            "(without an event loop app.sync has the same methods)"
        )
