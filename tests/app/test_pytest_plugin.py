"""The plugin of pytest, in a project of its own."""

from __future__ import annotations

import subprocess
import sys
from importlib.metadata import entry_points
from pathlib import Path

SHOP = """
from headrace import Context, Headrace

app = Headrace("sqlite:///never-made.db")

@app.task
async def receipt(card: str) -> None: ...

@app.task
async def buy(ctx: Context, card: str) -> str:
    await ctx.spawn(receipt.spec(card))
    return f"sold to {card}"
"""
CONFTEST = """
import pytest, shop

@pytest.fixture
def headrace_app():
    return shop.app
"""
TESTS = """
import asyncio
import pytest
from shop import app, buy, receipt

def test_without_an_event_loop(headrace_sync_harness):
    job = buy.submit_sync("4000")
    assert headrace_sync_harness.drain() == 2
    assert app.sync.result(job) == "sold to 4000"
    headrace_sync_harness.assert_submitted(receipt, card="4000")

def test_with_an_event_loop(headrace_harness):
    async def scenario():
        job = await buy.submit("4001")
        assert await headrace_harness.drain() == 2
        return await app.result(job)
    assert asyncio.run(scenario()) == "sold to 4001"

@pytest.mark.headrace(inline=True)
def test_at_once(headrace_sync_harness):
    assert app.sync.result(buy.submit_sync("4002")) == "sold to 4002"

def test_nothing_is_left(headrace_sync_harness):
    assert headrace_sync_harness.submitted == []
"""


def run(folder: Path, *files: tuple[str, str]) -> subprocess.CompletedProcess[str]:
    for name, text in files:
        (folder / name).write_text(text)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--strict-markers"]
    return subprocess.run(
        command, check=False, cwd=folder, capture_output=True, text=True, timeout=100
    )


def test_fixtures_for_tests_with_and_without_an_event_loop(tmp_path: Path) -> None:
    found = run(tmp_path, ("shop.py", SHOP), ("conftest.py", CONFTEST), ("test_shop.py", TESTS))
    assert found.returncode == 0, found.stdout
    assert "4 passed" in found.stdout
    assert not (tmp_path / "never-made.db").exists()


def test_it_says_what_is_missing(tmp_path: Path) -> None:
    found = run(tmp_path, ("shop.py", SHOP), ("test_shop.py", TESTS))
    assert "the fixture headrace_app is yours to define" in found.stdout


def test_pytest_finds_it_by_itself() -> None:
    (found,) = entry_points(group="pytest11", name="headrace")
    assert found.value == "headrace.testing.pytest_plugin"
