"""Silver tables written by hand: lives of jobs, event by event, and the rows they come to.

Plain Python, apart from the code that folds events in the product: what gold says is compared with this.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa

from headrace.model import CLAIMABLE, LEASED, TERMINAL

TIME = pa.timestamp("us", tz="UTC")

JOBS = pa.schema(
    [
        ("job_id", pa.string()),
        ("born_seq", pa.int64()),
        ("tenant", pa.string()),
        ("queue", pa.string()),
        ("type", pa.string()),
        ("priority", pa.int32()),
        ("state", pa.string()),
        ("version", pa.int32()),
        ("attempt", pa.int32()),
        ("failures", pa.int32()),
        ("losses", pa.int32()),
        ("created_at", TIME),
        ("run_at", TIME),
        ("updated_at", TIME),
        ("started_at", TIME),
        ("finalized_at", TIME),
        ("category", pa.string()),
        ("code", pa.string()),
        ("message", pa.string()),
        ("wait_us", pa.int64()),
        ("run_us", pa.int64()),
        ("dependencies", pa.list_(pa.struct([("job_id", pa.string()), ("kind", pa.string())]))),
        ("first_run_at", TIME),
        ("failed_seq", pa.int64()),
        ("last_seq", pa.int64()),
        ("last_at", TIME),
        ("last_before", pa.string()),
        ("created_on", pa.date32()),
    ]
)
"""The columns of silver's jobs that gold reads."""

ATTEMPTS = pa.schema(
    [
        ("job_id", pa.string()),
        ("born_seq", pa.int64()),
        ("attempt", pa.int32()),
        ("tenant", pa.string()),
        ("queue", pa.string()),
        ("type", pa.string()),
        ("priority", pa.int32()),
        ("worker", pa.string()),
        ("ready_at", TIME),
        ("leased_at", TIME),
        ("ended_at", TIME),
        ("outcome", pa.string()),
        ("state_after", pa.string()),
        ("category", pa.string()),
        ("code", pa.string()),
        ("message", pa.string()),
        ("wait_us", pa.int64()),
        ("run_us", pa.int64()),
        ("result_bytes", pa.int64()),
        ("leased_seq", pa.int64()),
        ("ended_seq", pa.int64()),
        ("leased_on", pa.date32()),
    ]
)

LEVELS = pa.schema(
    [
        ("queue", pa.string()),
        ("minute", TIME),
        ("waiting", pa.int64()),
        ("ready", pa.int64()),
        ("running", pa.int64()),
        ("changes", pa.int64()),
    ]
)

_STATE_OF = {
    "unblocked": "pending",
    "leased": "running",
    "snoozed": "retrying",
    "released": "retrying",
}
"""The state after an event, where it is not called as the event is."""


class Life:
    """One job from its submission on. Each method is one event."""

    def __init__(
        self,
        job_id: str,
        at: datetime,
        *,
        tenant: str = "default",
        queue: str = "default",
        type: str = "work",
        due: datetime | None = None,
        needs: Sequence[str] = (),
    ) -> None:
        self.job_id = job_id
        self.who = {"tenant": tenant, "queue": queue, "type": type}
        self.needs = needs
        self.events: list[dict[str, Any]] = []
        self.run_at = at if due is None else due
        self.attempt = self.failures = self.losses = 0
        self._add(at, "enqueued", "blocked" if needs else "pending")

    @property
    def state(self) -> str:
        return str(self.events[-1]["after"])

    @property
    def at(self) -> datetime:
        """Of the last event."""
        moment: datetime = self.events[-1]["at"]
        return moment

    @property
    def ready_at(self) -> datetime:
        return max(self.run_at, self.at)

    def unblocked(self, at: datetime) -> Life:
        return self._add(at, "unblocked")

    def leased(self, at: datetime, worker: str) -> Life:
        wait = at - self.ready_at
        self.attempt += 1
        return self._add(at, "leased", worker=worker, wait_us=_us(wait))

    def completed(self, at: datetime) -> Life:
        return self._add(at, "completed")

    def retrying(
        self, at: datetime, again: datetime, message: str, code: str | None = None
    ) -> Life:
        self.failures += 1
        self.run_at = again
        return self._add(at, "retrying", category="temporary", code=code, message=message)

    def ended(
        self, at: datetime, kind: str, category: str, message: str, code: str | None = None
    ) -> Life:
        """Failed, dead, cancelled or abandoned."""
        self.failures += kind in {"failed", "dead"}
        return self._add(at, kind, category=category, code=code, message=message)

    def lost(self, at: datetime) -> Life:
        self.losses += 1
        return self._add(
            at, "lost", category="system", code="lease_expired", message="the lease lapsed"
        )

    def snoozed(self, at: datetime, again: datetime) -> Life:
        self.run_at = again
        return self._add(at, "snoozed")

    def released(self, at: datetime) -> Life:
        return self._add(at, "released")

    def _add(self, at: datetime, kind: str, after: str | None = None, **more: Any) -> Life:
        before = self.events[-1]["after"] if self.events else None
        after = after or _STATE_OF.get(kind, kind)
        leaves = before in LEASED and after not in LEASED
        begun = next((one for one in reversed(self.events) if one["kind"] == "leased"), None)
        told = {
            "at": at,
            "kind": kind,
            "before": before,
            "after": after,
            "version": len(self.events) + 1,
            "attempt": self.attempt,
            "failures": self.failures,
            "losses": self.losses,
            "run_at": self.run_at,
            "worker": None if begun is None else begun["worker"],
            "run_us": _us(at - begun["at"]) if leaves and begun is not None else None,
        }
        self.events.append(told | more)
        return self


def silver(lives: Sequence[Life]) -> tuple[pa.Table, pa.Table, pa.Table]:
    """The tables of jobs, of attempts and of levels that these lives come to."""
    events = sorted(
        ((event["at"], index, event) for index, life in enumerate(lives) for event in life.events),
        key=lambda one: (one[0], one[1], one[2]["version"]),
    )
    for seq, (_, _, event) in enumerate(events, start=1):
        event["seq"] = seq
    jobs = [_job(life) for life in lives]
    attempts = [row for life in lives for row in _attempts(life)]
    levels = [row for life in lives for row in _levels(life)]
    return (
        pa.Table.from_pylist(jobs, JOBS),
        pa.Table.from_pylist(attempts, ATTEMPTS),
        pa.Table.from_pylist(levels, LEVELS),
    )


def _job(life: Life) -> dict[str, Any]:
    first, last = life.events[0], life.events[-1]
    blame: dict[str, Any] = next((one for one in reversed(life.events) if one.get("message")), {})
    leases = [one for one in life.events if one["kind"] == "leased"]
    return {
        **life.who,
        "job_id": life.job_id,
        "born_seq": first["seq"],
        "priority": 2,
        "state": last["after"],
        "version": last["version"],
        "attempt": life.attempt,
        "failures": life.failures,
        "losses": life.losses,
        "created_at": first["at"],
        "run_at": life.run_at,
        "updated_at": last["at"],
        "started_at": leases[0]["at"] if leases else None,
        "finalized_at": last["at"] if last["after"] in TERMINAL else None,
        **{name: blame.get(name) for name in ("category", "code", "message")},
        "wait_us": sum(one["wait_us"] for one in leases),
        "run_us": sum(one["run_us"] or 0 for one in life.events),
        "dependencies": [{"job_id": need, "kind": "after"} for need in life.needs],
        "first_run_at": first["run_at"],
        "failed_seq": blame.get("seq"),
        "last_seq": last["seq"],
        "last_at": last["at"],
        "last_before": last["before"],
        "created_on": first["at"].date(),
    }


def _attempts(life: Life) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    for event in life.events:
        if event["kind"] == "leased":
            rows.append(
                {
                    **life.who,
                    "job_id": life.job_id,
                    "born_seq": life.events[0]["seq"],
                    "attempt": event["attempt"],
                    "priority": 2,
                    "worker": event["worker"],
                    "ready_at": event["at"] - timedelta(microseconds=event["wait_us"]),
                    "leased_at": event["at"],
                    "wait_us": event["wait_us"],
                    "leased_seq": event["seq"],
                    "leased_on": event["at"].astimezone(UTC).date(),
                }
            )
        elif event["run_us"] is not None:
            rows[-1] |= {
                "ended_at": event["at"],
                "outcome": event["kind"],
                "state_after": event["after"],
                "run_us": event["run_us"],
                "ended_seq": event["seq"],
                **{name: event.get(name) for name in ("category", "code", "message")},
            }
    return rows


def _levels(life: Life) -> Iterator[dict[str, Any]]:
    """Each moment at which the job comes to stand otherwise, and by how much its queue's levels rise then."""
    stood = {"waiting": 0, "ready": 0, "running": 0}
    for event, after in itertools.zip_longest(life.events, life.events[1:]):
        for at in (event["at"], event["run_at"]):
            if at < event["at"] or (after is not None and at > after["at"]):
                continue  # due before, or gone before it was due
            state = event["after"]
            stands = {
                "waiting": int(state not in TERMINAL and state not in LEASED),
                "ready": int(state in CLAIMABLE and event["run_at"] <= at),
                "running": int(state in LEASED),
            }
            if stands != stood:
                rises = {name: stands[name] - stood[name] for name in stood}
                minute = at.replace(second=0, microsecond=0)
                yield {"queue": life.who["queue"], "minute": minute, **rises, "changes": 1}
                stood = stands


def _us(span: timedelta) -> int:
    return span // timedelta(microseconds=1)
