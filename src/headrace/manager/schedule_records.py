"""How schedules stand in the store: a record each, found by tenant and name, encrypted where jobs are."""

from __future__ import annotations

from collections.abc import Sequence
from urllib.parse import quote, unquote

from msgspec.structs import replace

from headrace import envelope, schedules
from headrace.crypto import Place
from headrace.errors import CannotDecrypt
from headrace.manager.context import Context
from headrace.schedules import Schedule
from headrace.stores.base import Record

KIND = "schedule"


async def find_record(context: Context, name: str, tenant: str) -> Record:
    """As stored, or one of version 0."""
    key = _key(name, tenant)
    found = await context.store.records(KIND, [key])
    return found[0] if found else Record(kind=KIND, name=key)


async def find_records(context: Context) -> Sequence[Record]:
    """Those of the manager's tenant, or of all."""
    found = await context.store.records(KIND)
    if context.tenant is None:
        return found
    own = _key("", context.tenant)
    return [record for record in found if record.name.startswith(own)]


def named(record: Record) -> tuple[str, str]:
    """The tenant and the name of the schedule, readable or not."""
    tenant, _, name = record.name.partition("/")
    return unquote(tenant), name


def read(context: Context, record: Record) -> Schedule:
    """The schedule. Raises StoreCorrupt, CannotDecrypt or, for a zone unknown here, InvalidSchedule."""
    body = record.body_json
    if envelope.is_sealed(body):
        sealed = envelope.unpack(body)
        if context.sealing.keys is None:
            tenant, name = named(record)
            raise CannotDecrypt(
                f"schedule {name} of tenant {tenant} is encrypted with key {sealed.key}, and no key ring "
                "was given; it was left as it is",
                key_id=sealed.key,
                why="there is no key ring",
            )
        body = context.sealing.keys.open(sealed, _place(record))
    return schedules.decode(body, named(record)[1])


def written(context: Context, record: Record, schedule: Schedule) -> Record:
    """The record with this schedule in it, to be put."""
    body = schedules.encode(schedule)
    keys = context.sealing.keys
    if keys is not None and _is_secret(context, schedule):
        body = envelope.pack(keys.seal(body, _place(record)))
    return replace(record, body_json=body)


def is_under_old_key(context: Context, record: Record, schedule: Schedule) -> bool:
    """Whether it is to be written anew, since it is not encrypted as a new one would be."""
    if context.sealing.keys is None or not _is_secret(context, schedule):
        return False
    body = record.body_json
    return not (
        envelope.is_sealed(body) and envelope.unpack(body).key == context.sealing.keys.primary
    )


def renewed(context: Context, record: Record) -> Record | None:
    """The record under the primary key, whatever is in it; None if there is nothing to do.

    Raises CannotDecrypt.
    """
    keys = context.sealing.keys
    if keys is None or not envelope.is_sealed(record.body_json):
        return None
    body = envelope.unpack(record.body_json)
    if body.key == keys.primary:
        return None
    place = _place(record)
    return replace(record, body_json=envelope.pack(keys.seal(keys.open(body, place), place)))


def _is_secret(context: Context, schedule: Schedule) -> bool:
    return context.policy(schedule.job.queue).encrypted


def _key(name: str, tenant: str) -> str:
    """Unique for the pair: the first slash ends the tenant."""
    return f"{quote(tenant, safe='')}/{name}"


def _place(record: Record) -> Place:
    tenant, name = named(record)
    return Place(tenant, name, KIND)
