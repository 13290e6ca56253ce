"""Fleets: workers inside the tasks of a Spark cluster, told and watched through the store."""

from headrace.spark.fleet.plan import Fleet
from headrace.spark.fleet.record import stop
from headrace.spark.fleet.runner import RunningFleet, run, start
from headrace.spark.fleet.status import FleetState, FleetStatus, WorkerStatus, fleet_status, fleets

__all__ = [
    "Fleet",
    "FleetState",
    "FleetStatus",
    "RunningFleet",
    "WorkerStatus",
    "fleet_status",
    "fleets",
    "run",
    "start",
    "stop",
]
