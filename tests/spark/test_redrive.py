"""Redrive at scale: chosen by SQL over silver, submitted once, whatever has become of the jobs meanwhile."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import pytest

from headrace import JobManager, JobSpec, PermanentError, connect
from headrace.cli import main
from headrace.crypto import KeyRing, new_key
from headrace.errors import InvalidInput, JobNotFound, QueueFull
from headrace.limits import QueueLimits
from headrace.model import Job, State
from headrace.spark import redrive as redriving
from headrace.spark.lake.home import Home, NoLake, OtherStore
from headrace.spark.lake.storage import storage_of
from headrace.spark.lake.store import Store
from headrace.spark.redrive import Redriven, RedriveStopped
from tests.spark.lakes import take
from tests.spark.wild import all_events

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

T = TypeVar("T")
Work = Callable[[JobManager], Awaitable[T]]


class Lake:
    """A store and its lake, as far as redriving goes: silver, and up to where it holds the log."""

    def __init__(self, url: str, path: Path, spark: SparkSession) -> None:
        self.url, self.path, self.spark = url, path, spark
        self._seen = 0

    def manage(self, work: Work[T], **options: Any) -> T:
        async def within() -> T:
            async with await connect(self.url, **options) as jobs:
                return await work(jobs)

        return asyncio.run(within())

    def catch_up(self) -> None:
        """What a run of the pipeline does for silver."""
        events = self.manage(lambda jobs: all_events(jobs.store))
        with Store(self.url) as store:
            Home(storage_of(self.path)).claim_for(store.id())
        take(self.path, events[self._seen :])
        self._seen = len(events)

    def redrive(self, where: str, **options: Any) -> Redriven:
        return redriving.redrive(self.url, self.path, where, spark=self.spark, **options)

    def end(self, job_id: str, error: str, code: str | None = None, **spec: Any) -> None:
        """A job that fails: for good with a code, else because its one attempt is spent."""

        async def work(jobs: JobManager) -> None:
            await jobs.submit(JobSpec(type="send", id=job_id, max_attempts=1, **spec))
            await _fail(jobs, error, code)

        self.manage(work)

    def jobs(self, state: State | None = None) -> list[Job]:
        states = None if state is None else [state]
        return self.manage(lambda jobs: _all(jobs, states))


async def _all(jobs: JobManager, states: list[State] | None) -> list[Job]:
    return list((await jobs.find(states=states, limit=1000)).jobs)


async def _fail(jobs: JobManager, error: str, code: str | None) -> None:
    for job in await jobs.claim("w", limit=100):
        told = error if code is None else PermanentError(error, code=code)
        await jobs.fail(job.id, job.token, told)


async def _complete(jobs: JobManager) -> None:
    for job in await jobs.claim("w", limit=100):
        await jobs.complete(job.id, job.token)


@pytest.fixture
def lake(tmp_path: Path, spark: SparkSession) -> Lake:
    made = Lake(f"sqlite:///{tmp_path / 'own.db'}?synchronous=normal", tmp_path / "lake", spark)
    for n in range(3):
        made.end(f"busy-{n}", f"busy: try in {n} s, request 0x{n}ab", "E503")
    made.end("lost", "no such user 'ada'", "E404")
    made.catch_up()
    return made


@pytest.mark.long
def test_jobs_are_redriven_once_on_every_store(
    durable_url: str, tmp_path: Path, spark: SparkSession
) -> None:
    lake = Lake(durable_url, tmp_path / "lake", spark)
    for n in range(3):
        lake.end(f"busy-{n}", f"busy: try in {n} s", "E503", tags=[f"n={n}"], payload={"n": n})
    lake.end("dead", "no answer")
    lake.manage(lambda jobs: jobs.submit(JobSpec(type="send", id="cancelled")))
    lake.manage(lambda jobs: jobs.cancel(["cancelled"]))
    lake.manage(lambda jobs: jobs.submit(JobSpec(type="send", id="done")))
    lake.manage(_complete)
    lake.catch_up()

    tail = lake.manage(lambda jobs: jobs.tail())
    plan = lake.redrive("true", dry_run=True)
    assert (plan.chosen, plan.redriven, plan.before) == (5, 5, 0)
    groups = [(one.state, one.code, one.message, one.jobs) for one in plan.groups]
    assert groups[0] == ("failed", "E503", "busy: try in <n> s", 3)
    assert ("dead", "", "no answer", 1) in groups
    assert lake.manage(lambda jobs: jobs.tail()) == tail

    done = lake.redrive("code = 'E503'")
    assert (done.chosen, done.redriven, done.alive, done.before) == (3, 3, 0, 0)
    fresh = lake.jobs(State.PENDING)
    assert [job.previous_id for job in fresh] == ["busy-0", "busy-1", "busy-2"]
    assert [(job.tags, job.payload) for job in fresh] == [((f"n={n}",), {"n": n}) for n in range(3)]
    lake.manage(_complete)
    for _ in range(2):  # at first the lake knows nothing of it, but the log does
        again = lake.redrive("code = 'E503'")
        assert (again.chosen, again.redriven, again.before) == (0, 0, 3)
        lake.catch_up()
    assert len(lake.jobs()) == 9


@pytest.mark.long
def test_a_new_job_that_ends_badly_stands_for_the_old(lake: Lake) -> None:
    assert lake.redrive("code = 'E503'").redriven == 3
    lake.manage(lambda jobs: _fail(jobs, "busy again", "E503"))
    lake.catch_up()
    second = lake.redrive("code = 'E503'")
    assert (second.chosen, second.redriven, second.before) == (3, 3, 3)
    by_id = {job.id: job for job in lake.jobs()}
    for job in lake.jobs(State.PENDING):
        first = by_id[by_id[str(job.previous_id)].previous_id or ""]
        assert first.id.startswith("busy-")
    assert len(by_id) == 4 + 3 + 3
    # Whoever means it can have the first ones, too: their new jobs have ended.
    third = lake.redrive("job_id LIKE 'busy-%'", again=True)
    assert (third.chosen, third.redriven, third.alive) == (3, 3, 0)
    fourth = lake.redrive("job_id LIKE 'busy-%'", again=True)
    assert (fourth.chosen, fourth.redriven, fourth.alive) == (3, 0, 3)


@pytest.mark.long
def test_what_the_store_has_deleted_or_used_again_is_counted(lake: Lake) -> None:
    lake.manage(lambda jobs: jobs.delete(["busy-0", "busy-1"]))
    lake.end("busy-1", "another", "E503")
    for dry_run in (True, False):
        done = lake.redrive("code = 'E503'", dry_run=dry_run)
        assert (done.chosen, done.redriven, done.gone, done.changed) == (3, 1, 1, 1)
        groups = [(one.jobs, one.example) for one in done.groups]
        assert groups == ([(1, "busy-2")] if dry_run else [])
    assert [job.previous_id for job in lake.jobs(State.PENDING)] == ["busy-2"]
    lake.catch_up()
    assert lake.redrive("code = 'E503' AND message = 'another'").redriven == 1


@pytest.mark.long
def test_the_condition_may_ask_for_attempts_and_hold_comments(lake: Lake) -> None:
    lake.spark.range(1).createOrReplaceTempView("attempts")
    try:
        done = lake.redrive(
            "job_id IN (SELECT a.job_id FROM attempts a WHERE a.outcome = 'failed' -- ended by that\n"
            " AND a.code = 'E404') -- and nothing else",
            dry_run=True,
        )
        assert lake.spark.table("attempts").columns == ["id"]
    finally:
        lake.spark.catalog.dropTempView("attempts")
    assert [one.example for one in done.groups] == ["lost"]
    assert not [one for one in lake.spark.catalog.listTables() if "headrace" in one.name]


@pytest.mark.long
@pytest.mark.parametrize(
    "where",
    ["", "  ", "nothing = 1", "code = 'E503", "1 / (version - 2 - 1) > 0"],
)
def test_a_condition_that_is_none_is_refused(lake: Lake, where: str) -> None:
    with pytest.raises(InvalidInput, match="condition"):
        lake.redrive(where)
    assert len(lake.jobs()) == 4


def test_a_condition_reaches_only_jobs_that_ended_badly(lake: Lake) -> None:
    lake.manage(lambda jobs: jobs.submit(JobSpec(type="send", id="waits")))
    lake.catch_up()
    assert lake.redrive("false) OR (true", dry_run=True).chosen == 4


@pytest.mark.long
def test_a_limit_takes_the_oldest_and_the_next_call_goes_on(lake: Lake) -> None:
    told: list[tuple[int, int]] = []
    for expected in (["busy-0", "busy-1"], ["busy-2", "lost"], []):
        before = {job.id for job in lake.jobs()}
        done = lake.redrive("true", limit=2, tell=lambda *at: told.append(at))
        fresh = [job for job in lake.jobs() if job.id not in before]
        assert [job.previous_id for job in fresh] == expected
        assert done.redriven == len(expected)
        lake.manage(_complete)
    assert told == [(2, 2), (2, 2)]


def test_one_tenant_redrives_its_own(lake: Lake) -> None:
    lake.end("theirs", "busy", "E503", tenant="acme")
    lake.catch_up()
    assert lake.redrive("code = 'E503'", tenant="acme").redriven == 1
    (fresh,) = lake.jobs(State.PENDING)
    assert (fresh.tenant, fresh.previous_id) == ("acme", "theirs")


@pytest.mark.long
def test_encrypted_jobs_need_their_key(tmp_path: Path, spark: SparkSession) -> None:
    lake = Lake(f"sqlite:///{tmp_path / 'own.db'}?synchronous=normal", tmp_path / "lake", spark)
    ring = KeyRing.parse(new_key("k1"))

    async def work(jobs: JobManager) -> None:
        await jobs.submit(JobSpec(type="send", id="secret", payload={"to": "ada"}))
        await _fail(jobs, "busy", "E503")

    lake.manage(work, keys=ring)
    lake.catch_up()
    done = lake.redrive("true")
    assert (done.chosen, done.redriven, done.sealed) == (1, 0, 1)
    assert len(lake.jobs()) == 1
    assert lake.redrive("true", keys=ring).redriven == 1
    fresh = lake.manage(lambda jobs: _all(jobs, [State.PENDING]), keys=ring)
    assert [job.payload for job in fresh] == [{"to": "ada"}]


@pytest.mark.long
def test_a_store_that_refuses_midway_is_told_with_what_was_done(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(redriving, "BATCH_JOBS", 2)
    lake.manage(lambda jobs: jobs.set_limits("default", QueueLimits(waiting_jobs_max=2)))
    with pytest.raises(RedriveStopped, match="2 jobs were redriven") as stopped:
        lake.redrive("true")
    assert stopped.value.done.redriven == 2
    assert isinstance(stopped.value.cause, QueueFull)
    lake.manage(_complete)
    assert lake.redrive("true").redriven == 2


@pytest.mark.long
def test_a_job_that_is_deleted_while_it_is_redriven_is_counted(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    redrive = JobManager.redrive
    deleted: list[Job] = []

    async def late(self: JobManager, ids: list[str]) -> Any:
        if not deleted:
            deleted.extend(await self.delete(["busy-1"]))
            with pytest.raises(JobNotFound):
                await redrive(self, ids)
        return await redrive(self, ids)

    monkeypatch.setattr(JobManager, "redrive", late)
    done = lake.redrive("true")
    assert (done.chosen, done.redriven, done.gone) == (4, 3, 1)


@pytest.mark.long
def test_a_lake_of_another_store_is_refused(lake: Lake, tmp_path: Path) -> None:
    other = Lake(f"sqlite:///{tmp_path / 'other.db'}", tmp_path / "lake", lake.spark)
    other.end("busy-0", "busy", "E503")
    with pytest.raises(OtherStore):
        other.redrive("true")
    with pytest.raises(NoLake):
        redriving.redrive(lake.url, tmp_path / "nowhere", "true", spark=lake.spark)
    assert len(lake.jobs()) == 4


@pytest.mark.long
def test_the_command_shows_errors_by_group_and_redrives(
    lake: Lake, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("HEADRACE_KEYS", raising=False)

    def run(*words: str) -> tuple[int, str, str]:
        capsys.readouterr()
        options = ("--url", lake.url, "--lake", str(lake.path))
        code = main(["pipeline", "redrive", *options, *words])
        told = capsys.readouterr()
        return code, told.out, told.err

    code, out, err = run("--where", "code LIKE 'E%'", "--dry-run")
    assert (code, err) == (0, "")
    first, _, header, busy, lost = out.splitlines()
    assert first == "4 jobs would be redriven"
    assert header.split() == ["JOBS", "QUEUE", "TYPE", "STATE", "CATEGORY", "CODE", "MESSAGE"]
    assert busy.split(maxsplit=6)[0] == "3"
    assert busy.endswith("E503  busy: try in <n> s, request <hex>")
    assert lost.endswith("E404  no such user <text>")
    assert len(lake.jobs()) == 4

    code, out, _ = run("--where", "code = 'E503'", "--limit", "2", "--json")
    assert code == 0
    told = json.loads(out)
    assert (told["redriven"], told["chosen"], told["dry_run"]) == (2, 2, False)
    code, out, _ = run("--where", "code = 'E503'")
    assert out.splitlines() == [
        "1 job redriven",
        "  2 jobs passed over, redriven before: their new jobs stand for them",
    ]
    code, out, err = run("--where", "nothing = 1")
    assert (code, out) == (2, "")
    (line,) = err.splitlines()
    assert "the condition cannot be used" in line


@pytest.mark.long
def test_two_at_once_redrive_a_job_once_however_quick_it_is(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The other one has chosen the same, and its new jobs are done before this one comes to them."""
    monkeypatch.setattr(redriving, "BATCH_JOBS", 2)
    others: list[Redriven] = []

    def meanwhile(*_: int) -> None:
        if not others:
            others.append(Redriven(dry_run=False, chosen=0, before=0))
            others.append(lake.redrive("true"))
            lake.manage(_complete)

    done = lake.redrive("true", tell=meanwhile)
    assert (done.chosen, done.redriven, done.alive) == (4, 2, 2)
    assert (others[1].redriven, others[1].before) == (2, 2)
    redriven = [job.previous_id for job in lake.jobs() if job.previous_id is not None]
    assert sorted(redriven) == ["busy-0", "busy-1", "busy-2", "lost"]


@pytest.mark.long
def test_a_dry_run_tells_what_a_run_would_do_also_again(lake: Lake) -> None:
    lake.redrive("code = 'E503'")
    (ended, *_) = lake.jobs(State.PENDING)
    lake.manage(lambda jobs: jobs.cancel([ended.id]))
    for dry_run in (True, False):
        done = lake.redrive("true", again=True, dry_run=dry_run)
        assert (done.chosen, done.redriven, done.alive) == (4, 2, 2)


@pytest.mark.long
def test_what_breaks_midway_is_not_blamed_on_the_condition(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    from pyspark.errors import PySparkRuntimeError

    monkeypatch.setattr(redriving, "BATCH_JOBS", 2)

    def broken(*_: int) -> None:
        raise PySparkRuntimeError("an executor is gone")

    with pytest.raises(RedriveStopped, match=r"an executor is gone\. Nothing was submitted"):
        lake.redrive("true", tell=broken, dry_run=True)
    with pytest.raises(RedriveStopped, match=r"2 jobs were redriven.*an executor is gone"):
        lake.redrive("true", tell=broken)
    assert lake.redrive("true").redriven == 2
