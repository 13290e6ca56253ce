"""The supervisor of several worker processes, with processes that stand for workers."""

from __future__ import annotations

import signal
import subprocess
import sys

SIGNALLED_WHILE_STARTING = """
import os, signal, subprocess, sys, time
from headrace.worker import supervisor

class Slow(subprocess.Popen):
    def __init__(self, *args, **options):
        super().__init__(*args, **options)
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(0.5)

supervisor.subprocess.Popen = Slow
command = [sys.executable, "-c", "import time; time.sleep(60)"]
sys.exit(supervisor.Supervisor(command, 2).run())
"""

ENDING_BADLY = """
import sys
from headrace.worker.supervisor import Supervisor

command = [sys.executable, "-c", '''
import signal, sys, time
signal.signal(signal.SIGTERM, lambda *_: sys.exit(3))
print("up", flush=True)
time.sleep(60)
''']
sys.exit(Supervisor(command, 1).run())
"""


def test_a_signal_reaches_a_process_that_is_just_being_started() -> None:
    """And one that ended before it could handle signals is no failure: it had nothing to finish."""
    ended = subprocess.run(
        [sys.executable, "-c", SIGNALLED_WHILE_STARTING], timeout=30, check=False
    )
    assert ended.returncode == 0


def test_the_worst_exit_code_is_reported() -> None:
    with subprocess.Popen([sys.executable, "-c", ENDING_BADLY], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"up\n"
        process.send_signal(signal.SIGTERM)
        assert process.wait(30) == 3
