"""The manager: policy over any store. `JobManager` is the whole of it to the outside."""

from headrace.history import Attempt
from headrace.manager.access import NewToken
from headrace.manager.attempts import FailedAttempt
from headrace.manager.audit import AuditRow
from headrace.manager.batches import Batch, BatchProgress
from headrace.manager.bulk import Bulk, ErrorGroup
from headrace.manager.bulk_acts import Act, BulkAct, Progress
from headrace.manager.cancellation import Cancelled
from headrace.manager.changes import Changed, Order, Settled
from headrace.manager.explanation import Explanation, Place, Reason, Why
from headrace.manager.holders import HeldJob, Holders
from headrace.manager.job_graph import JobGraph, Link, Node
from headrace.manager.leases import Claimed, Heartbeats
from headrace.manager.manager import JobManager
from headrace.manager.matching import Matching
from headrace.manager.overview import Overview
from headrace.manager.queries import Found, Page, Stats
from headrace.manager.queue_explanation import QueueExplanation
from headrace.manager.readers import Lag, Reader
from headrace.manager.refusals import RefusedWrite, RefusedWrites
from headrace.manager.rollups import ErrorGroups, History
from headrace.manager.rotation import Reencrypted
from headrace.manager.schedules import Fired, Unfired, Upcoming
from headrace.manager.search import JobRow, SearchPage
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
    "Act",
    "Attempt",
    "AuditRow",
    "Batch",
    "BatchProgress",
    "Bulk",
    "BulkAct",
    "CancelAcknowledged",
    "Cancelled",
    "Changed",
    "Claimed",
    "Completed",
    "ErrorGroup",
    "ErrorGroups",
    "Explanation",
    "Failed",
    "FailedAttempt",
    "Fired",
    "Found",
    "Heartbeats",
    "HeldJob",
    "History",
    "Holders",
    "JobGraph",
    "JobManager",
    "JobRow",
    "Lag",
    "Link",
    "Maintained",
    "Matching",
    "NewToken",
    "Node",
    "Order",
    "Outcome",
    "Overview",
    "Page",
    "Place",
    "Progress",
    "QueueExplanation",
    "Reader",
    "Reason",
    "Reencrypted",
    "RefusedWrite",
    "RefusedWrites",
    "Released",
    "SearchPage",
    "Settled",
    "Snoozed",
    "Stats",
    "Stopped",
    "Submitted",
    "Token",
    "Trimmed",
    "Unfired",
    "Upcoming",
    "Why",
]
