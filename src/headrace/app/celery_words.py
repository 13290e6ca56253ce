"""Words of Celery and RQ that people write from habit, and what to write here instead."""

from __future__ import annotations

from typing import Final

APPLICATION: Final = {
    "backend": "leave it out, results are kept in the store",
    "broker": "write the store's url first, Headrace('redis://localhost')",
    "broker_url": "write the store's url first, Headrace('redis://localhost')",
    "connection": "write the store's url first, Headrace('redis://localhost')",
    "include": "import the modules whose functions are tasks",
    "result_backend": "leave it out, results are kept in the store",
}
"""Arguments of an application."""

OPTIONS: Final = {
    "acks_late": "leave it out, a job is acknowledged when its handler has ended",
    "autoretry_for": "leave it out, every exception is retried but PermanentError",
    "bind": "leave it out, and give the handler a first parameter of type Context or SyncContext",
    "countdown": "write delay=, in seconds or as text: '5m'",
    "default_retry_delay": "write retry=Constant(5), of headrace.retry",
    "eta": "write run_at=, a datetime with its zone",
    "expires": "write lifetime=, from the submission on",
    "ignore_result": "leave it out, a result is kept with its job",
    "job_timeout": "write timeout=",
    "link": "write on_success=",
    "link_error": "write on_failure=",
    "max_retries": "write max_attempts=, which counts the first attempt, too",
    "schedule": "write await app.schedule(name, Cron('0 6 * * *'), task.spec())",
    "rate_limit": "limits belong to a queue: headrace limits set QUEUE --rate 10/m",
    "retry_backoff": "write retry=Exponential(), of headrace.retry",
    "soft_time_limit": "write timeout=",
    "task_id": "write id=",
    "time_limit": "write timeout=",
    "visibility_timeout": "write lease=",
}
"""Options of a task or of a call, none of which is also one of ours."""

_SUBMIT = "write await task.submit(…), or task.submit_sync(…) without an event loop"
_SPEC = "write task.spec(…), for app.chain, app.group and app.submit_batch"

METHODS: Final = {
    "apply": "call the task",
    "apply_async": f"{_SUBMIT}; options are given before, task.options(delay='5m').submit(…)",
    "delay": _SUBMIT,
    "enqueue": _SUBMIT,
    "s": _SPEC,
    "send": _SUBMIT,
    "si": _SPEC,
    "signature": _SPEC,
}
"""Methods of a task."""
