"""Deliberate defects of the encryption: the kit's cases must catch every one of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from headrace import crypto, envelope, history
from headrace.crypto import Place
from headrace.manager import retention, rotation, sealing
from headrace.manager.sealed_store import SealedStore
from headrace.manager.sealing import Sealing
from headrace.model import Change, Event, Failure, Job
from headrace.stores.base import ClaimRequest, Note
from tests.planted.defect import Defect, patched

right_associated = crypto._associated


def bound_to(place: Callable[[Place], Place]) -> Defect:
    def wrong(key_id: str, given: Place) -> bytes:
        return right_associated(key_id, place(given))

    return patched(crypto, "_associated", wrong)


def message_in_the_clear(self: Sealing, job: Job) -> Failure | None:
    return job.failure


def result_in_the_clear(self: Sealing, job: Job) -> bytes | None:
    return job.result_json


def notes_in_the_clear(self: Sealing, job: Job, note: Note) -> Note:
    return note


def changes_as_they_are(self: Sealing, changes: Sequence[Change]) -> Sequence[Change]:
    return changes


def every_queue(self: Sealing, job: Job) -> bool:
    return self.keys is not None


def ciphertext_shown(body: envelope.Body, why: str | None = None) -> envelope.Body:
    return body


def message_kept(event: Event) -> Event:
    return event


async def claim_unopened(self: SealedStore, request: ClaimRequest) -> Sequence[Job]:
    return await self._behind.claim(request)


DEFECTS: dict[str, Defect] = {
    "a ciphertext opens in another job": bound_to(lambda place: place._replace(job_id="")),
    "a ciphertext opens in another field": bound_to(lambda place: place._replace(field="")),
    "errors are stored in the clear": patched(Sealing, "_failure", message_in_the_clear),
    "results are stored in the clear": patched(Sealing, "_result", result_in_the_clear),
    "checkpoints are stored in the clear": patched(Sealing, "note", notes_in_the_clear),
    "changes write back what was opened": patched(Sealing, "changes", changes_as_they_are),
    "the policy of a queue is ignored": patched(Sealing, "encrypts", every_queue),
    "the ciphertext is shown without the key": patched(envelope, "withheld", ciphertext_shown),
    "events tell the message": patched(history, "without_message", message_kept),
    "claimed jobs are not opened": patched(SealedStore, "claim", claim_unopened),
    "a redrive copies what it cannot read": patched(
        retention, "_payload_of", lambda job: job.payload_json
    ),
    "re-encryption forgets the error": patched(rotation._Plan, "_text", lambda self, message: None),
    "a message passes for an envelope": patched(sealing, "NOT_SEALED", ""),
}
