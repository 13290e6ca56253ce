"""New jobs as rows of the tables that they are written to, as COPY takes them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from operator import attrgetter
from typing import Any

from headrace.model import Event, Job, State
from headrace.stores.base import Insertion
from headrace.stores.columns import JOB, Kind
from headrace.stores.postgres.columns import FRESH, NEVER_AT_BIRTH
from headrace.stores.postgres.copying import (
    NO_TEXTS,
    Values,
    boolean,
    bytea,
    column,
    encoded,
    float8,
    int4,
    int8,
    sent_seqs,
    text,
    timestamptz,
)
from headrace.stores.postgres.values import us_or_none

_ENCODERS: Mapping[Kind, Callable[[Any], bytes]] = {
    Kind.INT: int4,
    Kind.FLOAT: float8,
    Kind.TEXT: text,
    Kind.JSON: bytea,
    Kind.TIME: timestamptz,
    Kind.STATE: text,
}
_PAST = sorted({one.field.partition(".")[0] for one in JOB if one.name in NEVER_AT_BIRTH})
_past = attrgetter(*_PAST)
_NO_PAST = (None,) * len(_PAST)


def are_plain(insertion: Insertion) -> bool:
    """New jobs and nothing else: no tags, keys or edges, nothing to be looked at or locked first."""
    return not (
        insertion.keys or insertion.edges or insertion.parents or insertion.kin or insertion.fence
    ) and all(
        not job.tags and job.state is State.PENDING and _past(job) == _NO_PAST
        for job in insertion.jobs
    )


class NewRows:
    """Plain new jobs with their events, lanes, and the seqs taken for them, as the server sent them."""

    def __init__(
        self,
        jobs: Sequence[Job],
        events: Sequence[Event],
        lanes: list[int],
        seqs: bytes,
        early: list[bool],
    ) -> None:
        self._sources: dict[str, Values] = {
            "seq": sent_seqs(seqs),
            "lane": column(lanes, int4),
            "tags": NO_TEXTS,
            "early": column(early, boolean),
            "lease_us": column([us_or_none(job.lease_seconds) for job in jobs], int8),
            "event_at": column([event.at for event in events], timestamptz),
            "event_kind": column([event.kind for event in events], text),
            "event_payload_bytes": column([event.payload_bytes for event in events], int4),
            "event_detail": column([event.detail_json for event in events], bytea),
        }
        for part in JOB:
            if part.name not in self._sources and part.name not in NEVER_AT_BIRTH:
                values = [getattr(job, part.field) for job in jobs]
                self._sources[part.name] = column(values, _ENCODERS[part.kind])

    def of(self, table: str) -> bytes:
        """The rows of one table, whose columns are those of FRESH."""
        return encoded({name: self._sources[source] for name, source in FRESH[table].items()})
