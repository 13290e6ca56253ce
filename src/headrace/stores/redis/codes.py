"""How the words of the model are written in Redis: one letter each, since every job and event has some.

The letters are part of the schema: one that was used is never given another meaning.
"""

from __future__ import annotations

from headrace.model import EventKind, State

STATE_CODE = {
    State.BLOCKED: "b",
    State.PENDING: "p",
    State.RUNNING: "r",
    State.CANCELLING: "g",
    State.RETRYING: "t",
    State.LOST: "l",
    State.COMPLETED: "c",
    State.FAILED: "f",
    State.DEAD: "d",
    State.CANCELLED: "x",
    State.ABANDONED: "a",
}
STATE_OF = {code: state for state, code in STATE_CODE.items()}
STATE_OF_BYTE = {code.encode(): state for state, code in STATE_CODE.items()}
STATE_BYTE = {state: code.encode() for state, code in STATE_CODE.items()}

KIND_CODE = {
    EventKind.ENQUEUED: "e",
    EventKind.UNBLOCKED: "u",
    EventKind.LEASED: "l",
    EventKind.COMPLETED: "c",
    EventKind.FAILED: "f",
    EventKind.DEAD: "d",
    EventKind.RETRYING: "t",
    EventKind.SNOOZED: "s",
    EventKind.RELEASED: "r",
    EventKind.CANCELLING: "g",
    EventKind.CANCELLED: "x",
    EventKind.LOST: "o",
    EventKind.ABANDONED: "a",
    EventKind.RESCHEDULED: "h",
    EventKind.UPDATED: "p",
    EventKind.RETIMED: "m",
}
KIND_OF = {code: kind for kind, code in KIND_CODE.items()}
