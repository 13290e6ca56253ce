"""No secret is printed: not by a repr, a message, a log line or a traceback, whatever goes wrong."""

from __future__ import annotations

import dataclasses
import importlib
import logging
import pkgutil
import traceback
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import msgspec
import pytest

import headrace
from headrace import Headrace, Job, JobSpec, KeyRing, State, Worker, WorkerSettings, address
from headrace.cli import main
from headrace.cli.settings import Settings
from headrace.connect import connect
from headrace.crypto import new_key
from headrace.errors import HeadraceError
from headrace.manager import Completed, Failed
from headrace.model import Failure, Lease
from headrace.redaction import SECRET, Redacted
from headrace.stores.base import Fence, Insertion
from headrace.stores.postgres import connection as postgres_pool
from headrace.stores.redis import connection as redis_connection

PASSWORD = "s3cret"
NOBODY = "127.0.0.1:9"  # the discard port: nothing listens there
NOW = datetime(2026, 7, 1, tzinfo=UTC)

URLS = (
    *(
        f"{scheme}://me:{PASSWORD}@{rest}"
        for scheme in (
            *("postgresql", "postgres", "postgresql+asyncpg", "postgresql+psycopg"),
            *("redis", "rediss", "redis+asyncio"),
        )
        for rest in (
            f"{NOBODY}/0",
            f"{NOBODY}/0?nonsense=1",
            f"{NOBODY}/0?nonsense={PASSWORD}",
            "127.0.0.1:port/0",
            "127.0.0.1:99999/0",
            "[::1/0",
            f"{PASSWORD}@{NOBODY}/0",
            "\u2100/0",
            "",
        )
    ),
    *(f"{scheme}://{NOBODY}/0?password={PASSWORD}" for scheme in ("postgresql", "redis", "rediss")),
    *(f"{scheme}://me:{PASSWORD}" for scheme in ("postgresql", "redis", "rediss")),
    *(f"{scheme}://me:7/{PASSWORD}@{NOBODY}/0" for scheme in ("postgresql", "redis", "mysql")),
    *(f"{scheme}://me:a?{PASSWORD}@{NOBODY}/0" for scheme in ("postgresql", "redis", "mysql")),
    *(f"{scheme}://me:a[{PASSWORD}@{NOBODY}/0" for scheme in ("postgresql", "redis", "mysql")),
    f"postgresql://me:{PASSWORD}@{NOBODY}/db?schema=pg_x",
    f"postgresql://me:{PASSWORD}@{NOBODY}/db?pool_size=x",
    f"postgresql://me:{PASSWORD}@{NOBODY}/db?statement_cache_size=-1",
    f"postgresql://me:{PASSWORD}@{NOBODY}/db?sslmode=x",
    f"postgresql://me:{PASSWORD}@{NOBODY}/db?port={PASSWORD}",
    f"redis://me:{PASSWORD}@{NOBODY}/0?durability=x",
    f"redis://me:{PASSWORD}@{NOBODY}/0?socket_timeout=x",
    f"redis://me:{PASSWORD}@{NOBODY}/0?prefix=%7B",
    f"mysql://me:{PASSWORD}@h/db",
    f"sqlite://me:{PASSWORD}@h/jobs.db",
    f"sqlite:///jobs.db?password={PASSWORD}",
    f"sqlite:///no/such/jobs.db?password={PASSWORD}",
    f"memory:?password={PASSWORD}",
    f"me:{PASSWORD}@h/db",
    f"postgres:/me:{PASSWORD}@h/db",
    f"host=h password={PASSWORD}",
    f"//me:{PASSWORD}@h/db",
    f" postgresql://me:{PASSWORD}@h/db\n",
)


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A server that is not there is not waited for."""
    monkeypatch.setattr(postgres_pool, "PATIENCE_SECONDS", 0.0)
    monkeypatch.setattr(redis_connection, "PATIENCE_SECONDS", 0.0)
    monkeypatch.delenv("HEADRACE_URL", raising=False)
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("url", URLS)
async def test_a_url_that_fails_is_printed_without_its_password(
    url: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    with pytest.raises(HeadraceError) as raised:
        await connect(url)
    error = raised.value
    told = [*traceback.format_exception(error), repr(error), repr(error.args), repr(vars(error))]
    told += [caplog.text, repr(Headrace(url)), repr(Settings(url=url)), Settings(url=url).shown_url]
    assert PASSWORD not in "\n".join(told)


@pytest.mark.parametrize("url", URLS)
def test_a_command_that_fails_prints_no_password(
    url: str, capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    for words in (
        ("--url", url, "list", "--json"),
        ("top", "--once", "--url", url),
        ("doctor", "--url", url, "--json"),
        ("migrate", "--url", url),
        # As a url it is known by its scheme; any other word may be the name of a job.
        *((("--urls", url, "list"), (url, "list", "--json"), ("list", url)) if ":/" in url else ()),
    ):
        assert main(words) != 0
    printed = capsys.readouterr()
    assert PASSWORD not in printed.out + printed.err + caplog.text


def test_the_password_of_a_store_that_answers_is_not_printed_either(
    postgres_schemas: object,
    redis_url: str,
    capsys: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
) -> None:
    """A Redis without passwords refuses every one that it is given."""
    main(("doctor", "--url", redis_url.replace("redis://", f"redis://:{PASSWORD}@")))
    printed = capsys.readouterr()
    assert PASSWORD not in printed.out + printed.err + caplog.text
    assert "refuse" in printed.err or "reached" in printed.err


@pytest.fixture
def redis_url() -> str:
    from tests.stores.redis import server

    return server.fresh_url()


def test_what_is_printed_of_a_job_is_short_and_holds_none_of_its_contents() -> None:
    job = Job(
        id="j1",
        type="mail",
        created_at=NOW,
        run_at=NOW,
        updated_at=NOW,
        state=State.RUNNING,
        token=PASSWORD,
        payload_json=f'"{PASSWORD}"'.encode(),
        result_json=f'"{PASSWORD}"'.encode(),
        checkpoint_json=f'"{PASSWORD}"'.encode(),
        failure=Failure(PASSWORD, headrace.Category.TEMPORARY),
    )
    assert repr(job) == (
        "Job(id='j1', type='mail', queue='default', tenant='default', state='running', attempt=0)"
    )
    ring = KeyRing.parse(new_key("k1", lambda count: b"s" * count))
    assert "s" * 8 not in repr(ring)
    assert "c3Nz" not in repr(ring)
    for value in (
        job,
        job.lease,
        job.failure,
        Lease("j1", PASSWORD),
        Fence("j1", PASSWORD),
        Insertion(jobs=[job], events=[], now=NOW, fence=Fence("j1", PASSWORD)),
        JobSpec(type="mail", payload=PASSWORD),
        Completed(job_id="j1", token=PASSWORD, result=PASSWORD, known=job),
        Failed(job_id="j1", token=PASSWORD, failure=Failure(PASSWORD, headrace.Category.SYSTEM)),
    ):
        assert PASSWORD not in repr(value)


def _values() -> Iterator[tuple[type, list[str]]]:
    """Every class of values that Headrace has, with the fields that its repr may show."""
    for info in pkgutil.walk_packages(headrace.__path__, "headrace."):
        if ".testing" in info.name or info.name.endswith("__main__"):
            continue
        if info.name.startswith("headrace.django."):
            continue  # without a project's settings it cannot be loaded; its results are Django's own
        module = importlib.import_module(info.name)
        for each in vars(module).values():
            if not isinstance(each, type) or each.__module__ != info.name:
                continue
            if issubclass(each, msgspec.Struct) and each.__repr__ is msgspec.Struct.__repr__:
                yield each, list(each.__struct_fields__)
            elif dataclasses.is_dataclass(each):
                yield each, [field.name for field in dataclasses.fields(each) if field.repr]


WORDS = frozenset({"message", "data", "note", "lines", "checkpoint"})
"""Not always contents of a job: an error's message is for people, a chart's data is the report."""


def test_no_value_shows_a_field_that_may_hold_a_secret() -> None:
    assert issubclass(Job, Redacted)
    seen = {each.__name__: fields for each, fields in _values()}
    assert len(seen) > 50
    assert {
        name: bad for name, fields in seen.items() if (bad := (SECRET - WORDS) & set(fields))
    } == {}


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("no postgresql://me:s3cret@h/db", "no postgresql://h/db"),
        ("at 'redis://:s3cret@h:1/0' and mysql://a:s3cret@h", "at 'redis://h:1/0' and mysql://h"),
        ("password=s3cret host=h", "password=… host=h"),
        ("nothing here: a@b.example", "nothing here: a@b.example"),
    ],
)
def test_texts_of_others_lose_the_passwords_they_quote(text: str, told: str) -> None:
    assert address.scrubbed(text) == told


async def test_the_first_line_of_a_worker_names_store_queues_and_tasks(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    app = Headrace(f"sqlite:///{tmp_path}/jobs.db?synchronous=normal", tenant="acme")

    @app.task
    async def send_mail() -> None:
        worker.stop()

    worker = Worker(app, WorkerSettings(queues=["mail", "default"], maintenance=False), name="w1")
    await app.submit(send_mail)
    await worker.run()
    await app.close()
    assert caplog.messages[0] == (
        f"worker w1 on sqlite:///{tmp_path}/jobs.db, tenant acme; queues: mail, default; tasks: send_mail"
    )
