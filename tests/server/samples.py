"""A request for every route of the table, made from the route itself as far as that goes."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from headrace.api.route import LEASE_HEADER, Route

LATELY = (datetime.now(UTC) - timedelta(hours=1)).isoformat()
JOB = {"type": "t", "payload": 1}

BODIES: Mapping[str, Any] = {
    "submit_job": JOB,
    "start_bulk": {"act": "cancel", "where": {"queues": ["mail"]}},
    "submit_jobs": {"jobs": [JOB]},
    "submit_batch": {"jobs": [JOB]},
    "look_up_jobs": {"ids": ["j"]},
    "cancel_job": {},
    "cancel_jobs": {"ids": ["j"]},
    "update_job": {"add_tags": ["x"]},
    "reschedule_job": {},
    "redrive_job": {},
    "redrive_jobs": {"ids": ["j"]},
    "delete_jobs": {"ids": ["j"]},
    "claim_jobs": {"worker": "w"},
    "announce_worker": {"worker": "w"},
    "extend_leases": {"leases": [{"job_id": "j", "lease": "x"}]},
    "check_leases": {"leases": [{"job_id": "j", "lease": "x"}]},
    "settle_jobs": {"outcomes": [{"outcome": "completed", "job_id": "j", "lease": "x"}]},
    "complete_job": {},
    "fail_job": {"message": "no"},
    "snooze_job": {"seconds": 5},
    "stop_job": {},
    "acknowledge_job": {"was_executing": True},
    "progress_job": {"fraction": 0.5},
    "checkpoint_job": {"value": 1},
    "log_job": {"lines": [{"message": "x"}]},
    "spawn_job": {"jobs": [JOB]},
    "set_limits": {"concurrency": 1},
    "put_schedule": {"when": "1h", "job": JOB},
    "create_token": {"label": "x", "scopes": ["read"]},
    "sign_in": {"token": "x"},
}
"""By the name of the route: what it takes."""
QUERIES: Mapping[str, Any] = {
    "wait_for_job": {"seconds": 0.01},
    "get_history": {"since": LATELY},
    "list_error_groups": {"since": LATELY},
    "list_audit": {"since": LATELY},
    "list_refused_writes": {"since": LATELY},
    "get_cursor": {"at": LATELY},
}
"""The same of queries, where there must be one."""
PARAMETERS: Mapping[str, str] = {
    "job_id": "j",
    "batch_id": "b",
    "act_id": "a",
    "queue": "mail",
    "worker": "w",
    "name": "nightly",
    "token_id": "0123456789ab",
    "step": "reap",
    "slug": "job-not-found",
}


def request_of(route: Route, **parameters: str) -> dict[str, Any]:
    """The arguments for `client.request`."""
    request: dict[str, Any] = {
        "method": route.method,
        "url": route.address(**{**PARAMETERS, **parameters}),
    }
    if route.name in QUERIES:
        request["params"] = QUERIES[route.name]
    if route.body is not None:
        request["json"] = BODIES[route.name]
    if LEASE_HEADER in route.headers:
        request["headers"] = {LEASE_HEADER: "x"}
    return request
