from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

import pytest
from rich.text import Text

from headrace import duration
from headrace.cli.table import Column, lay_out
from tests.cli.shell import Shell

UUID = "3f0c2f7e-4a53-4c0e-9a27-6b8f9f1f6a11"
COLUMNS = (
    Column(name="id"),
    Column(name="size", right=True, rank=2),
    Column(name="note", rank=1, cut=True),
    Column(name="tenant", rank=3, usual="default"),
)
ROWS = [(UUID, "7", "a long story about nothing", "default"), ("b", "1200", "", "default")]


def _lines(width: int) -> list[str]:
    return [line.plain for line in lay_out(COLUMNS, ROWS, width)]


def test_a_wide_table_shows_all_that_says_something() -> None:
    assert _lines(200) == [
        f"{'ID':<36}  SIZE  NOTE",
        f"{UUID}     7  a long story about nothing",
        f"{'b':<36}  1200",
    ]


def test_a_narrow_table_cuts_text_then_drops_columns_and_never_cuts_ids() -> None:
    assert _lines(56)[1] == f"{UUID}     7  a long stor…"
    assert _lines(50)[1] == f"{UUID}  a long stor…"
    assert _lines(40) == [f"{'ID':<36}".rstrip(), UUID, "b"]
    assert _lines(10)[1] == UUID


def test_wide_characters_keep_the_columns_straight() -> None:
    columns = (Column(name="a"), Column(name="b"))
    lines = list(lay_out(columns, [("日本", "x"), (Text("abcd"), "y")], 80))
    assert [line.cell_len for line in lines] == [7, 7, 7]


def test_no_colours_and_no_cuts_off_the_terminal(shell: Shell) -> None:
    name = "x" * 120
    shell.submit(name, "--id", "y" * 120)
    out = shell.ok("list").out
    assert "\x1b" not in out
    assert name in out
    assert "y" * 120 in out


def test_colours_and_whole_ids_on_a_narrow_terminal(
    shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = shell.submit("send_email")
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("COLUMNS", "60")
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    out = shell.ok("list").out
    assert "\x1b[" in out
    plain = re.sub(r"\x1b\[[0-9;]*m", "", out).splitlines()
    assert plain[1].startswith(job)
    assert all(len(line) <= 60 for line in plain)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("90s", 90.0),
        ("5m", 300.0),
        ("2h", 7200.0),
        ("30d", 2_592_000.0),
        ("1w", 604_800.0),
        ("1h30m", 5400.0),
        ("250ms", 0.25),
        ("1.5h", 5400.0),
        ("0", 0.0),
        ("12", 12.0),
    ],
)
def test_durations_as_people_write_them(text: str, seconds: float) -> None:
    assert duration.parse(text) == pytest.approx(seconds)


@pytest.mark.parametrize("text", ["", "s", "m5", "-5s", "5 s", "1e3", "5M", "5mm", "inf"])
def test_what_is_not_a_duration(text: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(text)}$"):
        duration.parse(text)


@pytest.mark.parametrize(
    ("seconds", "told"),
    [
        (0.2, "just now"),
        (3, "3s ago"),
        (59.9, "59s ago"),
        (200, "3m ago"),
        (7500, "2h5m ago"),
        (7200, "2h ago"),
        (4 * 86_400, "4d ago"),
        (-0.85, "in 850ms"),
        (-90, "in 1m"),
    ],
)
def test_ages(seconds: float, told: str) -> None:
    now = datetime(2026, 1, 1, tzinfo=UTC)
    assert duration.age(now - timedelta(seconds=seconds), now) == told
