"""What a storm was to be, and what came of it."""

from __future__ import annotations

from collections import Counter

import msgspec

from headrace.model import EventKind
from headrace.testing.checker import History
from tests.faults.havoc import Havoc

VIOLATIONS_SHOWN = 20


class Storm(msgspec.Struct, frozen=True, kw_only=True):
    """How hard it blows."""

    url: str
    jobs: int = 5000
    workers: int = 4
    kills: int = 40
    stops: int = 20
    seed: int = 1
    app: str = "tests.faults.app:app"
    """What the workers run."""


class Report(msgspec.Struct, frozen=True, kw_only=True):
    storm: Storm
    seconds: float
    drain_seconds: float
    """From the last fault and the last submission until every job had ended."""
    longest_silence: float
    """Seconds without any event."""
    havoc: Havoc
    submitters_killed: int
    refused: int
    """Outcomes that came too late, as the workers that offered them have logged."""
    history: History
    violations: list[str]

    @property
    def in_vain(self) -> int:
        """Handlers that came to an end of which nothing is recorded: killed before it was, or too late."""
        lapsed = {
            (event.job_id, event.attempt)
            for event in self.history.events
            if event.code == "lease_expired"
        }
        return sum(
            run.said is not None and (run.job_id, run.attempt) in lapsed
            for run in self.history.client.runs
        )

    @property
    def unanswered(self) -> int:
        """Jobs that were asked for by a client that died before it heard."""
        return sum(one.answer is None for one in self.history.client.submissions)

    def __str__(self) -> str:
        storm, havoc, history = self.storm, self.havoc, self.history
        states = Counter(job.state.value for job in history.jobs.values())
        lost = sum(event.kind is EventKind.LOST for event in history.events)
        parts = [
            f"{storm.url.partition(':')[0]}, seed {storm.seed}: {len(history.jobs):,} jobs",
            f"{storm.workers} workers",
            f"{self.seconds:.0f} s\n  faults: {havoc.kills} workers killed ({havoc.leases_killed} leases)",
            f"{havoc.stops} stopped past the lease ({havoc.leases_stopped} leases)",
            f"{self.submitters_killed} submitters killed ({self.unanswered} jobs unanswered)",
            f"{havoc.cancelled} running jobs cancelled",
            f"{havoc.updated} updated",
            f"{havoc.rescheduled} rescheduled\n  runs: {len(history.client.runs):,} of handlers",
            f"{lost} leases lost",
            f"{self.in_vain} ended in vain",
            f"{self.refused} outcomes refused\n  ended: "
            + ", ".join(f"{name} {count:,}" for name, count in states.most_common()),
            f"{self.drain_seconds:.1f} s after the last fault",
            f"longest silence {self.longest_silence:.1f} s\n  log: {len(history.events):,} events",
            f"read {len(history.readings)} times",
        ]
        lines = [", ".join(parts)]
        if self.violations:
            lines += [f"  BROKEN {one}" for one in self.violations[:VIOLATIONS_SHOWN]]
            lines.append(f"  {len(self.violations)} violations")
        else:
            lines.append("  every job has ended; invariants 1 to 9 hold")
        return "\n".join(lines)
