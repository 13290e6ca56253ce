"""`headrace update`: what is said of a job that has not ended."""

from __future__ import annotations

from typing import Any

import click

from headrace.cli.exits import Exit
from headrace.cli.output import id_text, state_text
from headrace.cli.session import Session, in_session
from headrace.cli.settings import command
from headrace.cli.values import PRIORITY
from headrace.job_record import JobRecord, job_fields
from headrace.model import Job, Priority


class UpdatedRecord(JobRecord, frozen=True, kw_only=True):
    """The job as it is now. `updated` false: it was so already."""

    updated: bool


def _check(
    *,
    priority: int | None,
    tags: tuple[str, ...],
    untags: tuple[str, ...],
    correlation_id: str | None,
    no_correlation_id: bool,
    callback_url: str | None,
    no_callback_url: bool,
    **_: object,
) -> None:
    said = (priority, tags or None, untags or None, correlation_id, callback_url)
    if all(value is None for value in said) and not (no_correlation_id or no_callback_url):
        raise click.UsageError("say what to change: --priority, --tag, --untag, …")
    if correlation_id is not None and no_correlation_id:
        raise click.UsageError("give --correlation-id or --no-correlation-id, not both")
    if callback_url is not None and no_callback_url:
        raise click.UsageError("give --callback-url or --no-callback-url, not both")


@command(
    "update",
    examples=(
        "headrace update 3f0c2f7e-4a53-4c0e-9a27-6b8f9f1f6a11 --priority high",
        "headrace update 3f0c2f7e-4a53-4c0e-9a27-6b8f9f1f6a11 --tag team=billing --untag team=ops",
    ),
)
@click.argument("id")
@click.option(
    "--priority",
    type=PRIORITY,
    metavar="NAME|0-4",
    help="critical, high, normal, low, bulk, or 0 to 4; smaller runs first.",
)
@click.option("--tag", "tags", multiple=True, help="A tag to add; may be repeated.")
@click.option("--untag", "untags", multiple=True, help="A tag to take away; may be repeated.")
@click.option("--correlation-id", metavar="TEXT", help="Another correlation id.")
@click.option("--no-correlation-id", is_flag=True, help="None any more.")
@click.option("--callback-url", metavar="URL", help="Told of the job's end by a signed request.")
@click.option("--no-callback-url", is_flag=True, help="Nobody is told any more.")
@in_session(check=_check)
async def update(
    session: Session,
    *,
    id: str,
    priority: int | None,
    tags: tuple[str, ...],
    untags: tuple[str, ...],
    correlation_id: str | None,
    no_correlation_id: bool,
    callback_url: str | None,
    no_callback_url: bool,
) -> Exit:
    """Change what is said of a job that has not ended.

    A job that waits moves to its place in the line of the new priority; one that runs goes on. A job stays at
    least as urgent as those it depends on, and takes along what depends on it.
    """
    said: dict[str, Any] = {"add_tags": tags, "remove_tags": untags}
    if priority is not None:
        said["priority"] = priority
    if correlation_id is not None or no_correlation_id:
        said["correlation_id"] = correlation_id
    if callback_url is not None or no_callback_url:
        said["callback_url"] = callback_url
    before = await session.jobs.get(id)
    job = (await session.jobs.update(id, **said)).job
    updated = job.version != before.version
    if session.out.as_json:
        session.out.document(UpdatedRecord(**job_fields(job), updated=updated))
        return Exit.OK
    session.out.text(
        "updated " if updated else "not updated, it was so already: ",
        id_text(job.id),
        f" ({_said(job)}, ",
        state_text(job.state),
        ")",
    )
    return Exit.OK


def _said(job: Job) -> str:
    tags = ", ".join(job.tags) or "none"
    return f"priority {Priority(job.priority).name.lower()}, tags {tags}"
