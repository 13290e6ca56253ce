"""The manager: policy over any store. `JobManager` is the whole of it to the outside."""

from headrace.manager.access import NewToken
from headrace.manager.attempts import FailedAttempt
from headrace.manager.batches import Batch, BatchProgress
from headrace.manager.bulk import Bulk, ErrorGroup
from headrace.manager.cancellation import Cancelled
from headrace.manager.changes import Changed, Order, Settled
from headrace.manager.explanation import Explanation, Reason, Why
from headrace.manager.leases import Claimed, Heartbeats
from headrace.manager.manager import JobManager
from headrace.manager.matching import Matching
from headrace.manager.overview import Overview
from headrace.manager.queries import Found, Page, Stats
from headrace.manager.readers import Lag, Reader
from headrace.manager.rotation import Reencrypted
from headrace.manager.schedules import Fired, Unfired
from headrace.manager.settlement import (
    CancelAcknowledged,
    Completed,
    Failed,
    Outcome,
    Released,
    Snoozed,
    Stopped,
)
from headrace.manager.submission import Submitted
from headrace.manager.trimming import Trimmed
from headrace.manager.upkeep import Maintained
from headrace.tokens import Token

__all__ = [
    "Batch",
    "BatchProgress",
    "Bulk",
    "CancelAcknowledged",
    "Cancelled",
    "Changed",
    "Claimed",
    "Completed",
    "ErrorGroup",
    "Explanation",
    "Failed",
    "FailedAttempt",
    "Fired",
    "Found",
    "Heartbeats",
    "JobManager",
    "Lag",
    "Maintained",
    "Matching",
    "NewToken",
    "Order",
    "Outcome",
    "Overview",
    "Page",
    "Reader",
    "Reason",
    "Reencrypted",
    "Released",
    "Settled",
    "Snoozed",
    "Stats",
    "Stopped",
    "Submitted",
    "Token",
    "Trimmed",
    "Unfired",
    "Why",
]
