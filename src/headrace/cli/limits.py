"""`headrace limits`: how much of a queue runs, starts and waits at a time; set, listed and removed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import click
import msgspec
from msgspec.structs import replace

from headrace.cli.exits import Exit
from headrace.cli.session import Session, in_session
from headrace.cli.settings import command, group
from headrace.cli.table import Column
from headrace.cli.values import Written
from headrace.errors import InvalidInput
from headrace.limits import QueueLimits, Rate
from headrace.validation import LIMIT_MAX

COLUMNS = (Column(name="queue"), Column(name="limits"))

_SIZES = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9}


class RateRecord(msgspec.Struct, frozen=True, kw_only=True):
    jobs: int
    per_seconds: float
    burst: int


class LimitsRecord(msgspec.Struct, frozen=True, kw_only=True):
    """All limits of a queue; null where there is none."""

    queue: str
    concurrency: int | None
    key_concurrency: int | None
    tenant_concurrency: int | None
    rate: RateRecord | None
    key_rate: RateRecord | None
    fair: bool
    weights: Mapping[str, float]
    waiting_jobs_max: int | None
    waiting_bytes_max: int | None
    tenant_waiting_jobs_max: int | None
    tenant_waiting_bytes_max: int | None


class ListRecord(msgspec.Struct, frozen=True, kw_only=True):
    queues: tuple[LimitsRecord, ...]


class RemovedRecord(msgspec.Struct, frozen=True, kw_only=True):
    queue: str
    removed: bool


@group(
    "limits",
    examples=(
        "headrace limits set mail --concurrency 10 --key-concurrency 1 --rate 5/s",
        "headrace limits list",
    ),
)
def limits() -> None:
    """Limit how many jobs of a queue run at a time, how fast they start, and how many may wait.

    Limits hold for all workers together, whatever their number. The key of a job is its --limit-key.
    """


def _rate(text: str) -> Rate:
    try:
        return Rate.parse(text)
    except InvalidInput as error:
        raise ValueError(error.message) from error


def _weight(text: str) -> tuple[str, float]:
    tenant, _, number = text.rpartition("=")
    try:
        return tenant, float(number)
    except ValueError:
        raise ValueError(f"{text!r} is not a weight: write acme=3") from None


def _count(text: str) -> int:
    if not text.isdecimal() or not 1 <= int(text) <= LIMIT_MAX:
        raise ValueError(f"{text!r} is not a number from 1 to {LIMIT_MAX}")
    return int(text)


def _size(text: str) -> int:
    lower = text.lower().removesuffix("b")
    digits = lower.rstrip("kmg")
    try:
        return int(digits) * _SIZES[lower[len(digits) :]]
    except (KeyError, ValueError):
        raise ValueError(f"{text!r} is not a size: write 500000, 500kB or 2GB") from None


COUNT = Written("n", _count)
RATE = Written("rate", _rate)
SIZE = Written("size", _size)


def _check(**options: Any) -> None:
    _wanted(options)


@command(
    "set",
    examples=(
        "headrace limits set mail --concurrency 10 --key-concurrency 1",
        "headrace limits set api --rate 100/m --burst 10 --key-rate 1/s",
        "headrace limits set reports --fair --weight acme=3 --tenant-waiting-jobs 10000",
    ),
)
@click.argument("queue")
@click.option("--concurrency", type=COUNT, help="How many run at a time.")
@click.option("--key-concurrency", type=COUNT, help="How many of each key.")
@click.option("--tenant-concurrency", type=COUNT, help="How many of each tenant.")
@click.option("--rate", type=RATE, metavar="N/TIME", help="How fast they start: 5/s, 100/m, 1/10s.")
@click.option(
    "--burst", type=COUNT, help="How many may start at once after a quiet time.  [default: N]"
)
@click.option("--key-rate", type=RATE, metavar="N/TIME", help="How fast those of each key start.")
@click.option("--key-burst", type=COUNT, help="The burst of each key.  [default: N]")
@click.option("--fair", is_flag=True, help="Tenants take turns.")
@click.option(
    "--weight",
    "weights",
    type=Written("weight", _weight),
    multiple=True,
    metavar="TENANT=N",
    help="With --fair: N turns for this tenant where others get one; may be repeated.",
)
@click.option("--waiting-jobs", type=COUNT, help="How many may wait; more are refused.")
@click.option("--waiting-bytes", type=SIZE, help="How many bytes of payload may wait: 500kB, 2GB.")
@click.option("--tenant-waiting-jobs", type=COUNT, help="How many of each tenant may wait.")
@click.option("--tenant-waiting-bytes", type=SIZE, help="The payloads of each tenant.")
@in_session(check=_check)
async def set_limits(session: Session, /, *, queue: str, **options: Any) -> Exit:
    """Give a queue exactly these limits; those it had before are gone.

    What runs goes on, and counts.
    """
    wanted = _wanted(options)
    await session.jobs.set_limits(queue, wanted)
    if session.out.as_json:
        session.out.document(_record(queue, wanted))
    else:
        session.out.text(f"queue {queue}: {_text(wanted)}")
    return Exit.OK


def _wanted(options: Mapping[str, Any]) -> QueueLimits:
    """The options as limits, or the usage error that says what is wrong with them."""
    try:
        found = QueueLimits(
            concurrency=options["concurrency"],
            key_concurrency=options["key_concurrency"],
            tenant_concurrency=options["tenant_concurrency"],
            rate=_with_burst("--rate", options["rate"], "--burst", options["burst"]),
            key_rate=_with_burst(
                "--key-rate", options["key_rate"], "--key-burst", options["key_burst"]
            ),
            fair=options["fair"],
            weights=dict(options["weights"]),
            waiting_jobs_max=options["waiting_jobs"],
            waiting_bytes_max=options["waiting_bytes"],
            tenant_waiting_jobs_max=options["tenant_waiting_jobs"],
            tenant_waiting_bytes_max=options["tenant_waiting_bytes"],
        )
    except InvalidInput as error:
        raise click.UsageError(error.message) from error
    if found.are_none:
        raise click.UsageError("give a limit, such as --concurrency 10")
    return found


def _with_burst(
    option: str, rate: Rate | None, burst_option: str, burst: int | None
) -> Rate | None:
    if rate is None and burst is not None:
        raise click.UsageError(f"{burst_option} is the burst of {option}: give that, too")
    return rate if rate is None or burst is None else replace(rate, burst=burst)


@command("list", examples=("headrace limits list", "headrace limits list --json"))
@in_session()
async def list_limits(session: Session) -> Exit:
    """List the queues that have limits."""
    found = await session.jobs.limits()
    if session.out.as_json:
        queues = tuple(_record(queue, one) for queue, one in found.items())
        session.out.document(ListRecord(queues=queues))
    elif not found:
        session.out.text("no queue has limits")
    else:
        session.out.table(COLUMNS, [(queue, _text(one)) for queue, one in found.items()])
    return Exit.OK


@command("remove", examples=("headrace limits remove mail",))
@click.argument("queue")
@in_session()
async def remove_limits(session: Session, queue: str) -> Exit:
    """Remove all limits of a queue."""
    removed = await session.jobs.remove_limits(queue)
    if session.out.as_json:
        session.out.document(RemovedRecord(queue=queue, removed=removed))
    else:
        session.out.text(f"queue {queue} {'has no limits now' if removed else 'had no limits'}")
    return Exit.OK


for _command in (set_limits, list_limits, remove_limits):
    limits.add_command(_command)


def _record(queue: str, one: QueueLimits) -> LimitsRecord:
    fields = {name: getattr(one, name) for name in QueueLimits.__struct_fields__}
    fields |= {name: _rate_record(fields[name]) for name in ("rate", "key_rate")}
    return LimitsRecord(queue=queue, **fields)


def _rate_record(rate: Rate | None) -> RateRecord | None:
    if rate is None:
        return None
    return RateRecord(jobs=rate.jobs, per_seconds=rate.per_seconds, burst=rate.capacity)


def _text(one: QueueLimits) -> str:
    return ", ".join(_words(one))


def _words(one: QueueLimits) -> Iterator[str]:
    for count, what in (
        (one.concurrency, "at a time"),
        (one.key_concurrency, "per key at a time"),
        (one.tenant_concurrency, "per tenant at a time"),
    ):
        if count is not None:
            yield f"{count} {what}"
    for rate, whose in ((one.rate, ""), (one.key_rate, " per key")):
        if rate is not None:
            yield f"{rate}{whose}" + ("" if rate.burst is None else f" (burst {rate.burst})")
    if one.fair:
        weights = ", ".join(f"{tenant} {weight:g}" for tenant, weight in one.weights.items())
        yield "tenants take turns" + (f" ({weights})" if weights else "")
    for count, what in (
        (one.waiting_jobs_max, "jobs waiting"),
        (one.waiting_bytes_max, "bytes waiting"),
        (one.tenant_waiting_jobs_max, "jobs waiting per tenant"),
        (one.tenant_waiting_bytes_max, "bytes waiting per tenant"),
    ):
        if count is not None:
            yield f"{count} {what}"
