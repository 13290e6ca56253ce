"""A believable day of a small company: three queues, twelve types, six workers, an incident at noon.

Every job is simulated, from a seed: arrivals by the hour of the day, a limited number of slots, run times
with long tails, errors that repeat with different names and numbers in them, retries with backoff, a worker
that dies, chains and fans of jobs.
"""

from __future__ import annotations

import heapq
import itertools
import math
import random
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import NamedTuple

from tests.report.history import Life

MIDNIGHT = datetime(2026, 11, 15, tzinfo=UTC)
TENANTS = {"acme": 0.55, "bolt": 0.25, "cyan": 0.15, "dune": 0.05}
WORKERS = tuple(f"worker-{number}" for number in range(1, 7))
SLOTS = 1
INCIDENT = (12.0, 12.75)
"""Hours of the day in which the mail server refuses connections."""
DEATH = 12.2
"""When worker-4 dies; it is back two hours later."""
_BACK = 14.2
_LEASE_SECONDS = 30.0
_WAKE_SECONDS = 0.03
_ATTEMPTS_MAX = 4


class Kind(NamedTuple):
    """A type of jobs: how often it comes, how long it runs, how it fails."""

    queue: str
    weight: float
    seconds: float
    spread: float
    failing: float
    message: str


KINDS = {
    "send_receipt": Kind(
        "mail", 22, 0.9, 0.5, 0.01, "SMTP {n}: mailbox 'user{n}@example.org' is full"
    ),
    "send_newsletter": Kind("mail", 20, 1.4, 0.6, 0.01, "SMTP {n}: greylisted, try again in {n} s"),
    "send_password_reset": Kind(
        "mail", 6, 0.7, 0.4, 0.005, "SMTP {n}: greylisted, try again in {n} s"
    ),
    "notify_webhook": Kind(
        "mail", 12, 2.0, 1.1, 0.06, "POST to host{n}.example.net timed out after {n} s"
    ),
    "ingest": Kind("media", 3, 20.0, 0.5, 0.02, "checksum {x} does not match {x}"),
    "transcode": Kind("media", 0, 75.0, 0.7, 0.03, "encoder ended with code {n} at frame {n}"),
    "publish": Kind("media", 0, 6.0, 0.4, 0.01, "bucket 'media-{n}' is read-only"),
    "thumbnail": Kind("media", 9, 3.0, 0.6, 0.02, "cannot decode frame {n}"),
    "charge_card": Kind(
        "billing", 8, 1.8, 0.7, 0.03, "gateway answered {n}: card of customer {n} declined"
    ),
    "make_invoice": Kind("billing", 8, 2.5, 0.5, 0.004, "customer {n} has no address"),
    "send_dunning": Kind("billing", 2, 1.2, 0.5, 0.01, "customer {n} is locked"),
    "close_books": Kind("billing", 0.4, 140.0, 0.6, 0.03, "ledger {x} does not balance by {n}"),
}
_REFUSED = "connection to smtp{n}.example.org:25 refused"
_PERMANENT = frozenset({"charge_card", "make_invoice"})


class Day:
    """The simulation: a heap of what happens next, and the jobs that wait for a slot."""

    def __init__(self, jobs: int, seed: int = 7) -> None:
        self._rng = random.Random(seed)
        self._tick = itertools.count()
        self._next: list[tuple[float, int, Callable[[float], None]]] = []
        self._waiting: list[tuple[float, int, Life]] = []
        self._slots = dict.fromkeys(WORKERS, SLOTS)
        self._running: dict[str, list[Life]] = {worker: [] for worker in WORKERS}
        self._followers: dict[str, list[Life]] = {}
        self._known: dict[str, Life] = {}
        self.lives: list[Life] = []
        for hour in self._arrivals(jobs):
            self._at(hour * 3600, self._arrive)
        self._at(DEATH * 3600, self._die)
        self._at(_BACK * 3600, self._come_back)

    def run(self) -> Sequence[Life]:
        """Until midnight; what runs or waits then is left so."""
        while self._next:
            now, _, happens = heapq.heappop(self._next)
            if now >= 24 * 3600:
                break
            happens(now)
            self._hand_out(now)
        return self.lives

    def _arrivals(self, jobs: int) -> Iterator[float]:
        """More by day than by night, and a newsletter's worth at nine."""
        for _ in range(jobs):
            while True:
                hour = self._rng.uniform(0, 24)
                busy = 0.25 + 0.75 * math.exp(-(((hour - 14) / 4.5) ** 2))
                if self._rng.random() < busy + (0.6 if 9 <= hour < 9.3 else 0):
                    yield hour
                    break

    def _at(self, second: float, happens: Callable[[float], None]) -> None:
        heapq.heappush(self._next, (second, next(self._tick), happens))

    # --- jobs ----------------------------------------------------------------------------------

    def _arrive(self, now: float) -> None:
        weights = [kind.weight for kind in KINDS.values()]
        (chosen,) = self._rng.choices(list(KINDS), weights)
        (tenant,) = self._rng.choices(list(TENANTS), list(TENANTS.values()))
        first = self._submit(now, chosen, tenant)
        if chosen == "ingest":
            sizes = [
                self._submit(now, "transcode", tenant, [first])
                for _ in range(self._rng.choice([1, 3]))
            ]
            self._submit(now, "publish", tenant, sizes)

    def _submit(self, now: float, type: str, tenant: str, needs: Sequence[Life] = ()) -> Life:
        life = Life(
            f"job-{len(self.lives):06}",
            _moment(now),
            tenant=tenant,
            queue=KINDS[type].queue,
            type=type,
            needs=[one.job_id for one in needs],
        )
        self.lives.append(life)
        self._known[life.job_id] = life
        for one in needs:
            self._followers.setdefault(one.job_id, []).append(life)
        if not needs:
            self._wait(life, now)
        return life

    def _wait(self, life: Life, due: float) -> None:
        self._at(due, lambda now: heapq.heappush(self._waiting, (now, next(self._tick), life)))

    # --- workers -------------------------------------------------------------------------------

    def _hand_out(self, now: float) -> None:
        while self._waiting and any(self._slots.values()):
            _, _, life = heapq.heappop(self._waiting)
            worker = max(self._slots, key=lambda one: (self._slots[one], self._rng.random()))
            self._slots[worker] -= 1
            self._running[worker].append(life)
            begun = now + self._rng.expovariate(1 / _WAKE_SECONDS)
            life.leased(_moment(begun), worker)
            kind = KINDS[life.who["type"]]
            run = kind.seconds * self._rng.lognormvariate(0, kind.spread)
            failing, message = self._trouble(life, now)
            failed = message if self._rng.random() < failing else None
            run = min(run, 0.4) if failed == _REFUSED else run
            self._at(begun + run, partial(self._finish, life, worker, life.attempt, failed))

    def _trouble(self, life: Life, now: float) -> tuple[float, str]:
        kind = KINDS[life.who["type"]]
        if kind.queue == "mail" and INCIDENT[0] <= now / 3600 < INCIDENT[1]:
            return 0.7, _REFUSED
        return kind.failing, kind.message

    def _finish(
        self, life: Life, worker: str, attempt: int, failed: str | None, now: float
    ) -> None:
        if life.attempt != attempt or life not in self._running[worker]:
            return  # its worker died meanwhile
        self._slots[worker] += 1
        self._running[worker].remove(life)
        moment = _moment(now)
        if failed is None:
            life.completed(moment)
            self._follow(life, now)
            return
        message = self._filled(failed)
        code = failed.split(" ", 1)[0].strip(":").lower()
        if life.who["type"] in _PERMANENT:
            life.ended(moment, "failed", "permanent", message, code)
        elif life.attempt >= _ATTEMPTS_MAX:
            life.ended(moment, "dead", "temporary", message, code)
        else:
            pause = 20 * 3**life.attempt * self._rng.uniform(0.8, 1.2)
            life.retrying(moment, _moment(now + pause), message, code)
            self._wait(life, now + pause)
            return
        self._follow(life, now)

    def _follow(self, life: Life, now: float) -> None:
        for follower in self._followers.pop(life.job_id, ()):
            if follower.state != "blocked":
                continue
            ends = [self._known[need] for need in follower.needs]
            if life.state != "completed":
                follower.ended(
                    _moment(now), life.state, "permanent", f"job {life.job_id} ended {life.state}"
                )
                self._follow(follower, now)
            elif all(one.state == "completed" for one in ends):
                follower.unblocked(_moment(now))
                self._wait(follower, now)

    def _die(self, now: float) -> None:
        self._slots[WORKERS[3]] = 0
        held = self._running[WORKERS[3]]
        self._running[WORKERS[3]] = []

        def lapse(then: float) -> None:
            for life in held:
                life.lost(_moment(then))
                self._wait(life, then)

        self._at(now + _LEASE_SECONDS, lapse)

    def _come_back(self, _: float) -> None:
        self._slots[WORKERS[3]] = SLOTS

    def _filled(self, message: str) -> str:
        while "{" in message:
            message = message.replace("{n}", str(self._rng.randrange(1, 9000)), 1)
            message = message.replace("{x}", f"{self._rng.getrandbits(48):012x}", 1)
        return message


def _moment(second: float) -> datetime:
    return MIDNIGHT + timedelta(seconds=round(second, 6))
