"""One pipeline per lake, on whichever machine: a record in the store, with an end unless it is renewed."""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import msgspec

from headrace.spark.lake.delta import LakeBusy
from headrace.spark.lake.home import Owner, busy, this_process
from headrace.spark.lake.storage import Storage
from headrace.spark.lake.store import Store
from headrace.stores.base import Record

KIND = "lake"
HOLD_SECONDS = 60.0
"""A pipeline that says nothing for so long has ended, as far as others are concerned."""
RENEW_SECONDS = 10.0


class Holder(msgspec.Struct, frozen=True, kw_only=True):
    """Who works on the lake, and until when unless that is said again."""

    owner: Owner
    until: datetime
    fence: int
    """Counts the holders: bronze's commits carry it."""


class Lock:
    """Held by this process until it is released, or until it is lost."""

    def __init__(self, store: Store, lake: Storage, lake_id: str) -> None:
        self._store = store
        self._lake = lake
        self._name = lake_id
        self._record: Record | None = None
        self._changing = threading.Lock()
        self._lost: Owner | None = None
        self._is_lost = False
        self.fence = 0

    @contextlib.contextmanager
    def held(self) -> Iterator[None]:
        """While the block lasts. Raises LakeBusy."""
        self._take()
        ended = threading.Event()
        renewing = threading.Thread(target=self._renew, args=(ended,), daemon=True)
        renewing.start()
        try:
            yield
        finally:
            ended.set()
            renewing.join()
            self._release()

    def check(self) -> None:
        """Raises LakeBusy if it was lost. Asked before every batch; what comes later its commit refuses."""
        if self._is_lost:
            raise LakeBusy(busy(self._lake, self._lost))

    def _take(self) -> None:
        stored = self._store.record(KIND, self._name)
        held = _decoded(stored)
        if held is not None and held.until > datetime.now(UTC) and not _is_dead(held.owner):
            raise LakeBusy(busy(self._lake, held.owner))
        self.fence = 1 if held is None else held.fence + 1
        if not self._put(stored, this_process()):
            held = _decoded(self._store.record(KIND, self._name))
            raise LakeBusy(busy(self._lake, None if held is None else held.owner))

    def _put(self, stored: Record, owner: Owner) -> bool:
        until = datetime.now(UTC) + timedelta(seconds=HOLD_SECONDS)
        body = msgspec.json.encode(Holder(owner=owner, until=until, fence=self.fence))
        wanted = msgspec.structs.replace(stored, body_json=body)
        done = self._store.put_record(wanted)
        if done:
            self._record = msgspec.structs.replace(wanted, version=stored.version + 1)
        return done

    def _renew(self, ended: threading.Event) -> None:
        owner = this_process()
        while not ended.wait(RENEW_SECONDS):
            with self._changing:
                assert self._record is not None
                try:
                    kept = self._put(self._record, owner)
                except Exception:  # noqa: BLE001, S112 - the store is away: the next time will tell
                    continue
                if not kept:
                    held = _decoded(self._store.record(KIND, self._name))
                    self._lost = None if held is None else held.owner
                    self._is_lost = True
                    return

    def _release(self) -> None:
        """The record stays, for its fence; its end is now."""
        if self._record is None or self._is_lost:
            return
        body = msgspec.json.encode(
            Holder(owner=this_process(), until=datetime.fromtimestamp(0, UTC), fence=self.fence)
        )
        with contextlib.suppress(Exception):  # the store is away: the record ends by itself
            self._store.put_record(msgspec.structs.replace(self._record, body_json=body))


def _decoded(stored: Record) -> Holder | None:
    if not stored.version:
        return None
    return msgspec.json.decode(stored.body_json, type=Holder)


def _is_dead(owner: Owner) -> bool:
    """Killed on this machine: nobody has to wait for its end."""
    here = this_process()
    if owner.host != here.host or owner.pid == here.pid:
        return False
    try:
        os.kill(owner.pid, 0)
    except ProcessLookupError:
        return True
    except PermissionError:
        return False
    # A zombie has ended, too, and waits for its parent only.
    with contextlib.suppress(OSError, IndexError):
        return Path(f"/proc/{owner.pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    return False
