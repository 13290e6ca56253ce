from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace import allocation, limits
from headrace.allocation import Demand, Obstacle, Scope, allocate, give_back, obstacles
from headrace.errors import HeadraceError, InvalidLimit, InvalidName, StoreCorrupt
from headrace.limits import Gate, QueueLimits, Rate
from headrace.stores.base import Head, Held

T0 = datetime(2026, 1, 1, tzinfo=UTC)


def at(seconds: float) -> datetime:
    return T0 + timedelta(seconds=seconds)


def head(tenant: str = "a", jobs: int = 100, *, since: float = 0, **fields: Any) -> Head:
    given: dict[str, Any] = {"queue": "q", "type": "t", "priority": 2, "limit_key": None}
    return Head(tenant=tenant, jobs=jobs, run_at=at(since), **(given | fields))


def held(jobs: int, tenant: str = "a", limit_key: str | None = None) -> Held:
    return Held(tenant=tenant, queue="q", limit_key=limit_key, jobs=jobs)


class Claimer:
    """Claims from one queue again and again, remembering its gate as a store would."""

    def __init__(self, gate: QueueLimits) -> None:
        self.gate = Gate(gate)

    def claim(
        self, heads: Iterable[Head], limit: int = 1, *, now: float = 0, held: Sequence[Held] = ()
    ) -> list[tuple[Head, int]]:
        (answer,) = allocate([Demand(self.gate, list(heads), held)], limit, at(now))
        if answer.shares:  # a claim that takes nothing writes nothing
            self.gate = limits.decode_gate("q", limits.encode(answer.gate))
        return list(answer.shares)

    def tenants(self, heads: Iterable[Head], claims: int, **how: Any) -> str:
        """Whose job each of so many claims of one job was."""
        heads = list(heads)
        return "".join(lane.tenant for _ in range(claims) for lane, _ in self.claim(heads, **how))

    def count(self, heads: Iterable[Head], limit: int = 1000, **how: Any) -> int:
        return sum(jobs for _, jobs in self.claim(heads, limit, **how))


# --- slots ---------------------------------------------------------------------------------------


def test_a_queue_without_limits_gives_what_is_asked_for_in_order() -> None:
    claimer = Claimer(QueueLimits())
    late, soon = head("late", 3, since=-1), head("soon", 3, since=-2)
    urgent = head("urgent", 1, priority=0)
    assert claimer.claim([late, soon, urgent], 6) == [(urgent, 1), (soon, 3), (late, 2)]
    assert claimer.gate == Gate(QueueLimits())


def test_concurrency_counts_what_is_held_by_all() -> None:
    claimer = Claimer(QueueLimits(concurrency=5))
    lanes = [head("a", 9), head("b", 9, limit_key="k")]
    assert claimer.count(lanes) == 5
    assert claimer.count(lanes, held=[held(1), held(2, "c", "k")]) == 2
    assert claimer.count(lanes, held=[held(5, "c")]) == 0
    assert claimer.count(lanes, held=[held(7, "c")]) == 0


def test_key_concurrency_is_of_each_key_within_its_tenant() -> None:
    claimer = Claimer(QueueLimits(key_concurrency=2))
    lanes = [
        head("a", 9, limit_key="k", type="t1"),
        head("a", 9, limit_key="k", type="t2", since=1),
        head("b", 9, limit_key="k"),
        head("a", 9, limit_key="l"),
        head("a", 9),
    ]
    taken = claimer.claim(lanes, 1000, held=[held(1, "a", "k"), held(2, "a", "l"), held(50)])
    assert taken == [(lanes[0], 1), (lanes[2], 2), (lanes[4], 9)]


def test_tenant_concurrency_is_of_each_tenant_over_all_keys() -> None:
    claimer = Claimer(QueueLimits(tenant_concurrency=3))
    lanes = [head("a", 9), head("a", 9, limit_key="k", since=1), head("queue", 9)]
    taken = claimer.claim(lanes, 1000, held=[held(1, "a", "k"), held(2, "c")])
    assert taken == [(lanes[0], 2), (lanes[2], 3)]


@given(
    st.lists(st.tuples(st.sampled_from("ab"), st.sampled_from(["", "k", "l"]), st.integers(1, 5))),
    st.lists(st.tuples(st.sampled_from("ab"), st.sampled_from(["", "k", "l"]), st.integers(1, 3))),
    st.integers(1, 20),
    st.booleans(),
)
def test_no_slot_is_given_twice_and_none_is_left_free_in_vain(
    waiting: list[tuple[str, str, int]],
    leased: list[tuple[str, str, int]],
    limit: int,
    fair: bool,
) -> None:
    rules = QueueLimits(concurrency=8, key_concurrency=2, tenant_concurrency=5, fair=fair)
    lanes = [
        head(tenant, jobs, limit_key=key or None, type=f"t{number}")
        for number, (tenant, key, jobs) in enumerate(waiting)
    ]
    holds = [held(jobs, tenant, key or None) for tenant, key, jobs in leased]
    taken = Claimer(rules).claim(lanes, limit, held=holds)
    of_queue: Counter[Any] = Counter()
    used = [(one.tenant, one.limit_key, one.jobs) for one in holds]
    used += [(lane.tenant, lane.limit_key, jobs) for lane, jobs in taken]
    for tenant, limit_key, jobs in used:
        of_queue[()] += jobs
        of_queue[tenant] += jobs
        of_queue[tenant, limit_key] += jobs
    got = {id(lane): jobs for lane, jobs in taken}
    assert sum(got.values()) <= limit
    for lane, jobs in taken:
        assert 0 < jobs <= lane.jobs
        assert of_queue[()] <= 8
        assert of_queue[lane.tenant] <= 5
        assert lane.limit_key is None or of_queue[lane.tenant, lane.limit_key] <= 2
    for lane in lanes if sum(got.values()) < limit else ():
        assert (
            got.get(id(lane), 0) == lane.jobs
            or of_queue[()] >= 8
            or of_queue[lane.tenant] >= 5
            or (lane.limit_key is not None and of_queue[lane.tenant, lane.limit_key] >= 2)
        )


# --- tokens --------------------------------------------------------------------------------------


def test_a_bucket_starts_full_and_fills_at_its_rate() -> None:
    claimer = Claimer(QueueLimits(rate=Rate(5, 1.0)))
    assert claimer.count([head()]) == 5
    assert claimer.count([head()], now=0.199_999) == 0
    assert claimer.count([head()], now=0.2) == 1
    assert claimer.count([head()], now=0.7) == 2
    assert claimer.count([head()], now=60) == 5


def test_a_burst_of_one_spaces_starts_evenly() -> None:
    claimer = Claimer(QueueLimits(rate=Rate(4, 1.0, burst=1)))
    starts = [now for now in range(100) if claimer.count([head()], now=now / 100)]
    assert starts == [0, 25, 50, 75]


def test_each_key_has_a_bucket_and_jobs_without_a_key_need_none() -> None:
    claimer = Claimer(QueueLimits(key_rate=Rate(1, 10.0)))
    lanes = [head("a", 9, limit_key="k"), head("b", 9, limit_key="k"), head("a", 9, limit_key="l")]
    assert claimer.claim(lanes, 1000) == [(lane, 1) for lane in lanes]
    assert claimer.count(lanes, now=9.9) == 0
    assert claimer.count([*lanes, head("a", 7)], now=9.9) == 7
    assert claimer.count(lanes, now=10) == 3


def test_full_buckets_are_forgotten() -> None:
    claimer = Claimer(QueueLimits(rate=Rate(10), key_rate=Rate(1, 10.0)))
    claimer.claim([head(limit_key=f"k{n}", jobs=1) for n in range(5)], 5)
    claimer.claim([head(limit_key="late", jobs=1)], now=9)
    assert claimer.gate.state.full_at_ns > 0
    assert len(claimer.gate.state.keys_full_at_ns["a"]) == 6
    claimer.claim([head(jobs=1)], now=12)
    assert set(claimer.gate.state.keys_full_at_ns["a"]) == {"late"}
    nobody: list[Head] = []
    (idle,) = allocate([Demand(claimer.gate, nobody, [])], 1, at(100))
    assert idle.gate.state == limits.GateState()


def test_a_key_that_cannot_be_remembered_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(allocation, "BUCKETS_MAX", 3)
    claimer = Claimer(QueueLimits(key_rate=Rate(2, 10.0)))
    lanes = [head(limit_key=f"k{n}", jobs=2) for n in range(5)]
    assert claimer.claim(lanes, 1000) == [(lane, 2) for lane in lanes[:3]]
    (found,) = obstacles(claimer.gate, [], "a", "k4", T0)
    assert (found.scope, found.next_at) == (Scope.KEY, at(10))
    assert claimer.count([lanes[4]], now=9.999) == 0
    assert claimer.count([lanes[4]], now=10) == 2


@given(
    st.integers(1, 50),
    st.floats(0.01, 100.0),
    st.integers(1, 20),
    st.lists(st.tuples(st.floats(0, 5), st.integers(1, 10)), max_size=40),
)
def test_no_span_of_time_sees_more_starts_than_burst_and_rate_allow(
    jobs: int, per_seconds: float, burst: int, claims: list[tuple[float, int]]
) -> None:
    claimer = Claimer(QueueLimits(rate=Rate(jobs, per_seconds, burst)))
    moment, starts = 0.0, []
    for pause, wanted in claims:
        moment += pause
        starts.append((at(moment), claimer.count([head()], wanted, now=moment)))
    late_seconds = allocation.LATE_NS / 1e9
    for first in range(len(starts)):
        for last in range(first, len(starts)):
            span = (starts[last][0] - starts[first][0]).total_seconds()
            started = sum(count for _, count in starts[first : last + 1])
            assert started <= burst + math.floor((span + late_seconds) * jobs / per_seconds + 1e-6)
            assert started <= burst + math.ceil(span * jobs / per_seconds - 1e-6)


@given(st.lists(st.floats(0, 0.0099), min_size=20, max_size=60))
def test_a_start_that_comes_late_puts_off_none_of_those_behind_it(late: list[float]) -> None:
    claimer = Claimer(QueueLimits(rate=Rate(50, burst=1)))
    for number, seconds in enumerate([0.0, *late]):
        assert claimer.count([head()], now=number / 50 + seconds) == 1
        assert claimer.count([head()], now=number / 50 + seconds) == 0


def test_who_comes_later_than_that_begins_anew() -> None:
    claimer = Claimer(QueueLimits(rate=Rate(50, burst=1)))
    assert claimer.count([head()]) == 1
    assert claimer.count([head()], now=0.041) == 1
    assert claimer.count([head()], now=0.060) == 0
    assert claimer.count([head()], now=0.061) == 1


def test_what_waits_for_time_is_told_when_it_comes() -> None:
    rules = QueueLimits(rate=Rate(4, burst=1), key_rate=Rate(1, 10.0))
    gate = Gate(rules)

    def next_at(*lanes: Head, limit: int = 9, holds: Sequence[Held] = ()) -> Any:
        (answer,) = allocate([Demand(gate, lanes, holds)], limit, T0)
        return answer.next_at

    assert next_at() is None
    assert next_at(head(jobs=1)) is None
    assert next_at(head(jobs=2)) == at(0.25)
    assert next_at(head(jobs=2), limit=0) is None  # a token is there: it does not wait for time
    gate = Gate(QueueLimits(key_rate=Rate(1, 10.0)))
    assert next_at(head(jobs=5, limit_key="k"), head(jobs=1)) == at(10)
    assert next_at(head(jobs=1, limit_key="k"), head(jobs=5), limit=3) is None
    gate = Gate(QueueLimits(concurrency=1, rate=Rate(1, 10.0)))
    assert next_at(head(jobs=5)) is None  # no slot: somebody's end will tell


def test_a_clock_that_went_back_gives_no_token_twice() -> None:
    claimer = Claimer(QueueLimits(rate=Rate(1, 10.0)))
    assert claimer.count([head()], now=100) == 1
    assert claimer.count([head()], now=90) == 0
    assert claimer.count([head()], now=109) == 0
    assert claimer.count([head()], now=110) == 1


def test_what_did_not_start_is_given_back() -> None:
    claimer = Claimer(QueueLimits(rate=Rate(5), key_rate=Rate(2, 10.0), fair=True))
    lane = head(limit_key="k")
    claimer.claim([lane], 2)
    assert claimer.count([lane]) == 0
    claimer.gate = give_back(claimer.gate, [(lane, 1)], T0)
    assert claimer.count([lane]) == 1
    assert claimer.count([head(type="keyless")]) == 3
    whole = give_back(claimer.gate, [(lane, 2), (head(), 3)], T0)
    assert allocation.room(whole, [], T0) == 5
    assert obstacles(whole, [], "a", "k", T0) == []
    assert give_back(whole, [(lane, 9)], at(3)).state == limits.GateState()


def test_a_changed_rate_starts_anew_and_the_rest_stays() -> None:
    old = QueueLimits(rate=Rate(1, 60.0), key_rate=Rate(1, 60.0), fair=True)
    claimer = Claimer(old)
    claimer.claim([head(limit_key="k")])
    state = claimer.gate.state
    faster = claimer.gate.under(limits.QueueLimits(rate=Rate(9), key_rate=Rate(1, 60.0)))
    assert faster.state == limits.GateState(0, state.keys_full_at_ns, {})
    assert claimer.gate.under(old) == claimer.gate


# --- turns ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("backlog", [1, 1_000_000])
def test_the_kth_job_of_a_small_tenant_comes_within_2k_claims(backlog: int) -> None:
    claimer = Claimer(QueueLimits(fair=True))
    big = head("A", 10_000, since=-backlog)
    claimer.tenants([big], 50)
    order = claimer.tenants([big, head("B", 10)], 20)
    for k in range(1, 11):
        assert order[: 2 * k].count("B") >= k


@given(st.lists(st.integers(1, 7), min_size=1, max_size=30), st.integers(0, 30), st.booleans())
def test_that_bound_holds_for_claims_of_any_size(
    sizes: list[int], before: int, small_is_older: bool
) -> None:
    """However claims are cut: after n jobs since it came, a tenant of two has had its half, less one."""
    claimer = Claimer(QueueLimits(fair=True))
    big = head("A", 10_000, since=0 if small_is_older else -9)
    small = head("B", 10_000, since=-5)
    for _ in range(before):
        claimer.claim([big])
    total: Counter[str] = Counter()
    for size in sizes:
        for lane, jobs in claimer.claim([big, small], size):
            total[lane.tenant] += jobs
        assert abs(total["A"] - total["B"]) <= 1


@given(st.integers(2, 6), st.lists(st.sets(st.integers(1, 5), min_size=1), max_size=20))
def test_among_n_tenants_the_kth_job_comes_within_n_times_k_claims(
    tenants: int, before: list[set[int]]
) -> None:
    """Whoever of the others had jobs before, and in whatever order."""
    claimer = Claimer(QueueLimits(fair=True))
    others = [head(f"n{number}", since=-number) for number in range(1, tenants)]
    for present in before:
        claimer.claim([lane for lane in others if int(lane.tenant[1:]) in present])
    new = head("new", since=9)
    order = [lane.tenant for _ in range(8 * tenants) for lane, _ in claimer.claim([*others, new])]
    for k in range(1, 9):
        assert order[: tenants * k].count("new") >= k


@pytest.mark.parametrize("weight", [3.0, 0.5, 7.0, 1.7])
def test_weights_hold_within_one_over_every_window(weight: float) -> None:
    claimer = Claimer(QueueLimits(fair=True, weights={"A": weight}))
    order = claimer.tenants([head("A", since=-1), head("B")], 150)
    share = weight / (weight + 1)
    for first in range(len(order)):
        for last in range(first + 1, len(order) + 1):
            window = order[first:last]
            assert abs(window.count("A") - share * len(window)) <= 1 + 1e-9


@given(st.lists(st.sampled_from([0.25, 1.0, 2.0, 5.0]), min_size=2, max_size=6), st.integers(1, 12))
def test_between_two_turns_of_one_each_other_has_its_share_and_one(
    weights: list[float], size: int
) -> None:
    names = "ABCDEF"[: len(weights)]
    weight = dict(zip(names, weights, strict=True))
    claimer = Claimer(QueueLimits(fair=True, weights=weight))
    lanes = [head(name, 10_000, since=-number) for number, name in enumerate(names)]
    total: Counter[str] = Counter()
    for _ in range(60 // size + 1):
        for lane, jobs in claimer.claim(lanes, size):
            total[lane.tenant] += jobs
    for one in names:
        for other in names:
            assert total[other] <= (total[one] + 1) * weight[other] / weight[one] + 1 + 1e-9


def test_nobody_saves_turns_up_and_nobody_is_made_to_pay_for_quiet_times() -> None:
    claimer = Claimer(QueueLimits(fair=True))
    a, b = head("A", since=-1), head("B")
    claimer.tenants([a], 500)
    assert claimer.tenants([a, b], 6) == "BABABA"
    claimer.tenants([b], 500)
    assert claimer.tenants([a, b], 6) == "ABABAB"


def test_urgent_jobs_come_first_whoevers_turn_it_is_and_turns_count_per_priority() -> None:
    claimer = Claimer(QueueLimits(fair=True))
    urgent = head("A", 3, priority=0, since=5)
    normal = [head("A", since=-1), head("B")]
    taken = claimer.claim([*normal, urgent], 5)
    assert taken == [(urgent, 3), (normal[0], 1), (normal[1], 1)]


def test_a_tenants_own_lanes_are_served_oldest_first() -> None:
    claimer = Claimer(QueueLimits(fair=True))
    young, old = head("A", 2, type="young", since=-1), head("A", 2, type="old", since=-2)
    assert claimer.claim([young, old, head("B", 1)], 4) == [(old, 2), (head("B", 1), 1), (young, 1)]


def test_a_tenant_at_its_limit_leaves_its_turns_to_others() -> None:
    claimer = Claimer(QueueLimits(fair=True, tenant_concurrency=1))
    taken = claimer.claim([head("A"), head("B"), head("C")], 10, held=[held(1, "A")])
    assert [(lane.tenant, jobs) for lane, jobs in taken] == [("B", 1), ("C", 1)]


def test_turns_remembered_are_few() -> None:
    claimer = Claimer(QueueLimits(fair=True))
    names = [f"n{number:03}" for number in range(200)]
    for _ in range(3):
        for name in names:
            claimer.claim([head(name)])
    assert set(claimer.gate.state.leads) == {2}
    assert len(claimer.gate.state.leads[2]) <= 200
    claimer.tenants([head("n000")], 3)
    assert set(claimer.gate.state.leads[2]) == {"n000"}


def test_too_many_tenants_begin_a_new_round(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(allocation, "LEADS_MAX", 10)
    claimer = Claimer(QueueLimits(fair=True))
    heads = [head(f"n{number:02}", since=number) for number in range(30)]
    served = Counter(lane.tenant for _ in range(11) for lane, _ in claimer.claim(heads))
    assert len(served) == 11
    assert claimer.gate.state == limits.GateState()


# --- several queues ------------------------------------------------------------------------------


def test_queues_share_a_claim_by_priority_then_age() -> None:
    one = Demand(Gate(QueueLimits(concurrency=2)), [head("a", 9, since=-1, queue="one")], [])
    two = Demand(
        Gate(QueueLimits(rate=Rate(3))),
        [head("a", 1, priority=0, queue="two"), head("a", 9, queue="two")],
        [],
    )
    answers = allocate([one, two], 4, T0)
    assert [[(lane.priority, jobs) for lane, jobs in answer.shares] for answer in answers] == [
        [(2, 2)],
        [(0, 1), (2, 1)],
    ]


# --- why not -------------------------------------------------------------------------------------


def test_obstacles_name_every_limit_that_is_reached() -> None:
    rules = QueueLimits(
        concurrency=3,
        key_concurrency=1,
        tenant_concurrency=2,
        rate=Rate(2, 10.0),
        key_rate=Rate(1, 10.0),
    )
    claimer = Claimer(rules)
    claimer.claim([head("a", 1, limit_key="k"), head("a", 1)], 2)
    holds = [held(1, "a", "k"), held(1, "a"), held(1, "b")]
    slots = [Obstacle(Scope.QUEUE, 3), Obstacle(Scope.TENANT, 2), Obstacle(Scope.KEY, 1)]
    rates = [
        Obstacle(Scope.QUEUE, Rate(2, 10.0), at(5)),
        Obstacle(Scope.KEY, Rate(1, 10.0), at(10)),
    ]
    assert obstacles(claimer.gate, holds, "a", "k", T0) == [*slots, *rates]
    assert obstacles(claimer.gate, holds, "a", None, T0) == [*slots[:2], rates[0]]
    assert obstacles(claimer.gate, holds, "b", "k", at(5)) == slots[:1]
    assert obstacles(claimer.gate, [], "b", "k", at(5)) == []


@given(st.integers(1, 1000), st.floats(0.001, 1000), st.integers(1, 9), st.floats(0, 9))
def test_the_next_token_comes_when_it_is_said_to(
    jobs: int, per_seconds: float, burst: int, wait: float
) -> None:
    rate = Rate(jobs, per_seconds, burst)
    claimer = Claimer(QueueLimits(rate=rate))
    assert claimer.count([head()]) == burst
    now = at(min(wait, rate.interval_ns / 2e9))
    for obstacle in obstacles(claimer.gate, [], "a", None, now):
        assert obstacle.next_at is not None
        assert now < obstacle.next_at
        assert obstacles(claimer.gate, [], "a", None, obstacle.next_at) == []
        before = obstacle.next_at - timedelta(microseconds=1)
        assert obstacles(claimer.gate, [], "a", None, before) != []


# --- values --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fields", "error"),
    [
        ({"concurrency": 0}, InvalidLimit),
        ({"key_concurrency": 1.5}, InvalidLimit),
        ({"tenant_concurrency": True}, InvalidLimit),
        ({"concurrency": 2**31}, InvalidLimit),
        ({"waiting_jobs_max": -1}, InvalidLimit),
        ({"waiting_bytes_max": 2**54}, InvalidLimit),
        ({"rate": 5}, InvalidLimit),
        ({"fair": 1}, InvalidLimit),
        ({"weights": {"a": 2}}, InvalidLimit),
        ({"fair": True, "weights": ["a"]}, InvalidLimit),
        ({"fair": True, "weights": {"a": 0}}, InvalidLimit),
        ({"fair": True, "weights": {"a": math.nan}}, InvalidLimit),
        ({"fair": True, "weights": {"a": True}}, InvalidLimit),
        ({"fair": True, "weights": {"": 1}}, InvalidName),
        ({"fair": True, "weights": {f"n{n}": 1 for n in range(1001)}}, InvalidLimit),
    ],
    ids=str,
)
def test_limits_that_cannot_be_are_refused(
    fields: dict[str, Any], error: type[HeadraceError]
) -> None:
    with pytest.raises(error, match="nothing was"):
        QueueLimits(**fields)


@pytest.mark.parametrize(
    "arguments", [(0,), (1, 0.0), (1, math.inf), (1, 1.0, 0), (2.5,), (1, 86_400.0, 4000)]
)
def test_rates_that_cannot_be_are_refused(arguments: tuple[Any, ...]) -> None:
    with pytest.raises(InvalidLimit, match="nothing was"):
        Rate(*arguments)


@pytest.mark.parametrize(
    ("rate", "text"),
    [
        (Rate(5), "5/s"),
        (Rate(100, 60), "100/m"),
        (Rate(1, 86_400.0, 3), "1/d"),
        (Rate(2, 0.25), "2/0.25s"),
        (Rate(3, 10.0), "3/10s"),
        (Rate(1, 2e7), "1/20000000s"),
    ],
    ids=str,
)
def test_rates_read_as_they_are_written(rate: Rate, text: str) -> None:
    assert str(rate) == text


def test_limits_are_stored_and_read_back_whole() -> None:
    whole = QueueLimits(
        concurrency=1,
        key_concurrency=2,
        tenant_concurrency=3,
        rate=Rate(4),
        key_rate=Rate(5, 6.0, 7),
        fair=True,
        weights={"a": 8.0},
        waiting_jobs_max=9,
        waiting_bytes_max=10,
        tenant_waiting_jobs_max=11,
        tenant_waiting_bytes_max=12,
    )
    assert limits.decode_limits("q", limits.encode(whole)) == whole
    assert whole.for_claims.with_admission(whole.for_admission) == whole
    assert whole.for_claims.for_admission.are_none
    assert whole.for_admission.for_claims.are_none
    assert not whole.for_claims.are_none
    claimer = Claimer(whole)
    claimer.claim([head(limit_key="k")])
    assert limits.decode_gate("q", limits.encode(claimer.gate)) == claimer.gate


@pytest.mark.parametrize("body", [b"null", b"{", b'{"limits": {"concurrency": 0}}'])
def test_a_gate_that_cannot_be_read_says_whose(body: bytes) -> None:
    with pytest.raises(StoreCorrupt, match="queue mail"):
        limits.decode_gate("mail", body)
