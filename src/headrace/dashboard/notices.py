"""What pages say after an act, by name: no address can put words of its own onto a page. Pure."""

from __future__ import annotations

from collections.abc import Mapping

NOTICES: Mapping[str, str] = {
    "paused": "Queue {} is paused: what runs goes on, nobody claims from it.",
    "resumed": "Queue {} goes on.",
    "cancelled": "Cancelled: {}.",
    "redriven": "This is the new job. It runs what job {} ran.",
    "redriven-many": "Redriven: {}.",
    "deleted": "Deleted: {}. The events stay in the log.",
    "updated": "Changed.",
    "rescheduled": "It is due now.",
    "schedule-paused": "Schedule {} is paused.",
    "schedule-resumed": "Schedule {} goes on.",
    "schedule-ran": "Schedule {} was run now.",
    "schedule-removed": "Schedule {} is gone. The jobs it has submitted stay.",
    "limited": "Queue {} has these limits from now on.",
    "unlimited": "Queue {} has no limits any more.",
    "expired": "Worker {} was declared gone: what it held can be claimed again.",
    "revoked": "Token {} opens nothing any more.",
    "nothing": "Nothing was selected, and nothing was changed.",
    "bulk-begun": "It goes on by itself, also without this page.",
    "bulk-stopped": "It was told to stop.",
}


def notice_told(notice: str | None, about: str | None) -> str | None:
    text = NOTICES.get(notice or "")
    return None if text is None else text.replace("{}", about or "")
