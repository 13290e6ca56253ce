"""Defects of completion: webhooks, hooks and batches."""

from __future__ import annotations

from collections.abc import Sequence

from headrace import completion, graph
from headrace.completion import Role
from headrace.manager import batches, hooks, submission
from headrace.manager.context import Context
from headrace.manager.placement import Draft
from headrace.model import Job, State
from headrace.spec import JobSpec
from tests.planted.defect import Defect, patched


def always_delivered(job: Job, *, deliver: bool) -> list[JobSpec]:
    return right_webhooks(job, deliver=True)


right_webhooks = completion.webhooks


async def present_state(context: Context, job: Job, other_id: str) -> State | None:
    return None


def no_key_of_its_own(drafts: Sequence[Draft]) -> list[Draft]:
    return list(drafts)


DEFECTS: dict[str, Defect] = {
    "a callback goes with the first of its batch": patched(
        graph, "seen_by", lambda tags, join: join
    ),
    "callbacks are delivered against the policy": patched(completion, "webhooks", always_delivered),
    "hooks run whatever happened": patched(completion, "wanted", lambda role, outcome: True),
    "on_failure runs for nobody": patched(
        completion, "wanted", lambda role, outcome: role is not Role.ON_FAILURE
    ),
    "a hook ends with the lifetime of its job": patched(completion, "lasting", lambda spec: spec),
    "hooks go by what became of the job later": patched(hooks, "_outcome", present_state),
    "a repeated batch is a new one once it has ended": patched(
        batches, "_for_good", no_key_of_its_own
    ),
    "an id and a key submitted again are refused": patched(
        submission, "_holding_already", lambda drafts, existing: []
    ),
    "a redrive forgets the hooks": patched(completion, "hook_role", lambda job, of: None),
}
