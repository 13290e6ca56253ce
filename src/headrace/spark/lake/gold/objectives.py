"""Service objectives: what was promised of each queue and type, as the lake's owner wrote it down."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import msgspec

from headrace.errors import InvalidInput
from headrace.spark.lake.storage import Storage, storage_of

FILE = "_headrace/objectives.json"
"""In the lake. Absent: one default objective for every queue and type."""


class Objective(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What is promised of the jobs of a queue and type; None stands for any.

    `start_ratio` of jobs start within `start_seconds` of being due, `finish_ratio` of those that complete
    do so within `finish_seconds` of being due, and `success_ratio` of those that end complete. Jobs that
    somebody cancelled count for neither of the latter two.
    """

    queue: str | None = None
    type: str | None = None
    start_seconds: float = 60.0
    start_ratio: float = 0.99
    finish_seconds: float = 900.0
    finish_ratio: float = 0.99
    success_ratio: float = 0.99

    def __post_init__(self) -> None:
        for name in ("start_ratio", "finish_ratio", "success_ratio"):
            if not 0 < getattr(self, name) < 1:
                raise ValueError(f"`{name}` lies between 0 and 1, both excluded")
        for name in ("start_seconds", "finish_seconds"):
            if not getattr(self, name) > 0:
                raise ValueError(f"`{name}` is more than 0")


DEFAULT = (Objective(),)


def read(lake: str | Path | Storage) -> tuple[Objective, ...]:
    """The objectives of a lake. InvalidInput if its file cannot be understood."""
    storage = lake if isinstance(lake, Storage) else storage_of(lake)
    path = f"{storage}/{FILE}"
    try:
        text = storage.read(FILE)
    except FileNotFoundError:
        return DEFAULT
    try:
        return ordered(msgspec.json.decode(text, type=list[Objective]))
    except msgspec.DecodeError as error:
        raise InvalidInput(
            f"{path} holds no objectives: {error}; no table was changed. Write a list such as "
            '[{"queue": "mail", "start_seconds": 30, "success_ratio": 0.999}], or remove the file'
        ) from error


def ordered(objectives: Sequence[Objective]) -> tuple[Objective, ...]:
    """The most particular first: queue and type, queue, type, any. The default stands last."""
    ranked = sorted(objectives, key=lambda one: (one.queue is None) * 2 + (one.type is None))
    return (*ranked, *DEFAULT)
