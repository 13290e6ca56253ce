"""The lint of the Lua sees what it is for."""

from __future__ import annotations

import pytest

from tools.lint_lua import Names, check_names, unread


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("local a = 1\nb = a", "2: assigns b, which is not its own"),
        ("function f() end", "1: assigns f, which is not its own"),
        ("local function f(one)\n  other.x = 1\n  one = 2\nend\nf()", "1: one is never read"),
        ("for i = 1, 2 do end", "1: i is never read"),
        ("for _, v in pairs({}) do end", "1: v is never read"),
        ("if KEYS then local a = 1 end", "1: a is never read"),
        ("local a = 1", "1: a is never read"),
        ("local a = ", "1: cannot be read"),
    ],
)
def test_a_defect_is_named(text: str, problem: str) -> None:
    names = Names(text)
    assert problem in [*names.problems, *unread(names.own)]


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("return f(x)\n", {"f", "x"}),
        ("local x = x\nreturn x.y.z[i]", {"x", "i"}),
        ("do local a = 1 end return a", {"a"}),
        ("repeat local a = 1 until a == b", {"b"}),
        ("return { a = b, [c] = d, e }", {"b", "c", "d", "e"}),
        ("local function f(a, ...) return f(a, b) end", {"b"}),
        ("return g\nlocal g = 1", {"g"}),
        ("return string.format(s:rep(n))", {"string", "s", "n"}),
    ],
)
def test_what_a_text_reads_of_others(text: str, read: set[str]) -> None:
    assert Names(text).read == read


def test_the_scripts_have_no_defect() -> None:
    assert list(check_names()) == []
