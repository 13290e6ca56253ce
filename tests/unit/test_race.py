"""What a race writes: the table, its place in a page, and the picture."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from bench.race.entrants import ENTRANTS, EVERYTHING, Measure, Store
from bench.race.ledger import Ledger
from bench.race.measures import Figure
from bench.race.picture import picture, told
from bench.race.results import Results
from bench.race.table import BEGIN, END, table, written

ROOT = Path(__file__).parents[2]


def raced() -> Results:
    """Each entrant a tenth slower than the one before it, in three rounds."""
    results = Results(ENTRANTS)
    for number, entrant in enumerate(ENTRANTS):
        for measure in entrant.measures:
            for turn in (0.9, 1.0, 1.1):
                results.add(entrant, measure, Figure(turn * (1000 - 10 * number), 5.0, 20.0, 30.0))
    return results


def test_the_table_has_a_row_for_each_and_says_how_often_the_best_peer_we_are() -> None:
    rows = [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in table(raced()).splitlines()
    ]
    assert len({len(row) for row in rows}) == 1
    assert [row[0] for row in rows if row[0]] == ["store", "---", *Store]
    assert len(rows) == 2 + len(ENTRANTS) + len(Store)
    ours = next(row for row in rows if row[1].startswith("Headrace ("))
    assert ours[2:] == ["1,000 ±10%"] * 4 + ["1000.00 / 5.0", "20 / 30"]
    dramatiq = next(row for row in rows if row[1].startswith("Dramatiq"))
    assert dramatiq[3] == "–"
    ratios = next(row for row in rows if "best peer" in row[1])
    assert ratios[2] == "**1.01 ×** PgQueuer 1.6"
    assert ratios[6] == "**1.02 ×** Procrastinate 3.10"  # of the latency the lowest is the best


def test_a_race_that_measured_nothing_still_has_a_table() -> None:
    assert len(table(Results(ENTRANTS)).splitlines()) == 2 + len(ENTRANTS)


@pytest.mark.parametrize("page", ["README.md", "docs/performance.md"])
def test_a_page_keeps_all_but_what_stands_between_the_marks(page: str) -> None:
    before = (ROOT / page).read_text()
    after = written(before, "the new section")
    head, _, rest = before.partition(BEGIN)
    assert after == f"{head}{BEGIN}\n\nthe new section\n\n{END}{rest.partition(END)[2]}"
    assert written(after, "the new section") == after
    with pytest.raises(ValueError, match="no place"):
        written("no marks", "x")


def test_the_picture_is_well_formed_and_says_the_same_in_words() -> None:
    results = raced()
    root = ET.fromstring(picture(results, "a <caption> & more"))
    words = ["".join(text.itertext()) for text in root.iter("{http://www.w3.org/2000/svg}text")]
    assert {entrant.name for entrant in ENTRANTS if not entrant.is_raw} <= set(words)
    assert "a <caption> & more" in words
    assert root.attrib["aria-label"] == told(results)
    assert "Headrace drains 1.0 times as fast as PgQueuer" in told(results)


def test_the_ledger_tells_how_often_each_job_ran(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from bench.race import ledger

    book = Ledger(tmp_path / "book", 5)
    monkeypatch.setenv(ledger.VARIABLE, str(tmp_path / "book"))
    ledger._written.cache_clear()
    for job in (0, 3, 3):
        ledger.note(job)
    ledger._written.cache_clear()
    assert book.counts(5) == b"\1\0\0\2\0"
    assert book.ran(1) is None
    assert (book.ran(0) or 0) <= (book.ran(3) or 0)
    book.reset()
    assert book.counts(5) == bytes(5)


def test_every_entrant_has_its_module() -> None:
    for entrant in ENTRANTS:
        assert (ROOT / "bench/race/systems" / f"{entrant.module}.py").exists()
        assert entrant.measures <= EVERYTHING
    assert len({entrant.key for entrant in ENTRANTS}) == len(ENTRANTS)
    assert Measure.DRAIN in EVERYTHING
