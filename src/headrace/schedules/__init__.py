"""Schedules: jobs that come by themselves. Pure."""

from headrace.schedules.schedule import (
    GRACE_SECONDS_DEFAULT,
    Due,
    Misfire,
    Schedule,
    declare,
    due_ticks,
    replaced,
    resumed,
    tick_id,
    tick_spec,
    upcoming,
)
from headrace.schedules.stored import decode, decode_job, encode, encode_job, is_same
from headrace.schedules.when import Cron, Every, When

__all__ = [
    "GRACE_SECONDS_DEFAULT",
    "Cron",
    "Due",
    "Every",
    "Misfire",
    "Schedule",
    "When",
    "declare",
    "decode",
    "decode_job",
    "due_ticks",
    "encode",
    "encode_job",
    "is_same",
    "replaced",
    "resumed",
    "tick_id",
    "tick_spec",
    "upcoming",
]
