"""`headrace serve` as a process."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import httpx

PATIENCE_SECONDS = 60.0


def test_it_says_where_it_is_and_opens_a_browser_there(tmp_path: Path) -> None:
    browser = tmp_path / "browser"
    browser.write_text(f'#!/bin/sh\necho "$1" > {tmp_path}/visited\n')
    browser.chmod(0o755)
    words = ["serve", f"sqlite:///{tmp_path}/jobs.db", "--port", "0", "--open"]
    with subprocess.Popen(
        [sys.executable, "-m", "headrace.cli", *words],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "BROWSER": str(browser)},
    ) as process:
        try:
            assert process.stdout is not None
            said = process.stdout.readline()
            address = next(word for word in said.split() if word.startswith("http://"))
            assert "no token needed on this machine" in said
            visited = tmp_path / "visited"
            end = time.monotonic() + PATIENCE_SECONDS
            while not (visited.exists() and visited.read_text()):
                assert time.monotonic() < end, "no browser was opened"
                time.sleep(0.05)
            assert visited.read_text().strip() == address
            assert httpx.get(address, timeout=PATIENCE_SECONDS).status_code == 200
        finally:
            process.terminate()
        # It ends as the signal asks, once requests under way are answered.
        assert process.wait(PATIENCE_SECONDS) in (0, -signal.SIGTERM)


def test_it_is_not_open_to_others_without_a_token(tmp_path: Path) -> None:
    for words, says in (
        ([], "there is no token yet, and whoever reaches 0.0.0.0 could do everything"),
        (["--no-tokens"], "--no-tokens is for this machine only"),
    ):
        ended = subprocess.run(
            [
                *(sys.executable, "-m", "headrace.cli", "serve"),
                *(f"sqlite:///{tmp_path}/jobs.db", "--host", "0.0.0.0", "--port", "0", *words),
            ],
            check=False,
            capture_output=True,
            text=True,
            timeout=PATIENCE_SECONDS,
        )
        assert ended.returncode != 0
        assert says in ended.stderr
