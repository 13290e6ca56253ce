"""What the keys do in `headrace top`: choose a queue, sort, filter, pause."""

from __future__ import annotations

import enum
import re
from collections.abc import Callable, Sequence

import msgspec

from headrace.cli.top_frame import QueueFrame

_ESCAPE = "\x1b"
_UP, _DOWN = ("\x1b[A", "\x1bOA", "k"), ("\x1b[B", "\x1bOB", "j")
_KEY = re.compile(r"\x1b[\[O][A-Z]|.", re.DOTALL)
_ERASE = ("\x7f", "\b")
FILTER_CHARS_MAX = 60


class Sort(enum.Enum):
    """The order of the queues. The next key press takes the next."""

    NAME = "name"
    READY = "ready"
    RUNNING = "running"
    OLDEST = "oldest"
    FAILED = "failed"
    DEAD = "dead"


_LOAD: dict[Sort, Callable[[QueueFrame], float]] = {
    Sort.READY: lambda one: one.ready,
    Sort.RUNNING: lambda one: one.running,
    Sort.OLDEST: lambda one: one.oldest_ready_seconds or 0,
    Sort.FAILED: lambda one: one.failed,
    Sort.DEAD: lambda one: one.dead,
}


class Switch(msgspec.Struct, frozen=True):
    """Pause the queue, or resume it."""

    queue: str
    pause: bool


class Controls:
    """How the frame is looked at, and what was asked for. The keys come one by one."""

    def __init__(self) -> None:
        self.sort = Sort.NAME
        self.filter = ""
        self.typing = False
        """What is typed now is the filter."""
        self.selected: tuple[str, str] | None = None
        """Tenant and queue."""
        self.asking: Switch | None = None
        """Waits for a yes."""
        self.switch: Switch | None = None
        """To be done."""
        self.quit = False
        self.note = ""
        self._shown: list[QueueFrame] = []

    def arrange(self, queues: Sequence[QueueFrame]) -> list[QueueFrame]:
        """Those that pass the filter, in order."""
        wanted = self.filter.casefold()
        shown = [one for one in queues if wanted in one.queue.casefold()]
        load = _LOAD.get(self.sort)
        if load is not None:
            shown.sort(key=load, reverse=True)  # stable: by name where it is the same
        self._shown = shown
        return shown

    def hear(self, pressed: str) -> None:
        """What the terminal sent: a key or, where several were quick, one after the other."""
        for key in _KEY.findall(pressed):
            self._press(key)

    def _press(self, key: str) -> None:
        self.note = ""
        if self.asking is not None:
            self.switch = self.asking if key in "yY" else None
            self.asking = None
        elif self.typing:
            self._type(key)
        elif key in "qQ":
            self.quit = True
        elif key in _UP or key in _DOWN:
            self._move(1 if key in _DOWN else -1)
        elif key == "s":
            every = list(Sort)
            self.sort = every[(every.index(self.sort) + 1) % len(every)]
        elif key in ("/", "f"):
            self.typing = True
        elif key == _ESCAPE:
            self.filter, self.selected = "", None
        elif key == "p":
            self._ask()

    def _type(self, key: str) -> None:
        if key in ("\r", "\n"):
            self.typing = False
        elif key == _ESCAPE:
            self.typing, self.filter = False, ""
        elif key in _ERASE:
            self.filter = self.filter[:-1]
        elif key.isprintable():
            self.filter = (self.filter + key)[:FILTER_CHARS_MAX]

    def _move(self, by: int) -> None:
        places = [(one.tenant, one.queue) for one in self._shown]
        if not places:
            return
        if self.selected not in places:
            self.selected = places[0 if by > 0 else -1]
            return
        at = places.index(self.selected) + by
        self.selected = places[min(max(at, 0), len(places) - 1)]

    def _ask(self) -> None:
        chosen = [one for one in self._shown if (one.tenant, one.queue) == self.selected]
        if not chosen:
            self.note = "choose a queue first, with the arrow keys"
            return
        self.asking = Switch(chosen[0].queue, not chosen[0].paused)

    def take(self) -> Switch | None:
        """What is to be done now, once."""
        switch, self.switch = self.switch, None
        return switch
