"""`headrace fleet`: the words before Spark is needed."""

from __future__ import annotations

import asyncio
import json
from datetime import timedelta

import click
import pytest

from headrace import connect
from headrace.cli.app import headrace
from headrace.cli.exits import Exit
from headrace.cli.fleet import fleet
from headrace.spark.fleet import record
from headrace.spark.fleet.record import FleetRecord
from headrace.spark.fleet.tally import TaskTally
from headrace.stores.base import Record
from tests.cli.shell import Shell


@pytest.mark.parametrize(
    ("words", "command", "rest"),
    [
        (["jobs:app"], "run", ["jobs:app"]),
        (["--tasks", "4", "jobs:app"], "run", ["--tasks", "4", "jobs:app"]),
        (["--url", "redis://h/0", "jobs:app"], "run", ["--url", "redis://h/0", "jobs:app"]),
        (["jobs:app", "--name", "stop"], "run", ["jobs:app", "--name", "stop"]),
        (["run", "jobs:app"], "run", ["jobs:app"]),
        (["--json", "status"], "status", []),
        (["--url=redis://h/0", "stop", "nightly"], "stop", ["nightly"]),
    ],
)
def test_a_place_is_short_for_run(words: list[str], command: str, rest: list[str]) -> None:
    with click.Context(headrace, info_name="headrace") as parent:
        context = fleet.make_context("fleet", list(words), parent=parent)
    assert [*context._protected_args, *context.args] == [command, *rest]


def put(url: str, *, ended: bool = False) -> None:
    async def write() -> None:
        async with await connect(url) as manager:
            now = manager.clock.now()
            body = FleetRecord(
                run="0f0f",
                place="jobs:app",
                master="local[2,1000]",
                tasks=2,
                started_at=now - timedelta(minutes=5),
                beat_at=now,
                ended_at=now if ended else None,
                tallies={
                    0: TaskTally(leased=7, completed=5),
                    1: TaskTally(attempt=1, leased=1, lost=1),
                },
            )
            await manager.store.put_record(
                Record(kind=record.KIND, name="nightly", body_json=record.encode(body))
            )

    asyncio.run(write())


def test_a_fleet_is_shown_and_told_to_stop(shell: Shell) -> None:
    put(shell.url)
    answer = shell("fleet", "status")
    assert "nightly  running  jobs:app         1/2          5  5m ago" in answer.out
    shown = json.loads(shell("fleet", "status", "nightly", "--json").out)
    assert shown["state"] == "running"
    assert [(one["task"], one["attempt"], one["holding"]) for one in shown["workers"]] == [
        (0, 0, 2),
        (1, 1, 0),
    ]
    assert shell("fleet", "stop", "nightly").out == (
        "fleet nightly is stopping: 1 of 2 workers, 5 completed, 1 lost, 2 held\n"
    )
    assert "told to stop  just now" in shell("fleet", "status", "nightly").out
    waited = shell("fleet", "stop", "nightly", "--wait", "10ms")
    assert waited.code == Exit.REFUSED
    assert "its flag stays set" in waited.err


def test_a_fleet_that_has_ended_stays_as_it_is(shell: Shell) -> None:
    put(shell.url, ended=True)
    assert "fleet nightly is ended" in shell("fleet", "stop", "nightly").out


def test_an_unknown_fleet_is_not_found(shell: Shell) -> None:
    shell("submit", "a")
    assert shell("fleet", "status").out == "no fleets\n"
    for words in (("status", "nobody"), ("stop", "nobody")):
        answer = shell("fleet", *words)
        assert answer.code == Exit.NOT_FOUND
        assert "no fleet nobody" in answer.err
