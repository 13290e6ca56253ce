"""Which waiting jobs of limited queues a claim may take: slots, tokens and turns. Pure.

`allocate` looks at the lanes that have due jobs and at what is leased now, and says how many to take from
each. It takes for granted that nobody claims from these queues meanwhile: the gate's version sees to that.
"""

from __future__ import annotations

import enum
import heapq
import sys
from collections import Counter, deque
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Generic, NamedTuple, Protocol, TypeVar

import msgspec

from headrace.clock import from_us, to_us
from headrace.limits import Gate, GateState, Rate

BUCKETS_MAX = 10_000
"""So many keys of a queue can be short of tokens at a time; further keys wait until one is full again."""
LEADS_MAX = 4096
"""So many tenants take turns at one priority; beyond that a round ends early."""
_UNLIMITED = sys.maxsize
LATE_NS = 100_000_000
"""A token that is taken so much after it came, and before the next one, puts off none of those behind it: no
claim is made at the very moment. So in a span of T seconds as many more may start as come in this time, but
never as much as one more in a span of whole tokens."""
_TINY = 1e-9
"""A lead below this is what rounding left over."""
_NS_PER_US = 1000
_QUEUE = ()


class Lane(Protocol):
    """Waiting jobs of one tenant, type, priority and key: a store's `Head`."""

    @property
    def tenant(self) -> str: ...
    @property
    def priority(self) -> int: ...
    @property
    def limit_key(self) -> str | None: ...
    @property
    def run_at(self) -> datetime:
        """Of its first job."""
        ...

    @property
    def jobs(self) -> int: ...


class Holding(Protocol):
    """Leases that hold, of one tenant and key: a store's `Held`."""

    @property
    def tenant(self) -> str: ...
    @property
    def limit_key(self) -> str | None: ...
    @property
    def jobs(self) -> int: ...


L = TypeVar("L", bound=Lane)


class Demand(NamedTuple, Generic[L]):
    """One limited queue as it stands."""

    gate: Gate
    lanes: Sequence[L]
    held: Sequence[Holding]


class Allocation(NamedTuple, Generic[L]):
    """How many jobs to take from which lanes, in order, and the gate once they are taken."""

    shares: Sequence[tuple[L, int]]
    gate: Gate
    next_at: datetime | None
    """When time alone lets one more of the jobs that wait start. None: none waits, or not for time."""


class Scope(enum.StrEnum):
    """Whose limit it is."""

    QUEUE = "queue"
    TENANT = "tenant"
    KEY = "key"


class Obstacle(msgspec.Struct, frozen=True):
    """A limit that lets no further job start now."""

    scope: Scope
    limit: int | Rate
    """A number of jobs at a time, or a rate."""
    next_at: datetime | None = None
    """Of a rate: when the next token comes."""


def allocate(demands: Sequence[Demand[L]], limit: int, now: datetime) -> list[Allocation[L]]:
    """Up to `limit` jobs of all these queues together; one answer per queue.

    More urgent jobs come first, whatever their queue and tenant. Among jobs of one priority the queue
    with the longest waiting job comes first; within it the lane with the longest waiting job or, where
    tenants take turns, that lane of the tenant whose turn it is.
    """
    queues = [_Queue(demand, now) for demand in demands]
    for level in sorted({lane.priority for demand in demands for lane in demand.lanes}):
        waiting = [queue for queue in queues if level in queue.levels]
        for queue in sorted(waiting, key=lambda queue: queue.levels[level][0].lane.run_at):
            limit -= queue.serve(level, limit)
    return [queue.allocated() for queue in queues]


def room(gate: Gate, held: Sequence[Holding], now: datetime) -> int:
    """How many jobs the queue's own limits let start now, whatever waits."""
    return _Meter(gate, held, now).room_of_queue()


def next_token_at(gate: Gate, held: Sequence[Holding], now: datetime) -> datetime | None:
    """When a token comes to a queue that has none; None: it has some, or no slot either."""
    return _Meter(gate, held, now).next_of_queue()


def give_back(gate: Gate, unused: Iterable[tuple[Lane, int]], now: datetime) -> Gate:
    """The gate without what was charged for jobs that did not start after all."""
    meter = _Meter(gate, (), now)
    leads = {level: dict(tenants) for level, tenants in gate.state.leads.items()}
    for lane, jobs in unused:
        meter.charge(lane.tenant, lane.limit_key, -jobs)
        tenants = leads.get(lane.priority, {})
        if lane.tenant in tenants:
            tenants[lane.tenant] -= jobs / gate.limits.weight(lane.tenant)
    return meter.gate({level: _ahead(tenants, 0.0) for level, tenants in leads.items()})


def caught_up(gate: Gate, now: datetime) -> Gate:
    """The gate after its clock was set back: a bucket that could not be as empty by now is just empty."""
    state, now_ns = gate.state, to_us(now) * _NS_PER_US

    def of(rate: Rate | None, full_at_ns: int) -> int:
        if rate is None:
            return full_at_ns
        return min(full_at_ns, now_ns + rate.capacity * rate.interval_ns)

    keys = {
        tenant: {key: of(gate.limits.key_rate, full_at_ns) for key, full_at_ns in keys.items()}
        for tenant, keys in state.keys_full_at_ns.items()
    }
    return Gate(gate.limits, GateState(of(gate.limits.rate, state.full_at_ns), keys, state.leads))


def obstacles(
    gate: Gate, held: Sequence[Holding], tenant: str, limit_key: str | None, now: datetime
) -> list[Obstacle]:
    """Every limit that keeps a due job of this tenant and key from starting now."""
    return _Meter(gate, held, now).obstacles(tenant, limit_key)


class _Meter:
    """Slots and tokens of one queue, counted down as jobs are taken."""

    def __init__(self, gate: Gate, held: Iterable[Holding], now: datetime) -> None:
        self._limits = gate.limits
        self._now_ns = to_us(now) * _NS_PER_US
        self._held: Counter[tuple[str | None, ...]] = Counter()
        for holding in held:
            self._occupy(holding.tenant, holding.limit_key, holding.jobs)
        self._full_at_ns = gate.state.full_at_ns
        self._keys_full_at_ns = self._keys_since(gate, LATE_NS)
        if len(self._keys_full_at_ns) >= BUCKETS_MAX:
            self._keys_full_at_ns = self._keys_since(gate, 0)

    def room_of_queue(self) -> int:
        return min(
            self._slots(self._limits.concurrency, _QUEUE),
            self._tokens(self._limits.rate, self._full_at_ns),
        )

    def room(self, tenant: str, key: str | None) -> int:
        """How many more jobs of this tenant and key may start."""
        limits = self._limits
        room = min(self.room_of_queue(), self._slots(limits.tenant_concurrency, (tenant,)))
        if key is None:
            return room
        slots = self._slots(limits.key_concurrency, (tenant, key))
        return min(room, slots, self._key_tokens(tenant, key))

    def take(self, tenant: str, key: str | None, jobs: int) -> None:
        self._occupy(tenant, key, jobs)
        self.charge(tenant, key, jobs)

    def charge(self, tenant: str, key: str | None, jobs: int) -> None:
        """Take tokens; a negative number gives them back."""
        rate, key_rate = self._limits.rate, self._limits.key_rate
        if rate is not None:
            self._full_at_ns = self._charged(rate, self._full_at_ns, jobs)
        if key_rate is not None and key is not None:
            full_at_ns = self._keys_full_at_ns.get((tenant, key), 0)
            self._keys_full_at_ns[tenant, key] = self._charged(key_rate, full_at_ns, jobs)

    def next_of_queue(self) -> datetime | None:
        rate = self._limits.rate
        if rate is None or not self._slots(self._limits.concurrency, _QUEUE):
            return None
        if self._tokens(rate, self._full_at_ns):
            return None
        return self._next_at(rate, self._full_at_ns)

    def next_of_key(self, tenant: str, key: str | None) -> datetime | None:
        """When time lets a job of this tenant and key start, as far as its key goes."""
        rate = self._limits.key_rate
        if rate is None or key is None or self._key_tokens(tenant, key):
            return None
        own = self._keys_full_at_ns.get((tenant, key))
        if own is not None:
            return self._next_at(rate, own)
        return from_us(-(-min(self._keys_full_at_ns.values()) // _NS_PER_US))

    def obstacles(self, tenant: str, key: str | None) -> list[Obstacle]:
        limits = self._limits
        found = [
            Obstacle(scope, limit)
            for scope, limit, whose in (
                (Scope.QUEUE, limits.concurrency, _QUEUE),
                (Scope.TENANT, limits.tenant_concurrency, (tenant,)),
                (Scope.KEY, None if key is None else limits.key_concurrency, (tenant, key)),
            )
            if limit is not None and self._slots(limit, whose) == 0
        ]
        if limits.rate is not None and self._tokens(limits.rate, self._full_at_ns) == 0:
            next_at = self._next_at(limits.rate, self._full_at_ns)
            found.append(Obstacle(Scope.QUEUE, limits.rate, next_at))
        next_of_key = self.next_of_key(tenant, key)
        if limits.key_rate is not None and next_of_key is not None:
            found.append(Obstacle(Scope.KEY, limits.key_rate, next_of_key))
        return found

    def gate(self, leads: Mapping[int, Mapping[str, float]]) -> Gate:
        """What is to be stored: nothing about buckets that are full for longer than a moment."""
        keys: dict[str, dict[str, int]] = {}
        for (tenant, key), full_at_ns in self._keys_full_at_ns.items():
            if full_at_ns > self._now_ns - LATE_NS:
                keys.setdefault(tenant, {})[key] = full_at_ns
        return Gate(
            self._limits,
            GateState(
                self._full_at_ns if self._full_at_ns > self._now_ns - LATE_NS else 0,
                keys,
                {level: tenants for level, tenants in leads.items() if tenants},
            ),
        )

    def _keys_since(self, gate: Gate, ago_ns: int) -> dict[tuple[str, str], int]:
        """The buckets that were not full so long ago."""
        return {
            (tenant, key): full_at_ns
            for tenant, keys in gate.state.keys_full_at_ns.items()
            for key, full_at_ns in keys.items()
            if full_at_ns > self._now_ns - ago_ns
        }

    def _occupy(self, tenant: str, key: str | None, jobs: int) -> None:
        for whose in (_QUEUE, (tenant,), (tenant, key)):
            self._held[whose] += jobs

    def _slots(self, limit: int | None, whose: tuple[str | None, ...]) -> int:
        return _UNLIMITED if limit is None else max(0, limit - self._held[whose])

    def _charged(self, rate: Rate, full_at_ns: int, jobs: int) -> int:
        """When the bucket will be full once so many tokens are taken."""
        late_ns = self._now_ns - full_at_ns
        is_prompt = late_ns < min(LATE_NS, rate.interval_ns)
        return (full_at_ns if is_prompt else self._now_ns) + jobs * rate.interval_ns

    def _tokens(self, rate: Rate | None, full_at_ns: int) -> int:
        if rate is None:
            return _UNLIMITED
        lacking_ns = max(0, full_at_ns - self._now_ns)
        return max(0, rate.capacity * rate.interval_ns - lacking_ns) // rate.interval_ns

    def _key_tokens(self, tenant: str, key: str) -> int:
        """None for a key whose bucket the gate has no room to remember: exact, even then."""
        rate, full_at_ns = self._limits.key_rate, self._keys_full_at_ns.get((tenant, key))
        if rate is not None and full_at_ns is None and len(self._keys_full_at_ns) >= BUCKETS_MAX:
            return 0
        return self._tokens(rate, full_at_ns or 0)

    def _next_at(self, rate: Rate, full_at_ns: int) -> datetime:
        """The first moment at which there is a whole token."""
        at_ns = full_at_ns - (rate.capacity - 1) * rate.interval_ns
        return from_us(-(-at_ns // _NS_PER_US))


class _Line(Generic[L]):
    """A lane and how many of its jobs are taken."""

    def __init__(self, lane: L) -> None:
        self.lane = lane
        self.taken = 0


class _Queue(Generic[L]):
    """One queue while jobs are picked from it."""

    def __init__(self, demand: Demand[L], now: datetime) -> None:
        self._limits = demand.gate.limits
        self._meter = _Meter(demand.gate, demand.held, now)
        self._leads = dict(demand.gate.state.leads)
        self._served: dict[int, _Line[L]] = {}
        self.levels: dict[int, list[_Line[L]]] = {}
        """By priority: its lanes, the longest waiting first."""
        for lane in sorted(demand.lanes, key=lambda lane: lane.run_at):
            self.levels.setdefault(lane.priority, []).append(_Line(lane))

    def serve(self, level: int, limit: int) -> int:
        """Pick up to `limit` jobs of one priority; how many there were."""
        if self._limits.fair:
            return self._in_turn(level, limit)
        picked = 0
        for line in self.levels[level]:
            if picked == limit:
                break
            picked += self._take(line, limit - picked)
        return picked

    def allocated(self) -> Allocation[L]:
        shares = [(line.lane, line.taken) for line in self._served.values()]
        return Allocation(shares, self._meter.gate(self._leads), self._next_at())

    def _next_at(self) -> datetime | None:
        left = [
            line.lane
            for lines in self.levels.values()
            for line in lines
            if line.taken < line.lane.jobs
        ]
        if not left or (of_queue := self._meter.next_of_queue()) is not None:
            return of_queue if left else None
        of_keys = [self._meter.next_of_key(lane.tenant, lane.limit_key) for lane in left]
        return min((moment for moment in of_keys if moment is not None), default=None)

    def _take(self, line: _Line[L], most: int) -> int:
        lane = line.lane
        jobs = min(most, lane.jobs - line.taken, self._meter.room(lane.tenant, lane.limit_key))
        if jobs:
            self._meter.take(lane.tenant, lane.limit_key, jobs)
            line.taken += jobs
            self._served[id(line)] = line
        return jobs

    def _in_turn(self, level: int, limit: int) -> int:
        """Start-time fair queueing: whoever is least far ahead is next, and moves ahead by 1 / weight.

        Leads count from the start of the last turn, so a tenant that was away comes back level with
        that, however long it was away: nobody saves turns up.
        """
        lines: dict[str, deque[_Line[L]]] = {}
        for line in self.levels[level]:
            lines.setdefault(line.lane.tenant, deque()).append(line)
        ahead = dict(self._leads.get(level, {}))
        # Of two that are equally far ahead, the one whose last turn is longer ago: leads are kept in
        # the order of turns, and who has none comes before those.
        last_turn = {tenant: number for number, tenant in enumerate(ahead, 1)}
        turns = [
            (ahead.get(tenant, 0.0), last_turn.get(tenant, 0), own[0].lane.run_at, tenant)
            for tenant, own in lines.items()
        ]
        heapq.heapify(turns)
        picked, present = 0, 0.0
        while turns and picked < limit and self._meter.room_of_queue():
            start, _, run_at, tenant = heapq.heappop(turns)
            own = lines[tenant]
            while own and not self._take(own[0], 1):
                own.popleft()
            if own:
                picked, present = picked + 1, start
                ahead.pop(tenant, None)
                ahead[tenant] = start + 1 / self._limits.weight(tenant)
                heapq.heappush(turns, (ahead[tenant], len(last_turn) + picked, run_at, tenant))
        self._leads[level] = _ahead(ahead, present)
        return picked


def _ahead(leads: Mapping[str, float], present: float) -> Mapping[str, float]:
    """Who is ahead of the present turn, and how far. Too many to remember: a new round."""
    found = {tenant: lead - present for tenant, lead in leads.items() if lead - present > _TINY}
    return found if len(found) <= LEADS_MAX else {}
