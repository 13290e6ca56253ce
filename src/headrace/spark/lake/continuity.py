"""Whether the store's log goes on from where the lake has read it: else they would tell different stories."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from headrace.clock import to_us
from headrace.errors import HeadraceError, LogTrimmed
from headrace.model import Event
from headrace.spark.lake.bronze import Last
from headrace.spark.lake.store import Store


class LogBroken(HeadraceError):
    """The store's log does not go on from where the lake has read it. Nothing was changed."""

    code = "LOG_BROKEN"


def check_continuity(
    store: Store, noted: Mapping[str, Any], lake: str, *, anew: bool = False
) -> None:
    """That the log holds the event which the lake read last, the same one, and all behind it.

    `noted`: bronze's note. `anew`: what is missing behind it is put up with. Raises LogBroken.
    """
    cursor = noted.get("cursor", "")
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
    if stored is None or _known(stored) != Last(*noted["last"]):
        raise LogBroken(
            f"the store's log does not hold the event {cursor}, which the lake at {lake} read last, or holds "
            "another one there: an older state of the store was restored, or a crash cost it its last "
            "events; nothing was changed. The lake tells of what the store has forgotten, and stays "
            "readable; give the path of a new lake to go on"
        )


def _known(event: Event) -> Last:
    return Last(event.cursor or "", event.job_id, event.version, to_us(event.at))
