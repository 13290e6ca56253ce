from __future__ import annotations

import threading

from headrace import JobManager, JobSpec
from headrace.errors import PermanentError
from tests.cli.shell import Shell


def submit(shell: Shell, batch_id: str, count: int) -> None:
    async def work(jobs: JobManager) -> None:
        specs = [JobSpec(type="row") for _ in range(count)]
        await jobs.submit_batch(specs, JobSpec(type="sum"), batch_id=batch_id)

    shell.manage(work)


def end(shell: Shell, count: int, *, well: bool = True) -> None:
    async def work(jobs: JobManager) -> None:
        for job in await jobs.claim("w", types=["row"], limit=count):
            if well:
                await jobs.complete(job.id, job.token)
            else:
                await jobs.fail(job.id, job.token, PermanentError("no"))

    shell.manage(work)


def test_progress_in_text_and_json(shell: Shell) -> None:
    submit(shell, "import-42", 8)
    end(shell, 2)
    end(shell, 1, well=False)
    answer = shell.ok("batch", "import-42")
    assert answer.out.splitlines() == [
        "import-42: 3 of 8 ended (38%)",
        "waiting    5",
        "running    0",
        "completed  2",
        "failed     1",
    ]
    told = shell.ok("batch", "import-42", "--json").json
    states = told.pop("states")
    assert told == {
        "id": "import-42",
        "total": 8,
        "waiting": 5,
        "running": 0,
        "ended": 3,
        "completed": 2,
        "fraction": 0.375,
        "done": False,
    }
    assert (states["completed"], states["failed"], states["pending"]) == (2, 1, 5)


def test_any_jobs_with_the_tag_are_a_batch(shell: Shell) -> None:
    shell.submit("t", "--tag", "batch=mine")
    assert shell.ok("batch", "mine", "--json").json["total"] == 1


def test_one_that_is_not_there_is_not_found(shell: Shell) -> None:
    answer = shell("batch", "nowhere", "--json")
    assert (answer.code, answer.out) == (3, "")
    assert "BATCH_NOT_FOUND" in answer.err
    assert shell("batch", "nowhere", "--wait").code == 3


def test_waiting_ends_with_the_last_job_and_says_how_it_went(shell: Shell) -> None:
    submit(shell, "good", 5)
    worker = threading.Timer(0.3, end, (shell, 5))
    worker.start()
    answer = shell("batch", "good", "--wait", "--json")
    worker.join()
    assert (answer.code, answer.json["done"]) == (0, True)
    submit(shell, "bad", 2)
    end(shell, 1)
    end(shell, 1, well=False)
    answer = shell("batch", "bad", "--wait")
    assert answer.code == 1
    assert answer.out.startswith("bad: 2 of 2 ended (100%)")


def test_a_callback_url_brings_its_webhook(shell: Shell) -> None:
    shell.submit("report", "--id", "r", "--callback-url", "https://example.org/done")
    (webhook,) = shell.ok("list", "--tag", "webhook-of=r", "--json").json["jobs"]
    assert (webhook["type"], webhook["queue"]) == ("headrace.webhook", "headrace.webhooks")
    answer = shell("submit", "report", "--callback-url", "https://user:pw@example.org/")
    assert answer.code == 2
    assert "pw" not in answer.err
