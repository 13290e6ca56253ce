from __future__ import annotations

import platform
from pathlib import Path

import pytest

import headrace
from headrace.stores.sqlite import LATEST_SCHEMA_VERSION, schema
from tests.cli.shell import Shell


def test_pause_and_resume(shell: Shell) -> None:
    shell.submit("a", "--queue", "mail")
    assert shell.ok("pause", "mail").out == "queue mail is paused; what runs goes on\n"
    assert shell.manage(lambda jobs: jobs.claim("worker-1")) == ()
    assert shell.ok("pause", "mail").out == "queue mail was paused before\n"
    assert shell.ok("resume", "mail").out == "queue mail goes on\n"
    assert len(shell.manage(lambda jobs: jobs.claim("worker-1"))) == 1
    assert shell.ok("resume", "mail").out == "queue mail was not paused\n"
    record = {"queue": "mail", "tenant": None, "paused": True, "changed": True}
    assert shell.ok("pause", "mail", "--json").json == record
    assert shell.ok("pause", "mail", "--json").json == record | {"changed": False}
    assert shell.ok("resume", "mail", "--json").json == record | {"paused": False}


def test_a_pause_may_be_one_tenants(shell: Shell) -> None:
    assert "(tenant acme)" in shell.ok("pause", "mail", "--tenant", "acme").out
    everyone = shell.ok("resume", "mail")
    assert "was not paused" in everyone.out
    assert "still paused for tenant acme: add --tenant acme" in everyone.out
    assert shell.ok("resume", "mail", "--tenant", "acme", "--json").json["changed"] is True


def test_migrate_creates_then_has_nothing_to_do(shell: Shell, tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'new.db'}"
    created = shell.bare("migrate", "--url", url)
    assert created.out == f"{url} created at schema version {LATEST_SCHEMA_VERSION}\n"
    assert shell.bare("migrate", "--url", url).out.endswith("nothing to do\n")
    assert shell.bare("migrate", "--url", url, "--json").json == {
        "url": url,
        "from_version": LATEST_SCHEMA_VERSION,
        "to_version": LATEST_SCHEMA_VERSION,
    }


def test_migrate_upgrades_an_older_file_that_others_refuse(
    shell: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = f"sqlite:///{tmp_path / 'old.db'}"
    shell.bare("migrate", "--url", url)
    monkeypatch.setattr(schema, "_MIGRATIONS", (*schema._MIGRATIONS, "CREATE TABLE made_up (a);"))
    monkeypatch.setattr(schema, "LATEST_SCHEMA_VERSION", LATEST_SCHEMA_VERSION + 1)
    refused = shell.bare("list", "--url", url)
    assert refused.code == 4
    assert "headrace migrate" in refused.err
    migrated = shell.bare("migrate", "--url", url)
    assert migrated.out == f"{url} migrated from schema version 1 to 2\n"
    assert shell.bare("list", "--url", url).code == 0


def test_migrate_has_nothing_to_do_for_memory(shell: Shell) -> None:
    assert shell.bare("migrate", "--url", "memory:").out == "memory: has no schema: nothing to do\n"
    assert shell.bare("migrate", "--url", "memory:", "--json").json["to_version"] is None


def test_migrate_does_not_show_a_password(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    async def connect(url: str, **_: object) -> headrace.JobManager:
        return await headrace.connect("memory:")

    monkeypatch.setattr("headrace.cli.store.connect", connect)
    answer = shell.bare("migrate", "--url", "postgresql://me:secret@db/jobs?password=secret")
    assert answer.out == "postgresql://db/jobs has no schema: nothing to do\n"


def test_version(shell: Shell) -> None:
    assert shell.bare("version").out == f"headrace {headrace.__version__}\n"
    assert shell.bare("version", "--json").json == {
        "version": headrace.__version__,
        "python": platform.python_version(),
    }
