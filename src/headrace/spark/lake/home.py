"""The lake's own folder, `_headrace`: which store it belongs to, who works on it, and what is left to do."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import re
import shutil
import socket
import threading
import uuid
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import TypeVar

import msgspec
from deltalake.exceptions import DeltaError

from headrace.errors import HeadraceError, InvalidInput
from headrace.spark.lake.delta import LakeBusy, LakeTooNew, flush_folder

FORMAT = 1
FOLDER = "_headrace"

_UNUSABLE = frozenset(
    {
        *(errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOSPC, errno.EDQUOT, errno.EIO),
        *(errno.ENOTDIR, errno.EEXIST, errno.ENOENT, errno.ENAMETOOLONG),
    }
)
_URL = re.compile(r"(^|/)(s3[an]?|gs|az|adl|abfss?|wasbs?|hdfs|dbfs|file|https?):/")
_TROUBLE = re.compile(r"[%\\\x00-\x1f\x7f]")


class NoLake(InvalidInput):
    """There is no lake at that path."""

    code = "NO_LAKE"


class OtherStore(InvalidInput):
    """The lake holds the events of another store. Nothing was changed."""

    code = "OTHER_STORE"


class LakeUnusable(HeadraceError):
    """The lake's folder cannot be read or written. What was committed to its tables stays."""

    code = "LAKE_UNUSABLE"


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
    unchecked: dict[int, int] = {}
    """Batches that have not passed the checks: the least seq of each."""
    checkpoint: str = "checkpoint"
    """The folder of the stream's checkpoint, beside this file."""
    cursor: str = ""
    """Of the last event that bronze holds, in the order of the log."""
    checked_cursor: str = ""
    """Up to here bronze was found to hold every event of the log."""
    ran_at: datetime | None = None
    runs: int = 0
    compacted_at_run: int = 0


class Home:
    """The folder `_headrace` of a lake. Its files are replaced whole, so that a crash leaves old or new.

    Raises InvalidInput for a path where no lake can be.
    """

    def __init__(self, lake: Path) -> None:
        _check_path(lake)
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
            return self.check_for(store_id)
        except NoLake:
            made = Identity(
                lake_id=str(uuid.uuid4()), store_id=store_id, created_at=datetime.now(UTC)
            )
            self._replace("lake.json", made)
            return made

    def check_for(self, store_id: str | None) -> Identity:
        """The identity of this store's lake. Raises OtherStore, NoLake, LakeTooNew."""
        known = self.identity()
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

    def touch(self, batch: int, moment: datetime, seq: int) -> None:
        """Before silver takes a batch in: gold is due from that moment on, and the checks from that seq."""
        with self._writing:
            state = self.state()
            since = min(state.touched.get(batch, moment), moment)
            least = min(state.unchecked.get(batch, seq), seq)
            self._put(
                state,
                touched=state.touched | {batch: since},
                unchecked=state.unchecked | {batch: least},
            )

    def settled(self, batch: int) -> None:
        """Gold holds all batches up to this one."""
        with self._writing:
            state = self.state()
            self._put(state, touched=_after(batch, state.touched))

    def checked(self, batch: int, cursor: str) -> None:
        """All batches up to this one, and the log up to the cursor, have passed the checks."""
        with self._writing:
            state = self.state()
            left = _after(batch, state.unchecked)
            self._put(state, unchecked=left, checked_cursor=cursor)

    def drop_old_checkpoints(self) -> None:
        """Of the streams that read the log before it was read anew: nobody goes on from there."""
        kept = self.state().checkpoint
        for folder in self.path.glob("checkpoint*"):
            if folder.name != kept:
                shutil.rmtree(folder, ignore_errors=True)

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
        flush_folder(self.path)

    # --- who works on it -------------------------------------------------------------------------

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """Alone on this lake while the block lasts. Raises LakeBusy, and LakeUnusable whenever it is.

        The operating system holds the lock for this process and takes it back when the process ends in
        whatever way: a killed pipeline leaves nothing that must be cleared.
        """
        with self._usable(), self._lock():
            yield

    @contextlib.contextmanager
    def _usable(self) -> Iterator[None]:
        try:
            yield
        except (OSError, DeltaError) as error:
            # What delta-rs raises is a plain one, without a number.
            if isinstance(error, OSError) and not (
                error.errno in _UNUSABLE or type(error) is OSError
            ):
                raise
            raise LakeUnusable(
                f"the lake at {self.lake} cannot be read or written ({error}); every table is as its last "
                "commit left it. Make room, or see to it that this user may write there, and run again: that "
                "goes on from here"
            ) from error

    @contextlib.contextmanager
    def _lock(self) -> Iterator[None]:
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


def _check_path(lake: Path) -> None:
    if _URL.search(str(lake)):
        raise InvalidInput(
            f"{lake} is a url, and a lake is a folder of this machine; nothing was changed: give a path, if "
            "need be of a mounted file system"
        )
    if _TROUBLE.search(str(lake)):
        raise InvalidInput(
            f"the path {str(lake)!r} has a %, a backslash or a control character in it, which those who read "
            "Delta tables take for something else; nothing was changed: give another path"
        )


_Told = TypeVar("_Told")


def _after(batch: int, told: Mapping[int, _Told]) -> dict[int, _Told]:
    return {number: value for number, value in told.items() if number > batch}
