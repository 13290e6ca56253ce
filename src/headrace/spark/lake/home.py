"""The lake's own folder, `_headrace`: which store it belongs to, who works on it, and what is left to do."""

from __future__ import annotations

import contextlib
import fcntl
import os
import socket
import threading
import uuid
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from headrace.errors import HeadraceError, InvalidInput
from headrace.spark.lake.delta import LakeTooNew

FORMAT = 1
FOLDER = "_headrace"


class NoLake(InvalidInput):
    """There is no lake at that path."""

    code = "NO_LAKE"


class OtherStore(InvalidInput):
    """The lake holds the events of another store. Nothing was changed."""

    code = "OTHER_STORE"


class LakeBusy(HeadraceError):
    """Another pipeline works on the lake. Nothing was changed."""

    code = "LAKE_BUSY"


class Identity(msgspec.Struct, frozen=True, kw_only=True):
    """Written once, when the lake is made."""

    format: int = FORMAT
    lake_id: str
    store_id: str
    created_at: datetime


class Owner(msgspec.Struct, frozen=True, kw_only=True):
    """Who holds the lock: for the message to those who want it, too."""

    host: str
    pid: int
    since: datetime


class State(msgspec.Struct, frozen=True, kw_only=True):
    """What the tables themselves do not tell."""

    touched: dict[int, datetime] = {}
    """Batches whose rows gold has not been computed from: the earliest moment that each has changed."""
    checkpoint: str = "checkpoint"
    """The folder of the stream's checkpoint, beside this file."""
    cursor: str = ""
    """Of the last event that bronze holds, in the order of the log."""
    ran_at: datetime | None = None
    runs: int = 0
    compacted_at_run: int = 0


class Home:
    """The folder `_headrace` of a lake. Its files are replaced whole, so that a crash leaves old or new."""

    def __init__(self, lake: Path) -> None:
        self.lake = lake
        self.path = lake / FOLDER
        self._writing = threading.Lock()

    # --- whose it is -----------------------------------------------------------------------------

    def identity(self) -> Identity:
        """Raises NoLake, LakeTooNew."""
        try:
            text = (self.path / "lake.json").read_bytes()
        except FileNotFoundError:
            raise NoLake(
                f"there is no lake at {self.lake}; nothing was changed. `headrace pipeline run` makes one"
            ) from None
        known = msgspec.json.decode(text, type=Identity)
        if known.format > FORMAT:
            raise LakeTooNew(
                f"the lake at {self.lake} has format {known.format}, this Headrace knows format {FORMAT}; "
                "nothing was changed. Use the newer version that wrote it"
            )
        return known

    def claim_for(self, store_id: str) -> Identity:
        """The identity of this store's lake, made now if there is none. Raises OtherStore."""
        try:
            known = self.identity()
        except NoLake:
            known = Identity(
                lake_id=str(uuid.uuid4()), store_id=store_id, created_at=datetime.now(UTC)
            )
            self._replace("lake.json", known)
        if known.store_id != store_id:
            raise OtherStore(
                f"the lake at {self.lake} holds the events of another store than this url's; nothing was "
                "changed. Give the url that it was made with, or another path for a new lake"
            )
        return known

    # --- what is left to do ----------------------------------------------------------------------

    def state(self) -> State:
        try:
            return msgspec.json.decode((self.path / "state.json").read_bytes(), type=State)
        except FileNotFoundError:
            return State()

    def touch(self, batch: int, moment: datetime) -> None:
        """Before silver takes a batch in: gold is to be computed from that moment on."""
        with self._writing:
            state = self.state()
            known = state.touched.get(batch, moment)
            self._put(state, touched=state.touched | {batch: min(known, moment)})

    def settled(self, batch: int) -> None:
        """Gold holds all batches up to this one."""
        with self._writing:
            state = self.state()
            left = {number: since for number, since in state.touched.items() if number > batch}
            self._put(state, touched=left)

    def note(self, **changes: object) -> None:
        with self._writing:
            self._put(self.state(), **changes)

    def _put(self, state: State, **changes: object) -> None:
        self._replace("state.json", msgspec.structs.replace(state, **changes))

    def _replace(self, name: str, document: msgspec.Struct) -> None:
        self.path.mkdir(parents=True, exist_ok=True)
        aside = self.path / f".{name}.{os.getpid()}"
        with aside.open("wb") as file:
            file.write(msgspec.json.format(msgspec.json.encode(document), indent=2))
            file.flush()
            os.fsync(file.fileno())
        aside.rename(self.path / name)

    # --- who works on it -------------------------------------------------------------------------

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """Alone on this lake while the block lasts. Raises LakeBusy.

        The operating system holds the lock for this process and takes it back when the process ends in
        whatever way: a killed pipeline leaves nothing that must be cleared.
        """
        self.path.mkdir(parents=True, exist_ok=True)
        with (self.path / "lock").open("a+b") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise LakeBusy(self._busy(file.name)) from None
            owner = Owner(host=socket.gethostname(), pid=os.getpid(), since=datetime.now(UTC))
            file.truncate(0)
            file.write(msgspec.json.encode(owner))
            file.flush()
            yield

    def _busy(self, lock: str) -> str:
        with contextlib.suppress(OSError, msgspec.DecodeError):
            owner = msgspec.json.decode(Path(lock).read_bytes(), type=Owner)
            who = f"process {owner.pid} on {owner.host}, since {owner.since:%Y-%m-%d %H:%M:%S} UTC"
            return f"another pipeline works on the lake at {self.lake}: {who}; nothing was changed"
        return f"another pipeline works on the lake at {self.lake}; nothing was changed"
