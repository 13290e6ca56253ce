"""A lake of format 1 made one of this format: from its bronze, which holds all that the log ever told it.

The new tables are made aside. Then they change places with the old, which stay in `_headrace/format-1` until
somebody deletes them. Whatever ends an upgrade, the next one goes on.
"""

from __future__ import annotations

import itertools
import shutil
from collections.abc import Iterator, Sequence
from datetime import datetime
from functools import partial

import msgspec
import pyarrow as pa

from headrace.spark.lake.bronze import EVENTS_TABLE
from headrace.spark.lake.delta import File, Folder, read_files, with_columns
from headrace.spark.lake.home import FOLDER, OLD_IDENTITY, Home, Identity, NoLake
from headrace.spark.lake.intake import Intake
from headrace.spark.lake.storage import Storage, flush_folder
from headrace.spark.lake.tasks import Tasks
from headrace.spark.schemas import EVENTS

KEPT = f"{FOLDER}/format-1"
"""Where the tables of before go."""
_ASIDE = f"{FOLDER}/format-2"
_MADE = f"{FOLDER}/format-2-is-made"
_BATCH_EVENTS = 2_000_000
_LAYERS = ("gold", "silver", "bronze")


class _OldIdentity(msgspec.Struct):
    lake_id: str
    store_id: str
    created_at: datetime


def check_old(lake: Storage) -> None:
    """Raises NoLake where there is none of format 1."""
    if not lake.is_local or lake.missing([OLD_IDENTITY]):
        raise NoLake(
            f"there is no lake of format 1 at {lake}; nothing was changed. One of this version needs no "
            "upgrade"
        )


def upgrade(lake: Storage, tasks: Tasks) -> int:
    """How many events the lake holds. Raises NoLake where there is none of format 1."""
    check_old(lake)
    old = msgspec.json.decode(lake.read(OLD_IDENTITY), type=_OldIdentity)
    aside = lake.within(_ASIDE)
    if lake.missing([_MADE]):
        shutil.rmtree(aside.path, ignore_errors=True)
        identity = Identity(lake_id=old.lake_id, store_id=old.store_id, created_at=old.created_at)
        Home(aside).make(identity)
        _fill(Intake(aside, tasks), lake.within(EVENTS_TABLE.name))
        lake.write(_MADE, b"")
        lake.flush([_MADE])
    _swap(lake, aside)
    return Intake(lake, tasks).bronze.snapshot().rows


def _fill(intake: Intake, old: Storage) -> None:
    intake.prepare()
    held = Folder(old, EVENTS, ["on"]).snapshot()
    files = sorted(held.files, key=lambda file: file.low.get("seq", 0))
    for batch in _batches(files):
        intake.append(batch, partial(_old_events, old), further=_further)
    intake.rebuild()


def _batches(files: Sequence[File]) -> Iterator[list[str]]:
    sums = itertools.accumulate(file.rows for file in files)
    grouped = itertools.groupby(
        zip(sums, files, strict=True), key=lambda one: one[0] // _BATCH_EVENTS
    )
    for _, group in grouped:
        yield [file.path for _, file in group]


def _old_events(old: Storage, path: str) -> list[pa.RecordBatch]:
    held = pa.schema(old.delta().schema().to_arrow())
    known = [name for name in EVENTS.names if name in held.names]
    schema = pa.schema([*(EVENTS.field(name) for name in known), pa.field("on", pa.date32())])
    rows = read_files(old, schema, ["on"], [path], columns=known)
    batches: list[pa.RecordBatch] = with_columns(rows, EVENTS).to_batches()
    return batches


def _further(one: str, other: str) -> str:
    """Of two cursors the one further along the log: its order is that of their numbers."""
    return max(one, other, key=lambda cursor: [int(part) for part in cursor.split(":")])


def _swap(lake: Storage, aside: Storage) -> None:
    """Bronze last: until then the lake says that it is of format 1."""
    kept = lake.path / KEPT
    kept.mkdir(parents=True, exist_ok=True)
    for layer in _LAYERS:
        here, new = lake.path / layer, aside.path / layer
        if here.exists() and not (kept / layer).exists():
            here.rename(kept / layer)
        if new.exists():
            new.rename(here)
        for folder in (kept, aside.path, lake.path):
            flush_folder(folder)
    for path in (lake.path / FOLDER).glob("checkpoint*"):
        shutil.rmtree(path, ignore_errors=True)
    (lake.path / FOLDER / "state.json").unlink(missing_ok=True)
    (lake.path / OLD_IDENTITY).rename(kept / "lake.json")
    (lake.path / _MADE).unlink()
    shutil.rmtree(aside.path, ignore_errors=True)
