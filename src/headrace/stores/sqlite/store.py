"""The verbs of the SQLite store: each hands one function to the writer or to a reader."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, closing
from datetime import UTC, datetime
from functools import partial
from pathlib import Path, PurePath
from typing import TypeVar

from headrace.errors import StoreClosed
from headrace.graph import Join
from headrace.model import Change, Edge, Event, Job
from headrace.stores import base
from headrace.stores.sqlite import (
    claim,
    diagnose,
    graph,
    insert,
    log,
    queues,
    read,
    records,
    schema,
    update,
)
from headrace.stores.sqlite.calls import Call
from headrace.stores.sqlite.commit import commit as commit_changes
from headrace.stores.sqlite.connection import Synchronous, for_reading, for_writing
from headrace.stores.sqlite.leases import annotate, extend, lapsed, outlived
from headrace.stores.sqlite.opening import open_file
from headrace.stores.sqlite.readers import Readers
from headrace.stores.sqlite.session import Snapshot, Transaction
from headrace.stores.sqlite.wait import Watch
from headrace.stores.sqlite.writer import Writer

_READERS = 2

Result = TypeVar("Result")


class SqliteStore:
    """`sqlite:///jobs.db` - one file, many processes. Made by `open`, given back by `close`.

    A verb may be called from any event loop. A caller that is cancelled while it waits does not know
    whether its write was made; it was made whole or not at all.
    """

    capabilities = base.Capabilities(name="sqlite", durable=True, shared=True)

    def __init__(self, path: Path, writer: Writer, readers: Readers, watch: Watch) -> None:
        self.path = path
        self._writer = writer
        self._readers = readers
        self._watch = watch
        self._gate = threading.Lock()
        self._shutting = threading.Lock()
        self._is_closed = False
        self._is_shut = False
        writer.start()
        readers.start()
        watch.start()

    @classmethod
    async def open(
        cls,
        path: str | PurePath,
        *,
        synchronous: Synchronous = "full",
        busy_timeout_seconds: float = 10.0,
        migrate: bool = False,
        create: bool = True,
    ) -> SqliteStore:
        """Open the file, create it if it is missing, upgrade it if `migrate` allows.

        `synchronous="normal"` is faster, and may lose the last writes when the machine loses power;
        never when only the process dies.

        Raises StoreUnavailable, StoreCorrupt, SchemaTooOld or SchemaTooNew, and then leaves the file
        and its folder as they were.
        """
        opening = asyncio.get_running_loop().run_in_executor(
            None,
            partial(
                _open,
                Path(path),
                synchronous=synchronous,
                busy_timeout_seconds=busy_timeout_seconds,
                migrate=migrate,
                create=create,
            ),
        )
        try:
            return await asyncio.shield(opening)
        except asyncio.CancelledError:
            opening.add_done_callback(_discard)
            raise

    async def close(self) -> None:
        with self._gate:
            self._is_closed = True
        await asyncio.to_thread(self._shut)

    async def now(self) -> datetime:
        self._check_open()
        return datetime.now(UTC)

    async def schema_version(self) -> int:
        """The version of the file's schema."""
        return await self._read(lambda view: schema.version_of(view.connection))

    async def diagnose(self) -> Sequence[base.Finding]:
        synchronous = await self._write(lambda tx: diagnose.synchronous(tx.connection))
        return await self._read(lambda view: diagnose.diagnose(view, self.path, synchronous))

    # --- writing ---------------------------------------------------------------------------------

    async def insert(self, insertion: base.Insertion) -> base.Inserted | base.Clash:
        return await self._write(lambda tx: insert.insert(tx, insertion))

    async def claim(self, request: base.ClaimRequest) -> Sequence[Job]:
        return await self._write(lambda tx: claim.claim(tx, request))

    async def heads(self, request: base.ClaimRequest) -> Sequence[base.Head]:
        return await self._read(lambda view: claim.heads(view, request))

    async def claim_shares(
        self, request: base.ClaimRequest, shares: Sequence[base.Share], gates: Sequence[base.Record]
    ) -> Sequence[Job] | None:
        return await self._write(lambda tx: claim.claim_shares(tx, request, shares, gates))

    async def next_due(self, request: base.ClaimRequest) -> datetime | None:
        return await self._read(lambda view: claim.next_due(view, request))

    async def commit(self, commit: base.Commit) -> base.Committed:
        return await self._write(lambda tx: commit_changes(tx, commit))

    async def extend(
        self, leases: Mapping[base.Fence, float | None], now: datetime
    ) -> Sequence[base.Extended]:
        return await self._write(lambda tx: extend(tx, leases, now))

    async def annotate(self, fence: base.Fence, note: base.Note, now: datetime) -> bool:
        return await self._write(lambda tx: annotate(tx, fence, note, now))

    async def rewrite(self, rewrites: Sequence[base.Rewrite]) -> Sequence[bool]:
        return await self._write(lambda tx: update.rewrite(tx, rewrites))

    async def update(self, changes: Sequence[Change]) -> Sequence[bool]:
        return await self._write(lambda tx: update.update(tx, changes))

    async def delete(self, jobs: Mapping[str, int]) -> bool:
        return await self._write(lambda tx: update.delete(tx, jobs))

    # --- reading jobs ----------------------------------------------------------------------------

    async def get(self, ids: Sequence[str]) -> Mapping[str, Job]:
        return await self._read(lambda view: read.get(view, ids))

    async def find(self, query: base.Query) -> Sequence[Job]:
        return await self._read(lambda view: read.find(view, query))

    async def lapsed(
        self, now: datetime, limit: int, *, tenant: str | None = None
    ) -> Sequence[Job]:
        return await self._read(lambda view: lapsed(view, now, limit, tenant))

    async def outlived(
        self, now: datetime, limit: int, *, tenant: str | None = None
    ) -> Sequence[Job]:
        return await self._read(lambda view: outlived(view, now, limit, tenant))

    async def keyed(
        self, scopes: Sequence[base.KeyScope], now: datetime
    ) -> Mapping[base.KeyScope, str]:
        return await self._read(lambda view: read.keyed(view, scopes, now))

    async def count(
        self,
        now: datetime,
        *,
        tenant: str | None = None,
        queues: Sequence[str] | None = None,
        tags: Sequence[str] = (),
    ) -> Sequence[base.Tally]:
        return await self._read(lambda view: read.count(view, now, tenant, queues, tags))

    async def held(self, now: datetime, queues: Sequence[str]) -> Sequence[base.Held]:
        return await self._read(lambda view: claim.held(view, now, queues))

    async def backlog(self, *, tenant: str | None = None, queue: str | None = None) -> base.Backlog:
        return await self._read(lambda view: read.backlog(view, tenant, queue))

    # --- dependencies ----------------------------------------------------------------------------

    async def edges(
        self, *, parent_id: str | None = None, child_id: str | None = None
    ) -> Sequence[Edge]:
        return await self._read(lambda view: graph.edges(view, parent_id, child_id))

    async def joins(self, child_ids: Sequence[str]) -> Mapping[str, Join]:
        return await self._read(lambda view: graph.joins(view, child_ids))

    async def spawned(self, parent_id: str) -> Sequence[Job]:
        return await self._read(lambda view: graph.spawned(view, parent_id))

    async def unseen(self, limit: int) -> Sequence[Edge]:
        return await self._read(lambda view: graph.unseen(view, limit))

    # --- queues and workers ----------------------------------------------------------------------

    async def pause(self, pause: base.Pause) -> None:
        await self._write(lambda tx: queues.pause(tx, pause))

    async def resume(self, queue: str, tenant: str | None) -> bool:
        return await self._write(lambda tx: queues.resume(tx, queue, tenant))

    async def pauses(self) -> Sequence[base.Pause]:
        return await self._read(queues.pauses)

    async def announce(self, worker: base.WorkerSeen) -> None:
        await self._write(lambda tx: queues.announce(tx, worker))

    async def workers(self, since: datetime) -> Sequence[base.WorkerSeen]:
        return await self._read(lambda view: queues.workers(view, since))

    # --- records ---------------------------------------------------------------------------------

    async def records(self, kind: str, names: Sequence[str] | None = None) -> Sequence[base.Record]:
        return await self._read(lambda view: records.find(view, kind, names))

    async def put_record(self, record: base.Record) -> bool:
        return await self._write(lambda tx: records.put_all(tx, [record]))

    async def delete_record(self, record: base.Record) -> bool:
        return await self._write(lambda tx: records.delete(tx, record))

    # --- events ----------------------------------------------------------------------------------

    async def events(self, query: base.EventQuery) -> Sequence[Event]:
        return await self._read(lambda view: log.events(view, query))

    async def tail(self) -> str:
        return await self._read(lambda view: log.cursor_of(log.tail(view)))

    async def trim(self, upto: Sequence[str], before: datetime, limit: int) -> int:
        return await self._write(lambda tx: log.trim(tx, upto, before, limit))

    async def wait(self, after: str, timeout_seconds: float) -> None:
        self._check_open()
        await self._watch.wait(log.position(after), timeout_seconds)

    # --- inside ----------------------------------------------------------------------------------

    async def _write(self, work: Callable[[Transaction], Result]) -> Result:
        call = Call(work)
        with self._gate:
            self._check_open()
            self._writer.submit(call)
        return await call.future

    async def _read(self, work: Callable[[Snapshot], Result]) -> Result:
        call = Call(work)
        with self._gate:
            self._check_open()
            self._readers.submit(call)
        return await call.future

    def _check_open(self) -> None:
        if self._is_closed:
            raise StoreClosed(f"{self.path} is closed; nothing was read or written")

    def _shut(self) -> None:
        """End the threads. The writer's connection goes last: SQLite then empties the log file."""
        with self._shutting:
            if not self._is_shut:
                self._watch.stop()
                self._readers.stop()
                self._writer.stop()
                self._is_shut = True


def _open(
    path: Path,
    *,
    synchronous: Synchronous,
    busy_timeout_seconds: float,
    migrate: bool,
    create: bool,
) -> SqliteStore:
    path = path.absolute()  # the program may change its folder later
    with ExitStack() as opened:
        connection = open_file(
            path, create=create, migrate=migrate, busy_timeout_seconds=busy_timeout_seconds
        )
        opened.enter_context(closing(connection))
        for_writing(connection, synchronous)
        *readers, watcher = [
            opened.enter_context(closing(for_reading(path, busy_timeout_seconds)))
            for _ in range(_READERS + 1)
        ]
        watch = Watch(watcher, path)
        store = SqliteStore(
            path,
            Writer(
                connection,
                path=str(path),
                busy_timeout_seconds=busy_timeout_seconds,
                on_growth=watch.wake,
            ),
            Readers(readers, path=str(path), busy_timeout_seconds=busy_timeout_seconds),
            watch,
        )
        opened.pop_all()  # the store closes them from here on
    return store


def _discard(opening: asyncio.Future[SqliteStore]) -> None:
    """Nobody waits for the store any more: give it back."""
    if not opening.cancelled() and opening.exception() is None:
        opening.result()._shut()  # noqa: SLF001 - blocks shortly: nothing was submitted
