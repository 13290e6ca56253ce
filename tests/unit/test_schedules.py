from __future__ import annotations

import itertools
from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from msgspec.structs import replace

from headrace import schedules
from headrace.errors import HeadraceError, InvalidInput, InvalidSchedule, StoreCorrupt
from headrace.retry import Constant
from headrace.schedules import Cron, Every, Misfire, Schedule, When
from headrace.schedules import schedule as schedule_rules
from headrace.schedules import stored as stored_form
from headrace.spec import JobSpec

NOW = datetime(2026, 6, 1, 12, 0, 0, 500_000, tzinfo=UTC)
BERLIN = "Europe/Berlin"


def at(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def declare(when: When, now: datetime = NOW, **given_: Any) -> Schedule:
    fields = {"name": "nightly", "job": JobSpec(type="report"), "tenant": "acme", **given_}
    return schedules.declare(when=when, now=now, **fields)


def ticks(when: When, after: datetime, count: int) -> list[str]:
    """In UTC, without the zone."""
    found = itertools.islice(when.ticks(after, after), count)
    return [f"{tick.astimezone(UTC):%m-%dT%H:%M}" for tick in found]


# --- when ----------------------------------------------------------------------------------------


def test_cron_follows_the_clock_of_its_zone() -> None:
    assert ticks(Cron("0 3 * * *"), at("2026-06-01T12:00"), 2) == ["06-02T03:00", "06-03T03:00"]
    summer = ticks(Cron("0 3 * * *", BERLIN), at("2026-06-01T12:00"), 1)
    winter = ticks(Cron("0 3 * * *", BERLIN), at("2026-12-01T12:00"), 1)
    assert (summer, winter) == (["06-02T01:00"], ["12-02T02:00"])


def test_a_tick_is_later_than_the_moment_asked_about_to_the_microsecond() -> None:
    noon = at("2026-06-01T12:00")
    early, late = noon - timedelta(microseconds=1), noon + timedelta(microseconds=1)
    for when in (Cron("0 * * * *"), Every(3600, start=noon)):
        assert [next(when.ticks(after, noon)) for after in (early, noon, late)] == [
            noon,
            noon + timedelta(hours=1),
            noon + timedelta(hours=1),
        ]


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        # 2026-03-29: at 02:00 (01:00 UTC) clocks in Berlin are put forward to 03:00
        ("30 2 * * *", ["03-28T01:30", "03-29T01:00", "03-30T00:30"]),
        ("0,30 2 * * *", ["03-28T01:00", "03-28T01:30", "03-29T01:00", "03-30T00:00"]),
        ("0 30 2 * * *", ["03-28T01:30", "03-30T00:30"]),
        ("30 * * * *", [f"03-28T{hour:02}:30" for hour in range(24)] + ["03-29T00:30"]),
    ],
)
def test_when_clocks_are_put_forward(expression: str, expected: list[str]) -> None:
    assert ticks(Cron(expression, BERLIN), at("2026-03-27T23:59"), len(expected)) == expected


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        # 2026-10-25: at 03:00 (01:00 UTC) clocks in Berlin are put back to 02:00
        ("30 2 * * *", ["10-25T00:30", "10-26T01:30"]),
        ("0 30 2 * * *", ["10-25T00:30", "10-25T01:30", "10-26T01:30"]),
        ("30 * * * *", ["10-25T00:30", "10-25T01:30", "10-25T02:30"]),
    ],
)
def test_when_clocks_are_put_back(expression: str, expected: list[str]) -> None:
    assert ticks(Cron(expression, BERLIN), at("2026-10-25T00:00"), len(expected)) == expected


def test_asked_within_the_repeated_hour_cron_does_not_go_back() -> None:
    assert ticks(Cron("30 2 * * *", BERLIN), at("2026-10-25T01:15"), 1) == ["10-26T01:30"]


EXPRESSIONS = ("30 2 * * *", "*/20 * * * *", "15 1,2,3 * * *", "0 */2 * * SUN", "10 30 2 * * *")
TURNS = ("2026-03-29T00:00", "2026-10-25T00:00", "2026-04-04T14:00", "2026-10-03T15:00")


@given(
    expression=st.sampled_from(EXPRESSIONS),
    zone=st.sampled_from([BERLIN, "Australia/Lord_Howe", "America/New_York", "UTC"]),
    turn=st.sampled_from(TURNS),
    minutes=st.integers(0, 300),
)
@example(expression="30 2 * * *", zone=BERLIN, turn="2026-10-25T00:00", minutes=75)
def test_where_one_begins_to_look_does_not_change_the_ticks(
    expression: str, zone: str, turn: str, minutes: int
) -> None:
    """Hosts look at different moments: they must see the same ticks, or a tick has two jobs."""
    when, end = Cron(expression, zone), at(turn) + timedelta(days=2)
    begin = at(turn) - timedelta(days=2)
    middle = at(turn) + timedelta(minutes=minutes)

    def between(after: datetime) -> list[datetime]:
        return list(itertools.takewhile(lambda tick: tick <= end, when.ticks(after, after)))

    everything = between(begin)
    assert everything == sorted(set(everything))
    assert between(middle) == [tick for tick in everything if tick > middle]


def test_an_interval_counts_from_its_start_or_from_the_creation() -> None:
    created = at("2026-06-01T12:00")
    bare = Every(900)
    assert list(itertools.islice(bare.ticks(created, created), 2)) == [
        created + timedelta(minutes=15),
        created + timedelta(minutes=30),
    ]
    past = Every(3600, start=at("2020-01-01T00:10"))
    assert next(past.ticks(created, created)) == at("2026-06-01T12:10")
    future = Every(3600, start=at("2027-01-01T00:00"))
    assert next(future.ticks(created, created)) == at("2027-01-01T00:00")


def test_an_interval_does_not_drift() -> None:
    created = at("2026-01-01T00:00")
    third = Every(1.1)
    tick = next(third.ticks(created + timedelta(seconds=1.1 * 10_000_000 + 0.5), created))
    assert tick == created + timedelta(microseconds=1_100_000 * 10_000_001)


@pytest.mark.parametrize(
    "expression",
    [
        "",
        " ",
        "* * * *",
        "61 * * * *",
        "* * * * * * *",
        "@noon",
        "0 0 30 2 *",
        "a b c d e",
        "x" * 999,
    ],
)
def test_what_is_no_cron_expression_is_refused(expression: str) -> None:
    with pytest.raises(InvalidInput, match="nothing was stored"):
        Cron(expression)


@given(st.text(alphabet="0123456789*/,-#LW? MONJAN", min_size=1, max_size=20))
def test_whatever_text_is_given_it_is_taken_or_refused(expression: str) -> None:
    try:
        when = Cron(expression, BERLIN)
    except InvalidInput:
        return
    assert next(when.ticks(NOW, NOW)) > NOW


@pytest.mark.parametrize(
    "zone", ["Mars/Olympus", "Europe", "", "../etc/passwd", "/etc/passwd", "ber\0lin"]
)
def test_an_unknown_zone_is_refused(zone: str) -> None:
    with pytest.raises(InvalidSchedule, match="time zone"):
        Cron("0 3 * * *", zone)


@pytest.mark.parametrize("seconds", [0, -1, 0.5, float("nan"), float("inf"), 1e12, "soon", True])
def test_an_interval_out_of_range_is_refused(seconds: Any) -> None:
    with pytest.raises(InvalidInput, match="interval"):
        Every(seconds)


def test_a_start_without_a_zone_is_refused() -> None:
    with pytest.raises(InvalidInput, match="no time zone"):
        Every(60, start=datetime(2026, 1, 1))  # noqa: DTZ001 - that is the point


# --- what is due ---------------------------------------------------------------------------------


def test_nothing_is_due_for_the_time_before_it_was_added() -> None:
    schedule = declare(Cron("* * * * *"))
    assert schedules.due_ticks(schedule, NOW) == schedules.Due()
    assert schedules.due_ticks(schedule, at("2026-06-01T12:00:59")) == schedules.Due()
    first = at("2026-06-01T12:01")
    assert schedules.due_ticks(schedule, first) == schedules.Due((first,), first)


def test_missed_ticks_by_rule() -> None:
    missed = [at(f"2026-06-01T12:0{minute}") for minute in (1, 2, 3)]
    now = at("2026-06-01T12:03:30")
    due = {
        rule: schedules.due_ticks(declare(Cron("* * * * *"), misfire=rule, grace_seconds=30), now)
        for rule in Misfire
    }
    last = missed[-1]
    assert due[Misfire.SKIP] == due[Misfire.ONCE] == schedules.Due((last,), last)
    assert due[Misfire.ALL] == schedules.Due(tuple(missed), last)


def test_past_the_grace_time_only_skip_passes_the_last_tick_over() -> None:
    last, now = at("2026-06-01T12:03"), at("2026-06-01T12:03:30.000001")
    for rule, expected in ((Misfire.SKIP, 0), (Misfire.ONCE, 1), (Misfire.ALL, 3)):
        schedule = declare(Cron("* * * * *"), misfire=rule, grace_seconds=30)
        due = schedules.due_ticks(schedule, now)
        assert (len(due.ticks), due.done_until) == (expected, last)


def test_all_is_bounded_and_keeps_the_latest() -> None:
    schedule = declare(Every(1), misfire=Misfire.ALL)
    now = NOW + timedelta(days=30)
    due = schedules.due_ticks(schedule, now)
    assert list(due.ticks) == [now - timedelta(seconds=back) for back in reversed(range(1000))]


@given(
    when=st.one_of(
        st.sampled_from([Cron(text, BERLIN) for text in EXPRESSIONS]),
        st.builds(Every, st.integers(60, 90_000)),
    ),
    hours=st.integers(0, 24 * 40),
    count=st.integers(1, 20),
)
def test_the_last_ticks_are_those_that_counting_all_gives(
    when: When, hours: int, count: int
) -> None:
    begin = at("2026-03-01T00:00")
    schedule, now = declare(when, begin), begin + timedelta(hours=hours)
    everything = list(itertools.takewhile(lambda tick: tick <= now, when.ticks(begin, begin)))
    assert list(schedule_rules._last_ticks(schedule, now, count)) == everything[-count:]


def test_a_paused_schedule_has_nothing_due_and_resumes_by_its_rule() -> None:
    now = at("2026-06-01T15:30")
    for rule, expected in ((Misfire.SKIP, 0), (Misfire.ONCE, 1), (Misfire.ALL, 3)):
        grace = 86_400.0  # what was paused is not late: skip passes it over all the same
        paused = replace(declare(Cron("0 * * * *"), misfire=rule, grace_seconds=grace), paused=True)
        assert schedules.due_ticks(paused, now) == schedules.Due()
        running = schedules.resumed(paused, now)
        assert not running.paused
        assert len(schedules.due_ticks(running, now).ticks) == expected
        assert schedules.resumed(running, now + timedelta(days=9)) == running


def test_upcoming_never_looks_back() -> None:
    schedule = declare(Cron("0 * * * *"))
    assert schedules.upcoming(schedule, NOW, 2) == (at("2026-06-01T13:00"), at("2026-06-01T14:00"))
    ahead = replace(schedule, done_until=at("2026-06-01T13:00"))
    assert schedules.upcoming(ahead, NOW) == (at("2026-06-01T14:00"),)


# --- the job of a tick ---------------------------------------------------------------------------


def test_the_id_of_a_tick_follows_from_tenant_name_creation_and_tick_alone() -> None:
    schedule, tick = declare(Every(60)), NOW + timedelta(minutes=1)
    same = replace(
        schedule, job=JobSpec(type="other"), paused=True, last_tick=tick, done_until=tick
    )
    assert schedules.tick_id(schedule, tick) == schedules.tick_id(same, tick)
    local = tick.astimezone(ZoneInfo(BERLIN))
    assert schedules.tick_id(schedule, local) == schedules.tick_id(schedule, tick)
    others = [
        schedules.tick_id(replace(schedule, name="n"), tick),
        schedules.tick_id(replace(schedule, tenant="t"), tick),
        schedules.tick_id(replace(schedule, created_at=tick), tick),
        schedules.tick_id(schedule, tick + timedelta(seconds=1)),
    ]
    assert len({schedules.tick_id(schedule, tick), *others}) == 5


def test_the_id_of_a_tick_never_changes_between_versions() -> None:
    schedule = declare(Every(60), at("2026-01-01T00:00"))
    expected = "6f7aa0fd-816c-5b71-bcc5-6fd0cb506ab5"
    assert schedules.tick_id(schedule, at("2026-01-01T00:01")) == expected


def test_the_job_of_a_tick_is_due_at_the_tick_and_tagged() -> None:
    schedule = declare(Every(60), job=JobSpec(type="report", payload={"n": 1}, tags=["b", "a"]))
    spec = schedules.tick_spec(schedule, NOW)
    assert (spec.type, spec.payload, spec.tenant, spec.run_at) == ("report", {"n": 1}, "acme", NOW)
    assert set(spec.tags) == {"a", "b", "schedule=nightly"}


# --- declaring, storing, replacing ---------------------------------------------------------------


@pytest.mark.parametrize(
    "fields",
    [
        {"id": "x"},
        {"key": "x"},
        {"run_at": NOW},
        {"delay_seconds": 5},
        {"after": ["x"]},
    ],
)
def test_what_can_be_said_of_one_job_only_is_refused(fields: dict[str, Any]) -> None:
    with pytest.raises(InvalidSchedule, match=f"leave out {next(iter(fields))}"):
        declare(Every(60), job=JobSpec(type="t", **fields))
    with pytest.raises(InvalidSchedule, match=f"leave out {next(iter(fields))}"):
        declare(Every(60), job=JobSpec(type="t", on_failure=[JobSpec(type="t", **fields)]))


@pytest.mark.parametrize(
    "given_",
    [
        {"name": ""},
        {"name": 7},
        {"job": "report"},
        {"job": JobSpec(type="t", payload=object())},
        {"job": JobSpec(type="t", payload="x" * 70_000)},
        {"job": JobSpec(type="t", tags="x")},
        {"job": JobSpec(type="t", tenant="")},
        {"job": JobSpec(type="t", on_success=None)},  # type: ignore[arg-type]  # that is the point
        {"job": JobSpec(type="t", on_success="abc")},  # type: ignore[arg-type]  # that is the point
        {"job": JobSpec(type="t", on_success=[JobSpec(type="t", tenant="other")])},
        {"misfire": "sometimes"},
        {"grace_seconds": -1},
        {"when": "0 3 * * *"},
    ],
)
def test_bad_declarations_are_refused(given_: dict[str, Any]) -> None:
    with pytest.raises(HeadraceError):
        declare(**{"when": Every(60)} | given_)


FULL = JobSpec(
    type="t",
    payload={"b": [1, None, {"c": 1.5}], "a": "ü"},
    queue="q",
    priority=0,
    tags={"k": "v"},
    limit_key="l",
    max_attempts=None,
    lease_seconds=5.0,
    timeout_seconds=None,
    lifetime_seconds=9.0,
    backoff=Constant(initial=3.0),
    correlation_id="c",
    callback_url="https://example.org/",
    on_success=[JobSpec(type="next", payload=b"x", on_failure=[JobSpec(type="deeper")])],
    on_failure=[JobSpec(type="alarm", tags=["loud"])],
)


@pytest.mark.parametrize("job", [FULL, JobSpec(type="t"), JobSpec(type="t", payload=b"\x00\xff")])
@pytest.mark.parametrize("when", [Cron("0 3 * * *", BERLIN), Every(1.5), Every(60, start=NOW)])
def test_a_schedule_comes_back_as_it_was_stored(when: When, job: JobSpec) -> None:
    schedule = replace(
        declare(when, job=job, misfire=Misfire.ALL), paused=True, last_tick=NOW, tenant="ü/ñ"
    )
    assert schedules.decode(schedules.encode(schedule), "nightly") == schedule


def test_every_field_of_a_description_is_stored_or_refused() -> None:
    stored = set(stored_form._Template.__struct_fields__)
    assert set(JobSpec.__struct_fields__) == {*stored, *schedule_rules._OF_ONE_JOB, "tenant"}


def test_what_cannot_be_read_is_named() -> None:
    body = schedules.encode(declare(Every(60)))
    for bad in (b"", b"null", b"{}", b"\xff", body.replace(b'"every"', b'"lunar"')):
        with pytest.raises(StoreCorrupt, match="schedule nightly cannot be read"):
            schedules.decode(bad, "nightly")
    foreign = schedules.encode(declare(Cron("0 3 * * *", BERLIN))).replace(b"Berlin", b"Narnia")
    with pytest.raises(InvalidSchedule, match="Narnia"):
        schedules.decode(foreign, "nightly")


def test_same_is_what_is_submitted_when_and_by_which_rules() -> None:
    one = declare(Every(60), job=JobSpec(type="t", payload={"a": 1, "b": {"c": 2, "d": 3}}))
    again = declare(
        Every(60),
        NOW + timedelta(days=1),
        job=JobSpec(type="t", payload={"b": {"d": 3, "c": 2}, "a": 1}),
    )
    stored = schedules.decode(schedules.encode(one), "nightly")
    assert schedules.is_same(stored, replace(again, paused=True, last_tick=NOW))
    for other in (
        replace(one, when=Every(61)),
        replace(one, misfire=Misfire.ALL),
        replace(one, grace_seconds=1.0),
        replace(one, job=replace(one.job, payload={"a": True, "b": {"c": 2, "d": 3}})),
        replace(one, job=replace(one.job, max_attempts=None)),
    ):
        assert not schedules.is_same(one, other)


def test_replacing_keeps_the_pause_and_with_the_same_when_the_tick() -> None:
    later = NOW + timedelta(days=1)
    old = replace(declare(Every(60)), paused=True, last_tick=NOW + timedelta(minutes=1))
    payload = schedules.replaced(old, declare(Every(60), later, job=JobSpec(type="new")))
    assert payload == replace(old, job=JobSpec(type="new"))
    timing = schedules.replaced(old, declare(Every(90), later))
    assert (timing.paused, timing.created_at, timing.done_until) == (True, later, later)
    assert timing.last_tick is None


def test_the_payload_of_a_schedule_is_its_own() -> None:
    payload = {"n": 1}
    schedule = declare(Every(60), job=JobSpec(type="t", payload=payload))
    payload["n"] = 2
    assert schedule.job.payload == {"n": 1}


def test_the_stored_form_is_plain_json() -> None:
    body = msgspec.json.decode(schedules.encode(declare(Cron("0 3 * * *", BERLIN))))
    assert body["when"] == {"kind": "cron", "expression": "0 3 * * *", "zone": BERLIN}
    assert body["job"] == {"type": "report", "payload": None}
