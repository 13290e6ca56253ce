"""Which files are opened, and that a file which is not opened is left byte for byte as it was."""

from __future__ import annotations

import asyncio
import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import textwrap
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from headrace.errors import (
    SchemaTooNew,
    SchemaTooOld,
    StoreCorrupt,
    StoreError,
    StoreUnavailable,
)
from headrace.stores.base import Query
from headrace.stores.sqlite import LATEST_SCHEMA_VERSION, SqliteStore, schema
from tests.stores.sqlite.samples import insert, new_job, rows

APPLICATION_ID_AT = 68  # where SQLite's header keeps it; the schema's version is at 60
VERSION_AT = 60


def snapshot(folder: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in folder.iterdir() if file.is_file()}


async def refuse(
    path: Path, error: type[StoreError], *, migrate: bool = False, create: bool = True
) -> str:
    """Opening raises, says what was left alone, and leaves the whole folder as it was."""
    before = snapshot(path.parent) if path.parent.is_dir() else None
    with pytest.raises(error) as caught:
        await SqliteStore.open(path, migrate=migrate, create=create, busy_timeout_seconds=0.2)
    assert type(caught.value) is error
    if before is not None:
        assert snapshot(path.parent) == before
    assert str(path) in str(caught.value)
    return str(caught.value)


async def make_store(path: Path, jobs: int = 3) -> None:
    store = await SqliteStore.open(path)
    await insert(store, *(new_job() for _ in range(jobs)))
    await store.close()


def write(path: Path, content: bytes) -> None:
    path.write_bytes(content)


def cut_in_half(path: Path) -> None:
    with path.open("r+b") as file:
        file.truncate(path.stat().st_size // 2 // 4096 * 4096)


def first_page_in_log(log: Path) -> bytes:
    """The last image of page 1 in a WAL file: a header of 32 bytes, then frames of 24 and a page."""
    content = log.read_bytes()
    size = int.from_bytes(content[8:12], "big")
    frames = [content[at : at + 24 + size] for at in range(32, len(content), 24 + size)]
    return [frame[24:] for frame in frames if int.from_bytes(frame[:4], "big") == 1][-1]


def patch(path: Path, at: int, content: bytes) -> None:
    with path.open("r+b") as file:
        file.seek(at)
        file.write(content)


def run(program: str, *arguments: str) -> str:
    """What a program prints, in a process of its own."""
    answer = subprocess.run(
        [sys.executable, "-c", program, *arguments], capture_output=True, check=True, text=True
    )
    return answer.stdout


# --- files that open -----------------------------------------------------------------------------


async def test_a_missing_file_is_created_in_wal_mode_with_the_newest_schema(path: Path) -> None:
    store = await SqliteStore.open(path)
    assert await store.schema_version() == LATEST_SCHEMA_VERSION
    await store.close()
    assert rows(path, "PRAGMA journal_mode") == [("wal",)]
    assert rows(path, "PRAGMA application_id") == [(schema.APPLICATION_ID,)]
    assert rows(path, "PRAGMA user_version") == [(LATEST_SCHEMA_VERSION,)]


async def test_what_was_stored_is_there_after_reopening(path: Path) -> None:
    await make_store(path)
    store = await SqliteStore.open(path, create=False)
    assert len(await store.find(Query())) == 3
    await store.close()


async def test_closing_leaves_one_file(path: Path) -> None:
    await make_store(path)
    assert [file.name for file in path.parent.iterdir()] == [path.name]


async def test_an_empty_file_counts_as_new(path: Path) -> None:
    write(path, b"")
    await make_store(path)
    assert rows(path, "SELECT count(*) FROM jobs") == [(3,)]


async def test_a_database_without_tables_counts_as_new(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("VACUUM")
    assert snapshot(path.parent)[path.name]
    await make_store(path)


@pytest.mark.parametrize("round_", range(5))
async def test_many_may_create_the_same_file_at_once(path: Path, round_: int) -> None:
    stores = await asyncio.gather(*(SqliteStore.open(path) for _ in range(8)))
    await asyncio.gather(*(insert(store, new_job()) for store in stores))
    assert len(await stores[0].find(Query())) == 8
    await asyncio.gather(*(store.close() for store in stores))


async def test_a_path_may_hold_characters_that_mean_something_in_a_url(tmp_path: Path) -> None:
    path = tmp_path / "jobs?mode=ro&100%#ä.db"
    await make_store(path)
    assert path.exists()


async def test_a_relative_path_stays_where_it_was_when_the_folder_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    store = await SqliteStore.open("jobs.db")
    monkeypatch.chdir("/")
    await insert(store, new_job())
    await store.close()
    assert rows(tmp_path / "jobs.db", "SELECT count(*) FROM jobs") == [(1,)]


async def test_the_level_of_synchronisation_is_full_unless_asked(path: Path) -> None:
    for asked, level in (("full", 2), ("normal", 1)):
        store = await SqliteStore.open(path, synchronous=asked)  # type: ignore[arg-type]
        found = await store._write(
            lambda tx: tx.connection.execute("PRAGMA synchronous").fetchone()
        )
        assert found == (level,)
        await store.close()


# --- files that do not ---------------------------------------------------------------------------


async def test_a_missing_file_that_may_not_be_created(path: Path) -> None:
    assert "no such file" in await refuse(path, StoreUnavailable, create=False)


async def test_an_empty_file_that_may_not_be_filled(path: Path) -> None:
    write(path, b"")
    await refuse(path, StoreUnavailable, create=False)


async def test_a_missing_folder(tmp_path: Path) -> None:
    await refuse(tmp_path / "nowhere" / "jobs.db", StoreUnavailable)
    assert not (tmp_path / "nowhere").exists()


async def test_a_path_below_a_file(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("not a folder")
    await refuse(tmp_path / "file" / "jobs.db", StoreUnavailable)


async def test_a_place_where_nobody_may_write() -> None:
    """The kernel's own folders refuse even root."""
    with pytest.raises(StoreUnavailable):
        await SqliteStore.open("/proc/self/jobs.db")


async def test_a_folder(tmp_path: Path) -> None:
    (tmp_path / "jobs.db").mkdir()
    await refuse(tmp_path / "jobs.db", StoreUnavailable)


async def test_a_pipe_does_not_hang(path: Path) -> None:
    os.mkfifo(path)
    with pytest.raises(StoreUnavailable, match="not a regular file"):
        await SqliteStore.open(path)


@pytest.mark.parametrize(
    "content",
    [
        b"x",
        b"todo: write some jobs\n",
        b"hello, this is text\n" * 100,
        b"SQLite format 4\0" + bytes(4080),
        bytes(8192),
    ],
    ids=["one byte", "short text", "text", "almost", "zeros"],
)
async def test_a_file_that_is_no_database(path: Path, content: bytes) -> None:
    write(path, content)
    await refuse(path, StoreCorrupt)


async def test_a_broken_header(path: Path) -> None:
    await make_store(path)
    patch(path, 0, b"SQLite fromat 3\0")
    await refuse(path, StoreCorrupt)


async def test_a_truncated_file(path: Path) -> None:
    await make_store(path, jobs=200)
    cut_in_half(path)
    await refuse(path, StoreCorrupt)


async def test_a_database_of_another_program(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE songs (title TEXT)")
        connection.commit()
    assert "another program" in await refuse(path, StoreCorrupt)


async def test_a_database_of_another_program_that_it_has_open(path: Path) -> None:
    """Its log lies beside it, not yet written back: neither may be touched."""
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("CREATE TABLE songs (title TEXT)")
        connection.commit()
        connection.execute("PRAGMA wal_checkpoint")
        connection.execute("INSERT INTO songs VALUES ('one')")
        connection.commit()
        await refuse(path, StoreCorrupt)


async def test_a_database_with_another_application_id(path: Path) -> None:
    await make_store(path)
    patch(path, APPLICATION_ID_AT, b"abcd")
    await refuse(path, StoreCorrupt)


async def test_a_newer_schema(path: Path) -> None:
    await make_store(path)
    patch(path, VERSION_AT, (LATEST_SCHEMA_VERSION + 1).to_bytes(4, "big"))
    message = await refuse(path, SchemaTooNew)
    assert str(LATEST_SCHEMA_VERSION + 1) in message
    await refuse(path, SchemaTooNew, migrate=True)


async def test_an_older_schema(path: Path, second_step: Callable[..., None]) -> None:
    await make_store(path)
    second_step()
    assert "migrate" in await refuse(path, SchemaTooOld)


async def test_an_older_schema_with_a_log_that_a_crash_left(
    tmp_path: Path, second_step: Callable[..., None]
) -> None:
    """Opening for real would write the log back into the file."""
    live = tmp_path / "live.db"
    store = await SqliteStore.open(live)
    await insert(store, new_job())
    crashed = tmp_path / "crashed" / "jobs.db"
    crashed.parent.mkdir()
    for suffix in ("", "-wal"):
        shutil.copyfile(f"{live}{suffix}", f"{crashed}{suffix}")
    await store.close()
    second_step()
    await refuse(crashed, SchemaTooOld)


async def test_a_file_that_a_kill_left_in_the_middle_of_a_checkpoint(tmp_path: Path) -> None:
    """Its first page says that it is larger than it is; the rest is still in the log."""
    live, killed = tmp_path / "live.db", tmp_path / "killed.db"
    store = await SqliteStore.open(live)
    await insert(store, *(new_job() for _ in range(500)))
    for suffix in ("", "-wal"):
        shutil.copyfile(f"{live}{suffix}", f"{killed}{suffix}")
    await store.close()
    patch(killed, 0, first_page_in_log(Path(f"{killed}-wal")))
    store = await SqliteStore.open(killed)
    assert len(await store.find(Query(limit=1000))) == 500
    await store.close()
    assert rows(killed, "PRAGMA integrity_check") == [("ok",)]


async def test_a_sqlite_that_is_too_old(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sqlite3, "sqlite_version_info", (3, 36, 0))
    with pytest.raises(StoreError, match=r"needs 3\.37\.0"):
        await SqliteStore.open(path)
    assert snapshot(path.parent) == {}


async def test_looking_at_a_file_does_not_drop_the_locks_of_a_store_that_has_it_open(
    path: Path,
) -> None:
    """POSIX drops all locks of a process when it closes any of its handles on a file."""
    store = await SqliteStore.open(path)
    with pytest.raises(StoreError):
        await SqliteStore.open(path.parent, busy_timeout_seconds=0.1)
    other = await SqliteStore.open(path)
    await other.close()
    probe = textwrap.dedent(
        f"""
        import sqlite3
        connection = sqlite3.connect({str(path)!r}, timeout=0.1)
        try:
            print(connection.execute("PRAGMA journal_mode = DELETE").fetchone()[0])
        except sqlite3.OperationalError as error:
            print(error)
        """
    )
    assert run(probe).strip() == "database is locked"
    await store.close()


# --- permissions ---------------------------------------------------------------------------------

# Root may override permissions: whoever runs the tests, the attempt is made by a user who may not.
ATTEMPT = textwrap.dedent(
    """
    import asyncio, concurrent.futures.thread, os, sys
    from headrace.errors import StoreError
    from headrace.stores.sqlite import SqliteStore

    async def main():
        try:
            await SqliteStore.open(sys.argv[1])
        except StoreError as error:
            print(type(error).__name__, error)

    if os.geteuid() == 0:
        os.setgroups([])
        os.setgid(65534)
        os.setuid(65534)
    asyncio.run(main())
    """
)


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that a user without rights can reach: pytest's own is closed to others."""
    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0o755)
        yield Path(name)


def permit(path: Path, mode: int) -> None:
    path.chmod(mode)


@pytest.mark.parametrize("what", ["unreadable", "unwritable", "folder", "new in folder"])
async def test_without_permission(open_folder: Path, what: str) -> None:
    path = open_folder / "jobs.db"
    if what != "new in folder":
        await make_store(path)
        before = snapshot(open_folder)
        permit(path, {"unreadable": 0o000, "unwritable": 0o444, "folder": 0o666}[what])
    else:
        before = {}
    permit(open_folder, 0o777 if what.startswith("un") else 0o555)
    answer = run(ATTEMPT, str(path))
    assert answer.startswith("StoreUnavailable ")
    assert str(path) in answer
    permit(open_folder, 0o755)
    if before:
        permit(path, 0o644)
    assert snapshot(open_folder) == before
