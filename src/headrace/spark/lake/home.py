"""Whose a lake is, and who works on it: said by its own tables, by the store, and by a file beside them."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import socket
import uuid
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import msgspec
from deltalake.exceptions import DeltaError

from headrace.errors import HeadraceError, InvalidInput
from headrace.spark.lake.bronze import bronze_of
from headrace.spark.lake.delta import LakeBusy, LakeTooNew
from headrace.spark.lake.storage import Storage

FORMAT = 2
FOLDER = "_headrace"
OLD_IDENTITY = f"{FOLDER}/lake.json"
"""Where a lake of format 1 says whose it is."""

_UNUSABLE = frozenset(
    {
        *(errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOSPC, errno.EDQUOT, errno.EIO),
        *(errno.ENOTDIR, errno.EEXIST, errno.ENOENT, errno.ENAMETOOLONG),
    }
)


class NoLake(InvalidInput):
    """There is no lake at that path."""

    code = "NO_LAKE"


class OtherStore(InvalidInput):
    """The lake holds the events of another store. Nothing was changed."""

    code = "OTHER_STORE"


class LakeTooOld(InvalidInput):
    """An earlier version wrote the lake, in another form. Nothing was changed."""

    code = "LAKE_TOO_OLD"


class LakeUnusable(HeadraceError):
    """The lake cannot be read or written. What was committed to its tables stays."""

    code = "LAKE_UNUSABLE"


class Identity(msgspec.Struct, frozen=True, kw_only=True):
    """Written once, into the commit that makes the lake's first table."""

    format: int = FORMAT
    lake_id: str
    store_id: str
    created_at: datetime


class Owner(msgspec.Struct, frozen=True, kw_only=True):
    """Who works on a lake: for the message to those who want to, too."""

    host: str
    pid: int
    since: datetime

    def __str__(self) -> str:
        return f"process {self.pid} on {self.host}, since {self.since:%Y-%m-%d %H:%M:%S} UTC"


def this_process() -> Owner:
    return Owner(host=socket.gethostname(), pid=os.getpid(), since=datetime.now(UTC))


class Home:
    """What a lake says of itself."""

    def __init__(self, lake: Storage) -> None:
        self.lake = lake
        self._bronze = bronze_of(lake)

    def identity(self) -> Identity:
        """Raises NoLake, LakeTooOld, LakeTooNew."""
        self._check_not_old()
        if not self._bronze.exists:
            raise NoLake(
                f"there is no lake at {self.lake}; nothing was changed. `headrace pipeline run` makes one"
            )
        text = self._bronze.storage.delta().metadata().description
        known = msgspec.json.decode(text, type=Identity)
        if known.format > FORMAT:
            raise LakeTooNew(
                f"the lake at {self.lake} has format {known.format}, this Headrace knows format {FORMAT}; "
                "nothing was changed. Use the newer version that wrote it"
            )
        return known

    def _check_not_old(self) -> None:
        if not self.lake.missing([OLD_IDENTITY]):
            raise LakeTooOld(
                f"the lake at {self.lake} has format 1, which an earlier Headrace wrote; nothing was "
                f"changed. Bring it up to date with: headrace pipeline upgrade --lake {self.lake}"
            )

    def claim_for(self, store_id: str) -> Identity:
        """The identity of this store's lake, made now if there is none. Raises OtherStore."""
        try:
            return self.check_for(store_id)
        except NoLake:
            made = Identity(
                lake_id=str(uuid.uuid4()), store_id=store_id, created_at=datetime.now(UTC)
            )
            self.make(made)
            # Of two who make it at once, one has.
            return self.check_for(store_id)

    def make(self, identity: Identity) -> None:
        self._bronze.prepare(
            name=f"headrace lake {identity.lake_id}",
            description=msgspec.json.encode(identity).decode(),
        )

    def check_for(self, store_id: str | None) -> Identity:
        """The identity of this store's lake. Raises OtherStore, NoLake, LakeTooOld, LakeTooNew."""
        known = self.identity()
        if known.store_id != store_id:
            raise OtherStore(
                f"the lake at {self.lake} holds the events of another store than this url's; nothing was "
                "changed. Give the url that it was made with, or another path for a new lake"
            )
        return known

    def cursor(self) -> str:
        """Of the last event that bronze holds, in the order of the log."""
        return str(self._bronze.snapshot().note.get("cursor", ""))

    # --- who works on it -------------------------------------------------------------------------

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """Alone on this lake, of all on this machine, while the block lasts. Raises LakeBusy.

        And LakeUnusable whenever it is. The operating system takes the lock back when the process ends in
        whatever way. Other machines are kept out by the store's record of the lake (`lock.Lock`), and where
        nobody keeps a second writer out, its commits are refused.
        """
        with self._usable(), self._lock() if self.lake.is_local else contextlib.nullcontext():
            yield

    @contextlib.contextmanager
    def _usable(self) -> Iterator[None]:
        try:
            yield
        except (OSError, DeltaError) as error:
            # What delta-rs raises is a plain one, without a number.
            if isinstance(error, OSError) and (
                error.errno is not None and error.errno not in _UNUSABLE
            ):
                raise
            raise LakeUnusable(
                f"the lake at {self.lake} cannot be read or written ({error}); every table is as its last "
                "commit left it. Make room, or see to it that this user may write there, and run again: that "
                "goes on from here"
            ) from error

    @contextlib.contextmanager
    def _lock(self) -> Iterator[None]:
        folder = self.lake.path / FOLDER
        folder.mkdir(parents=True, exist_ok=True)
        with (folder / "lock").open("a+b") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise LakeBusy(busy(self.lake, _owner(file.name))) from None
            file.truncate(0)
            file.write(msgspec.json.encode(this_process()))
            file.flush()
            yield


def busy(lake: Storage, owner: Owner | None) -> str:
    who = "" if owner is None else f": {owner}"
    return f"another pipeline works on the lake at {lake}{who}; nothing was changed"


def _owner(lock: str) -> Owner | None:
    with contextlib.suppress(OSError, msgspec.DecodeError):
        return msgspec.json.decode(Path(lock).read_bytes(), type=Owner)
    return None
