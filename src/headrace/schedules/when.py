"""When a schedule is due: by a cron expression in a time zone, or at an interval. Pure."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta, tzinfo
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import msgspec
from cronsim import CronSim, CronSimError
from msgspec.structs import force_setattr

from headrace import validation
from headrace.clock import from_us, to_us
from headrace.duration import Seconds, parse
from headrace.errors import InvalidSchedule

INTERVAL_SECONDS_MIN = 1.0
EXPRESSION_CHARS_MAX = 256


_ALIASES = {
    "@hourly": "0 * * * *",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@weekly": "0 0 * * 0",
    "@monthly": "0 0 1 * *",
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
}


class _CronMeta(type(msgspec.Struct)):  # type: ignore[misc]
    """Tells those who write what other libraries call the zone how it is called here."""

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        for name in ("timezone", "tz"):
            if name in kwargs:
                raise InvalidSchedule(
                    f"a Cron has no {name!r}: write zone='Europe/Berlin'; {validation.UNCHANGED}"
                )
        return super().__call__(*args, **kwargs)


class Cron(msgspec.Struct, frozen=True, tag_field="kind", tag="cron", metaclass=_CronMeta):
    """A cron expression, read in a time zone: minute, hour, day, month, weekday; or a second before them.

    Also `@hourly`, `@daily`, `@weekly`, `@monthly` and `@yearly`.

    When clocks are put forward, what falls into the gap comes at its end; when they are put back, it
    comes once, the first time. That is for expressions of five fields that name an hour and a minute:
    those that begin either with a star, or have seconds, follow the clock on the wall, so they come
    twice in the repeated hour and not at all in the one left out.
    """

    expression: str
    zone: str = "UTC"

    def __post_init__(self) -> None:
        if type(self.expression) is str:
            force_setattr(self, "expression", _ALIASES.get(self.expression, self.expression))
        _check_expression(
            validation.check_text(self.expression, "the cron expression", EXPRESSION_CHARS_MAX)
        )
        _zone(self.zone)

    def ticks(self, after: datetime, created_at: datetime) -> Iterator[datetime]:  # noqa: ARG002 - one signature for both
        """Every tick later than `after`, in order, in UTC."""
        latest = after
        for local in CronSim(self.expression, after.astimezone(_zone(self.zone))):
            moment = local.astimezone(UTC)
            # Begun in the second half of a repeated hour, it gives ticks of the first half.
            if moment > latest:
                latest = moment
                yield moment


class Every(msgspec.Struct, frozen=True, tag_field="kind", tag="every"):
    """An interval: at `start`, and whenever so many seconds have passed since. Knows no time zone.

    Without a start it counts from the creation of its schedule, and is first due one interval later.
    """

    seconds: float
    start: datetime | None = None

    if TYPE_CHECKING:

        def __init__(self, seconds: Seconds, start: datetime | None = None) -> None: ...

    def __post_init__(self) -> None:
        force_setattr(self, "seconds", validation.check_seconds(self.seconds, "the interval"))
        if self.seconds < INTERVAL_SECONDS_MIN:
            raise InvalidSchedule(
                f"the interval is {self.seconds} seconds; the shortest is {INTERVAL_SECONDS_MIN:.0f}; "
                f"{validation.UNCHANGED}"
            )
        if self.start is not None:
            validation.check_time(self.start, "the start of the interval")

    def ticks(self, after: datetime, created_at: datetime) -> Iterator[datetime]:
        """Every tick later than `after`, in order, in UTC."""
        first = to_us(self.start or created_at)
        step = round(self.seconds * 1_000_000)
        number = max((to_us(after) - first) // step + 1, 0)
        return (from_us(first + count * step) for count in itertools.count(number))


When = Cron | Every


def when_of(given: object) -> object:
    """What stands for a Cron or an Every: an expression, such as "0 6 * * *" or "@daily", or a duration."""
    if isinstance(given, str):
        try:
            return Every(parse(given))
        except ValueError:
            return Cron(given)
    return Every(given.total_seconds()) if isinstance(given, timedelta) else given


@functools.lru_cache(maxsize=4096)
def _check_expression(expression: str) -> None:
    try:
        first = next(CronSim(expression, datetime(2000, 1, 1, tzinfo=UTC)), None)
    except CronSimError as error:
        raise InvalidSchedule(
            f"{expression!r} is not a cron expression: {str(error).lower()} "
            f"(minute, hour, day, month, weekday: '0 3 * * MON'); {validation.UNCHANGED}"
        ) from error
    if first is None:
        raise InvalidSchedule(
            f"the cron expression {expression!r} is never due; {validation.UNCHANGED}"
        )


def _zone(name: str) -> tzinfo:
    try:
        return UTC if name == "UTC" else ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, TypeError, OSError) as error:
        raise InvalidSchedule(
            f"this host knows no time zone {name!r}: write it like Europe/Berlin, "
            f"or install the package tzdata if all are missing; {validation.UNCHANGED}"
        ) from error
