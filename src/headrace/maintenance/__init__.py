"""What keeps a store healthy while workers run: lapsed leases, lifetimes, dependencies, schedules, retention.

Every worker runs all of it. There is no leader to elect and none to lose: each step does only what is due,
and however many hosts do it at once, it is done once.
"""

from headrace.maintenance.loop import Maintenance, Round
from headrace.manager.upkeep import DEFAULT_STEPS, TRIM_EVENTS, Done, Step, steps_under

__all__ = [
    "DEFAULT_STEPS",
    "TRIM_EVENTS",
    "Done",
    "Maintenance",
    "Round",
    "Step",
    "steps_under",
]
