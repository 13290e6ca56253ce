"""The log's readers, and trimming it behind them."""

from __future__ import annotations

from headrace import validation
from headrace.input_checks import guarded
from headrace.manager import readers, trimming
from headrace.manager.readers import Lag, Reader
from headrace.manager.trimming import Trimmed
from headrace.manager.verbs.base import MAINTENANCE_LIMIT, Verbs


@guarded
class Trimming(Verbs):
    """How long events stay. Only for managers that are bound to no tenant: the log is everybody's."""

    async def reader_reached(self, name: str, cursor: str, *, label: str | None = None) -> Reader:
        """Remember that this reader durably holds every event up to and with the cursor.

        From the first time on, nothing is trimmed that it does not hold: a reader says "" before it reads
        anything, and again where it is whenever it has made that durable. It may go back. `label` tells
        people what it is; None leaves it as it was. Raises InvalidCursor, and LogTrimmed where the log
        has lost what comes after the cursor.
        """
        return await readers.reached(self._context, name, cursor, label)

    async def readers(self) -> tuple[Reader, ...]:
        """All there are, in order of name."""
        return await readers.find_all(self._context)

    async def reader_lag(self, reader: Reader) -> Lag:
        """How far it is behind the end of the log."""
        return await readers.lag_of(self._context, reader)

    async def forget_reader(self, name: str) -> bool:
        """Let the log be trimmed whatever this reader holds. True if there was one."""
        return await readers.forget(self._context, name)

    async def trim_events(
        self,
        keep_seconds: float | None = None,
        *,
        without_readers: bool = False,
        limit: int = MAINTENANCE_LIMIT,
        dry_run: bool = False,
    ) -> Trimmed:
        """Delete events older than this (default: the policies'), once every reader holds them.

        The oldest first, up to the first event that is younger or that a reader does not hold: what stays
        has no gap. Where there is no reader at all, it raises NoReaders and deletes nothing, unless
        `without_readers`. Jobs are not touched. A dry run reads whatever would go.
        """
        validation.check_limit(limit, "limit")
        if keep_seconds is None:
            return await trimming.trim_by_policy(self._context, limit=limit, dry_run=dry_run)
        return await trimming.trim(
            self._context,
            validation.check_seconds(keep_seconds, "keep_seconds", zero=True),
            without_readers=without_readers,
            limit=limit,
            dry_run=dry_run,
        )
