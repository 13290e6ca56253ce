"""What is drawn, and how it is laid out: without a page."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

import pytest

from headrace import history
from headrace.dashboard import charts, graph, timeline, words
from headrace.dashboard.links import Links
from headrace.dashboard.same import command, curl
from headrace.model import EventKind, State

START = datetime(2026, 11, 19, 12, tzinfo=UTC)
MOMENTS = [START + timedelta(minutes=minute) for minute in range(60)]


def test_a_chart_has_a_round_top_and_a_word_for_each_series() -> None:
    drawn = charts.lines(
        MOMENTS,
        [
            charts.Series("came", [float(i) for i in range(60)], "c1"),
            charts.Series("<went>", [None, 7.0, *([None] * 58)], "c2"),
        ],
        "what came and went",
    )
    assert "<span>60</span><span>30</span><span>0</span>" in drawn
    assert "&lt;went&gt;" in drawn
    assert drawn.count('class="line c2"') == 1
    assert " style=" not in drawn
    assert re.findall(r">(\d\d:\d\d)</text>", drawn) == [
        "12:00",
        "12:10",
        "12:20",
        "12:30",
        "12:40",
        "12:50",
    ]


def test_layers_of_a_bar_stand_one_above_the_other() -> None:
    drawn = charts.stacked(
        MOMENTS[:1],
        [charts.Series("a", [3.0], "completed"), charts.Series("b", [1.0], "failed")],
        "ends",
    )
    blocks = re.findall(r'fill (\w+)" x="0.0" y="([\d.]+)" width="[\d.]+" height="([\d.]+)"', drawn)
    assert blocks == [("completed", "25.00", "75.00"), ("failed", "0.00", "25.00")]


def test_a_bar_shares_its_length() -> None:
    drawn = charts.bar(
        [charts.Part("x", 1, "c1"), charts.Part("none", 0, "c2"), charts.Part("y", 3, "c3")], "b"
    )
    assert re.findall(r'x="([\d.]+)%" width="([\d.]+)%"', drawn) == [
        ("0.000", "25.000"),
        ("25.000", "75.000"),
    ]
    half = charts.bar([charts.Part("taken", 2, "c1")], "slots", total=4)
    assert 'width="50.000%"' in half


@pytest.mark.parametrize("values", [[], [0.0], [1e-6, 5e9], [3.0] * 500])
def test_nothing_is_drawn_outside(values: list[float]) -> None:
    moments = MOMENTS[:1] * len(values)
    for drawn in (
        charts.lines(moments, [charts.Series("x", values, "c1")], "x"),
        charts.stacked(moments, [charts.Series("x", values, "c1")], "x"),
        charts.histogram([str(one) for one in values], values, "x"),
        charts.spark(values, "x"),
    ):
        numbers = [float(one) for one in re.findall(r'[xy]="(-?[\d.]+)"', drawn)]
        assert all(-20 <= one <= 1000 for one in numbers)


def _nodes(*names: str, state: State = State.COMPLETED) -> list[graph.Node]:
    return [graph.Node(name, name.split("-", maxsplit=1)[0], state) for name in names]


def test_each_job_stands_to_the_right_of_what_it_waits_for() -> None:
    nodes = _nodes("load", "t-1", "t-2", "extract", "alone")
    edges = [
        ("extract", "t-1"),
        ("extract", "t-2"),
        ("t-1", "load"),
        ("t-2", "load"),
        ("gone", "load"),
    ]
    placed = graph.lay_out(nodes, edges)
    columns = {job.id: one.column for one in placed for job in one.jobs}
    assert columns == {"extract": 0, "alone": 0, "t-1": 1, "t-2": 1, "load": 2}
    places = [(one.column, one.row) for one in placed]
    assert len(set(places)) == len(places)


def test_many_equal_jobs_are_drawn_as_one() -> None:
    members = [
        graph.Node(f"m-{i}", "member", State.COMPLETED if i < 30 else State.FAILED)
        for i in range(40)
    ]
    last = graph.Node("last", "publish", State.BLOCKED)
    placed = graph.lay_out([*members, last], [(one.id, "last") for one in members])
    assert sorted(len(one.jobs) for one in placed) == [1, 40]
    drawn = graph.draw(placed, Links("/ops"), here="last")
    assert "40 × member" in drawn
    assert "30 completed, 10 failed" in drawn
    assert 'href="/ops/jobs?type=member"' in drawn
    assert 'class="node here"' in drawn


def test_a_ring_does_not_hang_the_page() -> None:
    placed = graph.lay_out(_nodes("a", "b"), [("a", "b"), ("b", "a")])
    assert len(placed) == 2


def _attempt(number: int, begin: float, end: float | None, **more: object) -> history.Attempt:
    return history.Attempt(
        attempt=number,
        worker=f"w-{number}",
        leased_at=START + timedelta(seconds=begin),
        lease_until=None,
        wait_us=1_000_000,
        ended_at=None if end is None else START + timedelta(seconds=end),
        **{"state": State.RUNNING, **more},  # type: ignore[arg-type]
    )


def test_attempts_share_one_axis_and_late_writes_are_marked() -> None:
    late = timeline.Refused(START + timedelta(seconds=8), "w-1", 1, "complete", "STALE_TOKEN")
    first = _attempt(1, 1, 5, state=State.LOST, outcome=EventKind.LOST)
    lanes = timeline.lanes(
        START,
        [first, _attempt(2, 6, 10, state=State.COMPLETED, outcome=EventKind.COMPLETED)],
        START + timedelta(hours=1),
        [late],
    )
    assert [lane.look for lane in lanes] == ["lost", "completed"]
    drawn = lanes[0].draw()
    assert 'x="10.000%" y="3" width="40.000%"' in drawn
    assert 'x="0.000%" y="8" width="10.000%"' in drawn  # its wait
    assert "tried to complete" in drawn
    assert "STALE_TOKEN" in drawn
    assert "refused" not in lanes[1].draw()


def test_one_that_runs_goes_on_to_the_end_of_the_axis() -> None:
    (lane,) = timeline.lanes(START, [_attempt(1, 1, None)], START + timedelta(seconds=4))
    assert 'x="25.000%" y="3" width="75.000%"' in lane.draw()


@pytest.mark.parametrize(
    ("value", "told"),
    [(0, "0"), (999, "999"), (1000, "1k"), (1999, "1.9k"), (15_600, "15k"), (10_000_000, "10M")],
)
def test_short_numbers_never_say_more_than_there_is(value: int, told: str) -> None:
    assert words.compact(value) == told


def test_what_is_shown_as_a_command_survives_a_shell() -> None:
    line = command("list", queue=["it's", "a b"], state=("dead",), tenant="$(rm -rf)")
    assert (
        line
        == """headrace list --queue 'it'"'"'s' --queue 'a b' --state dead --tenant '$(rm -rf)'"""
    )
    assert curl("http://h:1", "/jobs/{}/cancel", "a/b?c", method="POST", body={}) == (
        "curl -X POST -H \"Authorization: Bearer $HEADRACE_TOKEN\" -H 'Content-Type: application/json' "
        "-d '{}' http://h:1/api/v1/jobs/a%2Fb%3Fc/cancel"
    )


@pytest.mark.parametrize(
    ("address", "is_own"),
    [
        ("/ops/jobs", True),
        ("/ops/", True),
        ("/other", False),
        ("//evil", False),
        ("/ops", False),
        (None, False),
        ("https://evil/ops/", False),
    ],
)
def test_only_our_own_pages_are_led_back_to(address: str | None, is_own: bool) -> None:
    assert (Links("/ops").own(address) is not None) == is_own
    assert Links("").own("//evil.example") is None
