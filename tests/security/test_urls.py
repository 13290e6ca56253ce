"""Which store a url names: one default, one variable, and the spellings of other libraries."""

from __future__ import annotations

import asyncio
import json
import sys
import traceback
from pathlib import Path

import pytest

from headrace import Headrace, address
from headrace.cli import main
from headrace.connect import connect
from headrace.errors import InvalidInput, UnknownStore
from headrace.stores.postgres import opening as postgres
from headrace.stores.redis import opening as redis

APP = """
from headrace import Headrace

app = Headrace({url})


@app.task
async def hello() -> str:
    return "Hello!"
"""


@pytest.fixture(autouse=True)
def elsewhere(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("HEADRACE_URL", raising=False)


def submitted() -> None:
    async def within() -> None:
        app = Headrace()

        @app.task
        async def hello() -> None: ...

        async with app:
            await app.submit(hello)

    asyncio.run(within())


def test_without_a_url_program_and_command_line_use_the_same_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    submitted()
    assert [path.name for path in tmp_path.glob("*.db")] == ["headrace.db"]
    assert main(("stats", "--json")) == 0
    assert json.loads(capsys.readouterr().out)["total"] == 1


def test_one_variable_moves_both(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("HEADRACE_URL", f"sqlite:///{tmp_path}/moved.db")
    submitted()
    assert [path.name for path in tmp_path.glob("*.db")] == ["moved.db"]
    assert main(("stats", "--json")) == 0
    assert json.loads(capsys.readouterr().out)["total"] == 1
    assert Headrace("sqlite:///mine.db").url == "sqlite:///mine.db"


@pytest.mark.parametrize(
    ("said", "words", "used"),
    [
        ("", (), "moved.db"),
        ("'sqlite:///mine.db'", (), "mine.db"),
        ("'sqlite:///mine.db'", ("--url", "sqlite:///named.db"), "named.db"),
    ],
    ids=["nothing", "the application", "the command line"],
)
def test_a_worker_works_where_the_application_submits_unless_the_command_line_says_otherwise(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    said: str,
    words: tuple[str, ...],
    used: str,
) -> None:
    monkeypatch.setenv("HEADRACE_URL", "sqlite:///moved.db")
    (tmp_path / "said_app.py").write_text(APP.format(url=said))
    monkeypatch.syspath_prepend(tmp_path)
    served: list[str] = []
    monkeypatch.setattr("headrace.worker.logs.configure", lambda **_: None)

    def serve(app: Headrace, *_: object) -> int:
        served.append(app.url)
        return 0

    monkeypatch.setattr("headrace.worker.serving.serve", serve)
    try:
        assert main(("worker", "said_app:app", *words)) == 0
    finally:
        sys.modules.pop("said_app", None)
    assert served == [f"sqlite:///{used}"]


@pytest.mark.parametrize(
    ("theirs", "ours"),
    [
        ("postgresql+asyncpg://me:x@h:5432/db", "postgresql://me:x@h:5432/db"),
        ("postgresql+psycopg://h/db?application_name=a", "postgresql://h/db?application_name=a"),
        ("postgresql+psycopg2://h/db", "postgresql://h/db"),
        ("postgres://me:x@h1:1,h2:2/db", "postgresql://me:x@h1:1,h2:2/db"),
        ("postgresql://me:a@b@h/db", "postgresql://me:a%40b@h/db"),
        ("sqlite+aiosqlite:///jobs.db", "sqlite:///jobs.db"),
        ("sqlite+pysqlite:////var/jobs.db", "sqlite:////var/jobs.db"),
        ("redis+asyncio://h:1/0", "redis://h:1/0"),
        ("rediss+asyncio://h:1/0", "rediss://h:1/0"),
        ("redis+socket:///run/redis.sock?db=1", "unix:///run/redis.sock?db=1"),
        ("memory:", "memory:"),
        ("memory://", "memory:"),
    ],
)
def test_spellings_of_other_libraries(theirs: str, ours: str) -> None:
    assert address.joined(address.split(theirs)) == ours


async def test_a_spelling_of_sqlalchemy_opens_the_store(store_url: str) -> None:
    for scheme, theirs in (
        ("sqlite:", "sqlite+aiosqlite:"),
        ("postgresql:", "postgresql+asyncpg:"),
        ("redis:", "redis+asyncio:"),
    ):
        store_url = store_url.replace(scheme, theirs) if store_url.startswith(scheme) else store_url
    async with await connect(store_url) as jobs:
        assert (await jobs.stats()).total == 0


def test_options_of_sqlalchemys_urls() -> None:
    to = postgres.parse(
        "postgresql+asyncpg://h/db?ssl=require&prepared_statement_cache_size=0",
        schema="headrace",
        pool_size=10,
    )
    assert (to.dsn, to.statement_cache_size) == ("postgresql://h/db?sslmode=require", 0)
    assert "h/db" in repr(to)
    assert redis.parse("redis://h:1/0", prefix="p", relaxed_durability=False).address == (
        "redis://h:1/0"
    )


async def test_without_prepared_statements(store_url: str) -> None:
    """As behind a pooler that hands each transaction to another connection."""
    if not store_url.startswith("postgresql"):
        with pytest.raises(InvalidInput):
            await connect(f"{store_url}{'&' if '?' in store_url else '?'}statement_cache_size=0")
        return
    from headrace import JobSpec

    async with await connect(f"{store_url}&statement_cache_size=0") as jobs:
        await jobs.submit_many([JobSpec(type="t", id=f"j{n}") for n in range(20)])
        claimed = await jobs.claim("w", limit=20)
        for job in claimed:
            await jobs.complete(job.id, job.token)
        assert (await jobs.stats()).total == len(claimed) == 20
        pool = jobs.store._pool  # type: ignore[attr-defined]  # what the server itself says
        async with pool.connection() as connection:
            assert await connection.fetch("SELECT name FROM pg_prepared_statements") == []


@pytest.mark.parametrize("value", ["", "x", "-1", "1.5", "٣", "99999999999"])
def test_a_wrong_size_of_the_cache_is_refused(value: str) -> None:
    with pytest.raises(InvalidInput, match="statement_cache_size"):
        postgres.parse(
            f"postgresql://h/db?statement_cache_size={value}", schema="headrace", pool_size=10
        )


@pytest.mark.parametrize(
    "url", [None, b"sqlite:///a.db", 5, "", " ", "a\0b", "\ud800", "sqlite:///a%00b"]
)
async def test_what_is_no_url_is_refused(url: object) -> None:
    with pytest.raises(InvalidInput):
        await connect(url)  # type: ignore[arg-type]  # that is the point


def test_a_scheme_of_headraces_own_cannot_be_taken() -> None:
    from headrace.connect import register_store

    for scheme in ("redis", "sqlite", ""):
        with pytest.raises(InvalidInput):
            register_store(scheme, lambda _: None)  # type: ignore[arg-type, return-value]
    with pytest.raises(UnknownStore):
        address.split("postgresql://h:port/db")


def test_executors_get_the_plain_url_and_errors_show_no_password() -> None:
    pytest.importorskip("pyspark")
    from headrace.spark.address import for_executors
    from headrace.spark.fleet.plan import shared_url
    from headrace.spark.source.options import SourceOptions

    for plain in (
        lambda url: for_executors(url, "nothing was read"),
        shared_url,
        lambda url: SourceOptions.parse({"url": url, "table": "jobs"}).url,
    ):
        assert plain("postgresql+psycopg://me:s3cret@h/db") == "postgresql://me:s3cret@h/db"
        assert plain("sqlite+aiosqlite:////a/jobs.db") == "sqlite:////a/jobs.db"
        for wrong in ("postgresql://me:s3cret@h:port/db", "postgresql://me:s3cret@[::1/db"):
            with pytest.raises(UnknownStore) as raised:
                plain(wrong)
            told = "".join(traceback.format_exception(raised.value))
            assert "s3cret" not in told.replace(f"plain({wrong!r})", "")
