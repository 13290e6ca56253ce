"""The one list of columns says all that a job, an event and a lane have; rows go both ways by it."""

from __future__ import annotations

import inspect
import traceback
import typing
from datetime import UTC, datetime

import pytest
from msgspec.structs import fields, replace

from headrace import lifecycle
from headrace.clock import from_us, to_us
from headrace.model import Category, Event, Failure, Job, Priority, State
from headrace.stores import codec, columns
from headrace.stores.codec import WORDS, Dialect, lists_writer, reader, source_of, writer
from headrace.stores.columns import (
    EVENT,
    JOB,
    LANE,
    LANE_KEY,
    STANDING,
    Column,
    Group,
    Kind,
    named,
    of,
)

AT = datetime(2026, 3, 4, 5, 6, 7, 890123, tzinfo=UTC)
KEY = ("tenant", "queue", "type", 4, "limit")

PLAIN = Dialect(
    reads=WORDS | {Kind.TIME: from_us, Kind.TEXTS: tuple},
    writes={
        Kind.TIME: to_us,
        Kind.TEXTS: list,
        Kind.STATE: str,
        Kind.CATEGORY: str,
        Kind.EVENT_KIND: str,
    },
)


def job(**changed: object) -> Job:
    """A job with something in every column, though no real one has all of it."""
    full = Job(
        id="id",
        tenant="tenant",
        queue="queue",
        type="type",
        tags=("a", "b"),
        payload_json=b"1",
        priority=Priority.BULK,
        created_at=AT,
        key="key",
        previous_id="previous",
        parent_id="parent",
        correlation_id="correlation",
        callback_url="https://example.org",
        limit_key="limit",
        depth=7,
        seq=8,
        max_attempts=9,
        lease_seconds=0.5,
        timeout_seconds=1.5,
        expires_at=AT.replace(year=2031),
        backoff_json=b"{}",
        state=State.RUNNING,
        version=12,
        run_at=AT.replace(year=2032),
        updated_at=AT.replace(year=2033),
        attempt=4,
        failures=2,
        losses=1,
        token="token",
        lease_until=AT.replace(year=2034),
        assignee="w",
        assigned_at=AT.replace(year=2035),
        scheduled_at=AT.replace(year=2036),
        started_at=AT.replace(year=2037),
        last_failed_at=AT.replace(year=2038),
        finalized_at=AT.replace(year=2039),
        failure=Failure("message", Category.SYSTEM, "CODE"),
        result_json=b"2",
        progress=0.25,
        progress_note="half",
        checkpoint_json=b"3",
        log_json=b"[]",
    )
    return replace(full, **changed)


def stored_fields(struct: type) -> dict[str, object]:
    hints = typing.get_type_hints(struct)
    apart = {"seals", "cursor", "failure", *(column.field for column in LANE_KEY)}
    return {field.name: hints[field.name] for field in fields(struct) if field.name not in apart}


@pytest.mark.parametrize(("struct", "listed"), [(Job, JOB), (Event, EVENT)])
def test_every_field_has_a_column_that_may_be_null_where_the_field_may_be_none(
    struct: type, listed: tuple[Column, ...]
) -> None:
    nullable = {
        column.field: column.nullable
        for column in listed
        if column.field and "." not in column.field
    }
    assert nullable == {
        name: type(None) in typing.get_args(hint) for name, hint in stored_fields(struct).items()
    }
    assert [column.name for column in listed if column.kind is Kind.LANE] == ["lane"]


def test_a_failure_has_a_column_for_each_of_its_parts() -> None:
    parts = [column.field for column in JOB if "." in column.field]
    assert parts == [f"failure.{field.name}" for field in fields(Failure)]
    assert {column.group for column in JOB if column.field in parts} == {Group.STANDING}


def test_a_lane_counts_jobs_and_failures_of_every_state() -> None:
    assert [column.name for column in LANE] == [
        *("tenant", "queue", "type", "priority", "limit_key"),
        *(str(state) for state in State),
        *(f"{state}_failures" for state in State),
    ]


def test_what_a_commit_compares_is_what_the_protocol_says() -> None:
    compared = {column.field for column in (*LANE_KEY, *columns.COMPARED)}
    assert compared == {
        *("tenant", "queue", "type", "priority", "limit_key"),
        *("version", "state", "token", "assignee", "attempt", "failures", "losses"),
    }


@pytest.mark.parametrize(
    "wanted",
    [
        job(),
        job(failure=None, finalized_at=None, expires_at=None, tags=(), max_attempts=None),
        job(failure=Failure("message", Category.TIMEOUT)),
    ],
)
def test_a_job_comes_back_from_its_row(wanted: Job) -> None:
    read = reader(Job, JOB, dialect=PLAIN)
    write = writer(JOB, dialect=PLAIN, given=["lane"])
    assert read(write(wanted, 5), lambda lane: KEY if lane == 5 else ()) == wanted
    apart = reader(Job, of(JOB, Group.IDENTITY, Group.BODY), STANDING, dialect=PLAIN)
    assert apart(
        writer(of(JOB, Group.IDENTITY, Group.BODY), dialect=PLAIN, given=["lane"])(wanted, 5),
        writer(STANDING, dialect=PLAIN)(wanted),
        lambda _: KEY,
    ) == replace(
        wanted,
        payload_json=b"null",
        result_json=None,
        progress=None,
        progress_note=None,
        checkpoint_json=None,
        log_json=None,
    )


def test_an_event_comes_back_from_its_row() -> None:
    _, event = lifecycle.submit(job(state=State.PENDING, token=None, lease_until=None))
    write = writer(of(EVENT, Group.EVENT), dialect=PLAIN, given=["job_seq", "lane"])
    read = reader(Event, EVENT, dialect=PLAIN, computed={"cursor": 'f"{seq}:{job_seq}"'})
    row = (3, *write(event, 8, 5))
    assert read(row, lambda _: KEY) == replace(event, seq=3, cursor="3:8")


def test_lists_hold_what_the_rows_hold() -> None:
    jobs = [job(), job(id="other", failure=None, expires_at=None)]
    write = writer(JOB, dialect=PLAIN, given=["lane"])
    lists = lists_writer(JOB, dialect=PLAIN, given=["lane"])
    rows = [write(one, lane) for one, lane in zip(jobs, (5, 6), strict=True)]
    assert lists(jobs, [5, 6]) == [list(column) for column in zip(*rows, strict=True)]


def test_a_dialect_may_have_something_else_than_none_for_null() -> None:
    dialect = Dialect(
        reads={Kind.TIME: from_us},
        reads_null={Kind.TIME: {-1: None}},
        writes_null={Kind.TIME: lambda moment: -1 if moment is None else to_us(moment)},
    )
    both = named(JOB, "expires_at", "finalized_at")
    assert writer(both, dialect=dialect)(job(expires_at=None, finalized_at=AT)) == (-1, to_us(AT))
    assert "_read_time_or_none[expires_at]" in source_of(reader(Job, both, dialect=dialect))


def test_the_compiled_text_shows_where_it_fails() -> None:
    read = reader(Job, JOB, dialect=PLAIN)
    row = list(writer(JOB, dialect=PLAIN, given=["lane"])(job(), 5))
    row[3] = "unheard of"
    with pytest.raises(KeyError) as raised:
        read(row, lambda _: KEY)
    assert traceback.extract_tb(raised.value.__traceback__)[-1].line == "state=_read_state[state],"
    assert list(inspect.signature(read).parameters) == ["row_1", "lane_key"]
    assert codec.source_of(read).startswith("def read_job(row_1, lane_key):\n")
