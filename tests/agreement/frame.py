"""What every rule of the machine stands on: the pair, the tokens seen, and few values that meet often."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize

from headrace.limits import QueueLimits, Rate
from headrace.model import Dependency, DependencyKind, Job
from headrace.policy import Policies, Policy
from headrace.retry import Exponential
from headrace.spec import JobSpec
from tests.agreement.pair import Pair

POLICIES = Policies(
    default=Policy(
        lease_seconds=30.0,
        max_attempts=3,
        lifetime_seconds=2000.0,
        key_window_seconds=500.0,
        backoff=Exponential(initial=10.0, cap=100.0),
        keep_completed_seconds=300.0,
        keep_other_seconds=600.0,
    ),
    queues={
        "kept": Policy(
            key_released_when_terminal=False,
            lease_seconds=None,
            fenced=False,
            timeout_seconds=430.0,
        )
    },
)

NAMES = [f"j{n}" for n in range(12)]
names = st.sampled_from(NAMES)
tags = st.lists(st.sampled_from(["x", "y", "z"]), unique=True, max_size=2)
queues = st.sampled_from(["default", "kept", "other"])
tenants = st.sampled_from([None, None, None, "acme"])
workers = st.sampled_from(["w1", "w2"])
dependencies: st.SearchStrategy[list[Dependency]] = st.one_of(
    st.just([]),
    st.just([]),
    st.lists(
        st.builds(Dependency, names, st.sampled_from(DependencyKind)),
        max_size=3,
        unique_by=lambda dependency: dependency.job_id,
    ),
)
specs = st.builds(
    JobSpec,
    type=st.sampled_from(["t1", "t1", "t2"]),
    payload=st.sampled_from([None, 1, {"a": [1, "é"]}, "x" * 50, b"\x00"]),
    queue=queues,
    tenant=tenants,
    id=names,
    priority=st.integers(0, 4),
    delay_seconds=st.sampled_from([None, None, None, 0, 40]),
    tags=tags,
    key=st.sampled_from([None, None, None, "k1", "k2"]),
    limit_key=st.sampled_from([None, None, "l1", "l2"]),
    after=dependencies,
)

queue_limits = st.sampled_from(
    [
        QueueLimits(fair=True),
        QueueLimits(fair=True, weights={"acme": 2.0}, key_concurrency=1),
        QueueLimits(concurrency=2),
        QueueLimits(rate=Rate(2, 60.0), tenant_concurrency=3),
        QueueLimits(key_rate=Rate(1, 45.0), waiting_jobs_max=3),
        QueueLimits(waiting_bytes_max=60),
    ]
)

# What a claim asks for: mostly little, or hardly any job would ever be taken.
queue_filters = st.one_of(st.none(), st.none(), st.lists(queues, unique=True, max_size=2))
type_filters = st.sampled_from([None, None, None, ["t1"], []])
tag_filters = st.sampled_from([[], [], [], ["x"], ["y", "x"]])


class Frame(RuleBasedStateMachine):
    """Subclassed by the test with the url of an empty store."""

    @initialize(seed=st.integers(0, 2**16), batch=st.lists(specs, min_size=4, max_size=12))
    def begin(self, seed: int, batch: list[JobSpec]) -> None:
        """With some jobs from the start, so that the first steps have something to meet."""
        self.tokens: dict[str, list[str]] = {}
        self.pair = Pair(self.fresh_url(), POLICIES, seed=seed)
        for spec in batch:
            self.submit(spec)

    def submit(self, spec: JobSpec) -> None:
        self.pair.both(lambda manager: manager.submit(spec))

    def fresh_url(self) -> str:
        raise NotImplementedError

    def teardown(self) -> None:
        if hasattr(self, "pair"):
            self.pair.close()

    def token(self, job_id: str, age: int) -> str:
        """The newest token seen for the job, or an older one, or one that never was."""
        seen = self.tokens.get(job_id, [])
        return seen[-1 - age] if age < len(seen) else "0.none"

    def remember(self, claimed: Iterable[Job]) -> None:
        """Keep the tokens of jobs that were just claimed."""
        for job in claimed:
            assert isinstance(job, Job), claimed
            assert job.token is not None
            self.tokens.setdefault(job.id, []).append(job.token)

    def scoped(self, tenant: str | None, verb: str, *args: Any, **kwargs: Any) -> Any:
        return self.pair.both(
            lambda m: getattr(m if tenant is None else m.scoped(tenant), verb)(*args, **kwargs)
        )
