"""`headrace submit`: one job, copies of it, or a file of jobs."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

import click
import msgspec
from msgspec import UNSET, UnsetType

from headrace.cli.batch import BATCH, Batch
from headrace.cli.exits import Exit
from headrace.cli.output import id_text, note, state_text
from headrace.cli.progress import progress
from headrace.cli.session import Session, in_session
from headrace.cli.settings import command
from headrace.cli.values import ATTEMPTS, MOMENT, PAYLOAD, PRIORITY, SECONDS
from headrace.errors import DependencyNotFound, HeadraceError, InvalidBatch, JobNotFound
from headrace.job_record import JobRecord, job_fields
from headrace.manager import Submitted
from headrace.model import DEFAULT_QUEUE, Dependency, DependencyKind, Priority
from headrace.spec import JobSpec, dependencies

LISTED_MAX = 20
_BESIDES_BATCH = frozenset({"batch", "quiet"})


class SubmittedRecord(JobRecord, frozen=True, kw_only=True):
    """One submitted job. `created` false: its key was held, and this is the job that holds it."""

    created: bool


class SubmittedId(msgspec.Struct, frozen=True, kw_only=True):
    id: str
    created: bool


class BatchRecord(msgspec.Struct, frozen=True, kw_only=True):
    """What a batch, or `--count`, became: one entry per job, in order."""

    created: int
    existing: int
    jobs: tuple[SubmittedId, ...]


def _check(
    *,
    type: str | None,
    id: str | None,
    key: str | None,
    key_hold: float | None,
    delay: float | None,
    at: datetime | None,
    count: int,
    batch: Batch | None,
    **_: object,
) -> None:
    if batch is not None:
        _refuse_job_options()
    elif type is None:
        raise click.UsageError("give the TYPE of the job, or --batch FILE")
    if count > 1 and (id is not None or key is not None):
        raise click.UsageError("--count makes several jobs: leave out --id and --key")
    if key_hold is not None and key is None:
        raise click.UsageError("--key-hold holds a key: give --key, too")
    if delay is not None and at is not None:
        raise click.UsageError("give --delay or --at, not both")


def _refuse_job_options() -> None:
    """A file says all about its jobs; an option beside it would look as if it counted."""
    ctx = click.get_current_context()
    for param in ctx.command.params:
        name = str(param.name)
        given = ctx.get_parameter_source(name) is click.core.ParameterSource.COMMANDLINE
        if given and param.expose_value and name not in _BESIDES_BATCH:
            shown = param.opts[0] if isinstance(param, click.Option) else "TYPE"
            raise click.UsageError(f"--batch takes all of its jobs from the file: remove {shown}")


@command(
    "submit",
    examples=(
        'headrace submit send_email --payload \'{"to": "ada@example.org"}\' --tag customer=7',
        "headrace submit report --at 2026-12-01T06:00:00Z --priority high --key report-december",
        "headrace submit cleanup --delay 5m --after 3f0c2f7e-4a53-4c0e-9a27-6b8f9f1f6a11",
        "headrace submit --batch jobs.jsonl",
    ),
)
@click.argument("type", required=False)
@click.option(
    "--payload", type=PAYLOAD, metavar="JSON|@FILE|-", help="What the job gets: JSON.  [null]"
)
@click.option("--queue", default=DEFAULT_QUEUE, show_default=True, help="Where it waits.")
@click.option(
    "--priority",
    type=PRIORITY,
    default="normal",
    show_default=True,
    metavar="NAME|0-4",
    help="critical, high, normal, low, bulk, or 0 to 4; smaller runs first.",
)
@click.option("--tag", "tags", multiple=True, help="A tag; may be repeated.")
@click.option("--key", help="Idempotency key: while it is held, submitting again gives that job.")
@click.option(
    "--key-hold",
    type=SECONDS,
    metavar="DURATION",
    help="Hold the key for so long, whether or not the job has ended.  [default: the queue's policy]",
)
@click.option("--limit-key", help="What the queue's limits per key count it by.")
@click.option("--delay", type=SECONDS, metavar="DURATION", help="Not before this long from now.")
@click.option("--at", type=MOMENT, metavar="TIME", help="Not before this time (ISO 8601, zone).")
@click.option("--after", multiple=True, metavar="ID", help="Wait until this job completes.")
@click.option(
    "--after-any",
    multiple=True,
    metavar="ID",
    help="Wait until any of these jobs has ended, however it ended.",
)
@click.option(
    "--max-attempts",
    type=ATTEMPTS,
    default=UNSET,
    metavar="N|unlimited",
    help="How often it may be tried.  [default: the queue's policy]",
)
@click.option("--callback-url", metavar="URL", help="Told of the job's end by a signed request.")
@click.option("--id", metavar="ID", help="The job's id.  [default: a random UUID]")
@click.option("--count", type=click.IntRange(min=1), default=1, help="Submit this many copies.")
@click.option(
    "--batch",
    type=BATCH,
    metavar="FILE|-",
    help="Submit the jobs of this file, one JSON object per line: all or none.",
)
@click.option("--quiet", "-q", is_flag=True, help="Print only the ids, one per line.")
@in_session(create=True, check=_check)
async def submit(
    session: Session,
    *,
    type: str | None,
    payload: Any,
    queue: str,
    priority: int,
    tags: tuple[str, ...],
    key: str | None,
    key_hold: float | None,
    limit_key: str | None,
    delay: float | None,
    at: datetime | None,
    after: tuple[str, ...],
    after_any: tuple[str, ...],
    max_attempts: int | UnsetType | None,
    callback_url: str | None,
    id: str | None,
    count: int,
    batch: Batch | None,
    quiet: bool,
) -> Exit:
    """Submit a job, or a file of jobs.

    The store is created if there is none.

    In a batch file each line is one JSON object with the field "type" and, as wanted, "payload",
    "queue", "priority", "tags", "key", "key_hold_seconds", "id", "after" (ids, of stored jobs or of the
    same file), "run_at", "delay_seconds", "max_attempts".
    """
    if batch is not None:
        submitted = await _submit_batch(session, batch)
    else:
        assert type is not None  # checked before
        spec = JobSpec(
            type=type,
            payload=payload,
            queue=queue,
            priority=Priority(priority),
            tags=tags,
            key=key,
            key_hold_seconds=key_hold,
            limit_key=limit_key,
            delay_seconds=delay,
            run_at=at,
            after=_dependencies(after, after_any),
            max_attempts=max_attempts,
            callback_url=callback_url,
            id=id,
        )
        with progress(_storing(count)):
            submitted = await session.jobs.submit_many([spec] * count)
    _warn_if_volatile(session)
    _print(session, submitted, one=batch is None and count == 1, quiet=quiet)
    return Exit.OK


async def _submit_batch(session: Session, batch: Batch) -> Submitted:
    with progress(_storing(len(batch.specs))):
        try:
            return await session.jobs.submit_many(batch.specs)
        except DependencyNotFound as error:
            index = await _first_orphan(session, batch)
            raise error if index is None else batch.located(error, index) from error
        except InvalidBatch as error:
            raise batch.located(error.cause, error.index) from error
        except HeadraceError as error:
            if len(batch.specs) > 1:
                raise
            raise batch.located(error, 0) from error


def _storing(jobs: int) -> str:
    return f"storing {jobs:,} jobs"


async def _first_orphan(session: Session, batch: Batch) -> int | None:
    """The first job of the batch that names a job which is neither of the batch nor stored."""
    own = {spec.id for spec in batch.specs}
    for index, spec in enumerate(batch.specs):
        for need in dependencies(spec):
            try:
                if need.job_id not in own:
                    await session.jobs.get(need.job_id)
            except JobNotFound:
                return index
    return None


def _dependencies(after: Sequence[str], after_any: Sequence[str]) -> list[Dependency]:
    return [
        *(Dependency(job_id) for job_id in after),
        *(Dependency(job_id, DependencyKind.AFTER_ANY) for job_id in after_any),
    ]


def _warn_if_volatile(session: Session) -> None:
    if not session.jobs.capabilities.durable:
        note(
            f"warning: {session.settings.shown_url} lives in this process only: "
            "the jobs are gone now that the command ends"
        )


def _print(session: Session, submitted: Submitted, *, one: bool, quiet: bool) -> None:
    out = session.out
    pairs = list(zip(submitted.jobs, submitted.created, strict=True))
    created = sum(submitted.created)
    if out.as_json and one:
        ((job, new),) = pairs
        out.document(SubmittedRecord(**job_fields(job), created=new))
    elif out.as_json:
        out.document(
            BatchRecord(
                created=created,
                existing=len(pairs) - created,
                jobs=tuple(SubmittedId(id=job.id, created=new) for job, new in pairs),
            )
        )
    elif quiet:
        for job, _ in pairs:
            out.text(job.id)
    elif one:
        ((job, new),) = pairs
        what = "submitted " if new else f"not submitted: key {job.key} is held by "
        out.text(
            what, id_text(job.id), f" ({job.type}, queue {job.queue}, ", state_text(job.state), ")"
        )
    else:
        existing = len(pairs) - created
        out.text(
            f"submitted {created} job{'' if created == 1 else 's'}",
            f"; {existing} were there already (by key)" if existing else "",
        )
        for job, _ in pairs[:LISTED_MAX]:
            out.text("  ", id_text(job.id), f"  {job.type}")
        if len(pairs) > LISTED_MAX:
            out.text(f"  and {len(pairs) - LISTED_MAX} more")
