"""Since when a batch tells something new: gold stays as it is before that.

A job that waits or runs for days must not have days of gold computed again when it goes on. Nearly always
its old row had foreseen what came: it was due when it was claimed, and its attempt ended.
"""

from __future__ import annotations

from datetime import datetime

import pyarrow as pa
import pyarrow.compute as pc

from headrace.model import CLAIMABLE

_CLAIMABLE = pa.array(sorted(CLAIMABLE), pa.string())
_DUE = ["job_id", "ready_at"]


def first_news(
    *,
    events: pa.Table,
    late: pa.Array,
    old: pa.Table,
    new: pa.Table,
    gone: pa.Table,
    come: pa.Table,
) -> datetime:
    """The earliest moment that gold may see differently.

    `late`: jobs of events that come when rows tell of later ones. `old` and `new`: rows of jobs before and
    after. `gone` and `come`: the attempts in which those differ.
    """
    turned_up = pc.is_in(old["job_id"], value_set=late)
    # Where the past itself looks different, the whole life is news; so where what had ended changes.
    unlike = old.filter(pc.or_(turned_up, old["ended"]))
    like = old.filter(pc.invert(pc.or_(turned_up, old["ended"])))
    waited = like.filter(pc.is_in(like["state"], value_set=_CLAIMABLE))
    due = pa.table([waited["job_id"], _later(waited["run_at"], waited["updated_at"])], _DUE)
    ended = pc.is_in(come["leased_seq"], value_set=gone["leased_seq"].combine_chunks())
    claimed = come.filter(pc.invert(ended)).select(_DUE)
    told = [
        events["at"],
        unlike["created_at"],
        new.filter(pc.is_in(new["job_id"], value_set=late))["created_at"],
        come.filter(ended)["leased_at"],
        # An attempt that is gone and has not come back as another.
        gone.join(come, "leased_seq", join_type="left anti")["ready_at"],
        due.join(claimed, _DUE, join_type="left anti")["ready_at"],
        claimed.join(due, _DUE, join_type="left anti")["ready_at"],
    ]
    first: datetime = min(time for times in told if (time := pc.min(times).as_py()) is not None)
    return first


def _later(one: pa.ChunkedArray, other: pa.ChunkedArray) -> pa.ChunkedArray:
    return pc.if_else(pc.greater(one, other), one, other)
