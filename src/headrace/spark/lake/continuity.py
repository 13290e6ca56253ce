"""Whether the store's log goes on from where the lake has read it: else they would tell different stories."""

from __future__ import annotations

import pyarrow.compute as pc

from headrace.errors import HeadraceError, LogTrimmed
from headrace.model import Event
from headrace.spark.lake.delta import Snapshot
from headrace.spark.lake.store import Store

_KNOWN_BY = ("job_id", "version", "at")


class LogBroken(HeadraceError):
    """The store's log does not go on from where the lake has read it. Nothing was changed."""

    code = "LOG_BROKEN"


def check_continuity(
    store: Store, cursor: str, bronze: Snapshot, lake: str, *, anew: bool = False
) -> None:
    """That the log holds the event which the lake read last, the same one, and all behind it.

    `anew`: what is missing behind it is put up with. Raises LogBroken.
    """
    if not cursor:
        return
    try:
        stored = store.event_at(cursor)
    except LogTrimmed as trimmed:
        if anew or trimmed.start == cursor:
            return
        raise LogBroken(
            f"the log was trimmed past {cursor}, which the lake at {lake} read last: it begins after "
            f"{trimmed.start} now, and what lay between is in neither; nothing was changed. To go on without "
            "those events: `headrace pipeline run --full`; or give the path of a new lake"
        ) from trimmed
    seq = int(cursor.rpartition(":")[2])
    files = [file for file in bronze.files if file.may_hold("seq", seq, seq)]
    held = bronze.read(_KNOWN_BY, where=pc.field("seq") == seq, files=files).to_pylist()
    if stored is None or any(row != _known(stored) for row in held):
        raise LogBroken(
            f"the store's log does not hold the event {cursor}, which the lake at {lake} read last, or holds "
            "another one there: an older state of the store was restored, or a crash cost it its last "
            "events; nothing was changed. The lake tells of what the store has forgotten, and stays "
            "readable; give the path of a new lake to go on"
        )


def _known(event: Event) -> dict[str, object]:
    return {name: getattr(event, name) for name in _KNOWN_BY}
