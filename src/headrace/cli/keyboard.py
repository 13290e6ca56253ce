"""Keys pressed on the terminal, heard at once, without Enter."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def on_keys(act: Callable[[str], None]) -> Iterator[None]:
    """Call `act` on the running event loop with what is pressed, while the block lasts.

    An arrow key is several letters, the first of which is an escape; they come together.

    Does nothing where no terminal is the standard input, and on systems that know no such mode. Ctrl-C
    stays a signal. The terminal is put back as it was.
    """
    try:
        import termios
        import tty
    except ImportError:  # Windows
        yield
        return
    if not sys.stdin.isatty():
        yield
        return
    terminal = sys.stdin.fileno()
    loop = asyncio.get_running_loop()

    def hear() -> None:
        pressed = os.read(terminal, 64)
        if not pressed:
            loop.remove_reader(terminal)  # closed: it would be reported for ever
        else:
            act(pressed.decode(errors="ignore"))

    before = termios.tcgetattr(terminal)
    tty.setcbreak(terminal)
    loop.add_reader(terminal, hear)
    try:
        yield
    finally:
        loop.remove_reader(terminal)
        termios.tcsetattr(terminal, termios.TCSADRAIN, before)
