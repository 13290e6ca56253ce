from __future__ import annotations

import pytest

from headrace import JobManager
from headrace.limits import QueueLimits, Rate
from tests.cli.shell import Shell


def test_what_is_set_is_listed_and_can_be_removed(shell: Shell) -> None:
    assert shell.ok("limits", "list").out == "no queue has limits\n"
    shell.ok(
        *("limits", "set", "mail", "--concurrency", "10", "--key-concurrency", "1"),
        *("--tenant-concurrency", "4", "--rate", "5/s", "--burst", "9", "--key-rate", "1/90s"),
        *("--key-burst", "2", "--fair", "--weight", "acme=3", "--weight", "a=b=0.5"),
        *("--waiting-jobs", "7", "--waiting-bytes", "2GB", "--tenant-waiting-jobs", "6"),
        *("--tenant-waiting-bytes", "500kB"),
    )

    async def stored(jobs: JobManager) -> object:
        return await jobs.limits()

    assert shell.manage(stored) == {
        "mail": QueueLimits(
            concurrency=10,
            key_concurrency=1,
            tenant_concurrency=4,
            rate=Rate(5, 1.0, 9),
            key_rate=Rate(1, 90.0, 2),
            fair=True,
            weights={"acme": 3.0, "a=b": 0.5},
            waiting_jobs_max=7,
            waiting_bytes_max=2_000_000_000,
            tenant_waiting_jobs_max=6,
            tenant_waiting_bytes_max=500_000,
        )
    }
    assert shell.ok("limits", "list").out.splitlines()[1] == (
        "mail   10 at a time, 1 per key at a time, 4 per tenant at a time, 5/s (burst 9), "
        "1/90s per key (burst 2), tenants take turns (acme 3, a=b 0.5), 7 jobs waiting, "
        "2000000000 bytes waiting, 6 jobs waiting per tenant, 500000 bytes waiting per tenant"
    )
    (record,) = shell.ok("limits", "list", "--json").json["queues"]
    assert record["rate"] == {"jobs": 5, "per_seconds": 1.0, "burst": 9}
    assert record["weights"] == {"acme": 3.0, "a=b": 0.5}
    set_again = shell.ok("limits", "set", "mail", "--rate", "100/m", "--json").json
    assert set_again["rate"] == {"jobs": 100, "per_seconds": 60.0, "burst": 100}
    assert (set_again["concurrency"], set_again["fair"]) == (None, False)
    assert shell.ok("limits", "remove", "mail", "--json").json == {"queue": "mail", "removed": True}
    assert shell.ok("limits", "remove", "mail").out == "queue mail had no limits\n"


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ((), "give a limit"),
        (("--concurrency", "0"), "'0' is not a number from 1"),
        (("--concurrency", "many"), "'many' is not a number"),
        (("--rate", "5"), "'5' is not a rate: write 5/s"),
        (("--rate", "5/"), "'5/' is not a rate"),
        (("--rate", "/s"), "'/s' is not a rate"),
        (("--rate", "x/s"), "'x/s' is not a rate"),
        (("--rate", "5/fortnight"), "is not a rate"),
        (("--rate", "0/s"), "the jobs of a rate is 0"),
        (("--burst", "5"), "give that, too"),
        (("--concurrency", "1", "--key-burst", "5"), "--key-burst is the burst of --key-rate"),
        (("--fair", "--weight", "acme"), "'acme' is not a weight: write acme=3"),
        (("--fair", "--weight", "acme=0"), "the weight of tenant acme is 0.0"),
        (("--fair", "--weight", "=1"), "the tenant of a weight is empty"),
        (("--weight", "acme=2"), "set fair, too"),
        (("--waiting-bytes", "lots"), "'lots' is not a size: write"),
        (("--waiting-bytes", "1TB"), "'1TB' is not a size"),
        (("--waiting-bytes", "0"), "waiting_bytes_max is 0"),
    ],
    ids=str,
)
def test_what_cannot_be_is_a_usage_error_and_changes_nothing(
    shell: Shell, words: tuple[str, ...], told: str
) -> None:
    answer = shell("limits", "set", "mail", *words)
    assert answer.code == 2, answer
    assert told in answer.err
    assert shell.ok("limits", "list").out == "no queue has limits\n"


def test_a_tenant_cannot_set_limits(shell: Shell) -> None:
    answer = shell("limits", "set", "mail", "--concurrency", "1", "--tenant", "acme")
    assert answer.code == 2
    assert "for all its tenants" in answer.err


def test_a_full_queue_refuses_with_its_own_code(shell: Shell) -> None:
    shell.ok("limits", "set", "default", "--waiting-jobs", "1")
    shell.submit("a")
    answer = shell("submit", "a", "--json")
    assert answer.code == 1
    assert '"code":"QUEUE_FULL"' in answer.err
    assert "nothing was stored" in answer.err


def test_the_limit_key_of_a_job_is_submitted_shown_and_explained(shell: Shell) -> None:
    first, second = (shell.submit("a", "--limit-key", "k") for _ in range(2))
    assert shell.ok("show", first, "--json").json["limit_key"] == "k"
    assert "limit key  k\n" in shell.ok("show", first).out
    shell.ok("limits", "set", "default", "--key-concurrency", "1")
    shell.run(first)
    assert "its key k on queue default is at its concurrency limit of 1" in (
        shell.ok("explain", second).out
    )
    (reason,) = shell.ok("explain", second, "--json").json["reasons"]
    assert (reason["why"], reason["facts"]) == ("concurrency_limit", {"scope": "key", "limit": 1})
