"""Named blocks of SQL: lists and fragments are filled in, and what is wrong is found at import."""

from __future__ import annotations

import pytest

from headrace.stores.columns import JOB, LANE_KEY, Group, named, of
from headrace.stores.sqltext import blocks_of, filled, marks, names

TEXT = """\
-- What this file is about.

-- name: add
-- Adds one.
INSERT INTO jobs ({job.columns})
VALUES ({job.marks});

-- fragment: matching
-- Of one tenant.
(:tenant IS NULL OR tenant = :tenant)
AND queue = '{"a"}' -- stays
-- name: find
SELECT {job.columns}
FROM jobs
WHERE
    {matching}
    AND ({matching});
"""
COLUMNS = named(JOB, "seq", "id")
LISTS = {"job.columns": names(COLUMNS), "job.marks": marks(COLUMNS)}


def test_blocks_are_filled_with_lists_and_with_each_other() -> None:
    assert filled(blocks_of(TEXT), LISTS) == {
        "add": "INSERT INTO jobs (seq, id)\nVALUES (?, ?);",
        "find": """\
SELECT seq, id
FROM jobs
WHERE
    (:tenant IS NULL OR tenant = :tenant)
    AND queue = '{"a"}' -- stays
    AND ((:tenant IS NULL OR tenant = :tenant)
AND queue = '{"a"}' -- stays);""",
    }


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("-- name: a\nSELECT {b};", "SQL block a: {b} is neither a list nor a block"),
        ("-- name: a\nSELECT {a};", "SQL block a contains itself"),
        ("-- name: a\n{b}\n-- fragment: b\n{a}", "SQL block a contains itself"),
        ("-- name: a\n1;\n-- name: a\n2;", "two blocks of SQL are called a"),
    ],
)
def test_what_is_wrong_is_said(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message.replace("{", "\\{")):
        filled(blocks_of(text), {})


def test_lists_of_columns() -> None:
    assert names(of(JOB, Group.PAYLOAD, Group.RESULT), "jobs.") == "jobs.payload, jobs.result"
    assert names(LANE_KEY) == "tenant, queue, type, priority, limit_key"
    assert marks(LANE_KEY) == "?, ?, ?, ?, ?"
