from __future__ import annotations

from tests.cli.shell import Shell


def test_a_healthy_store(shell: Shell) -> None:
    shell.submit("a", "--delay", "1h")
    answer = shell.ok("doctor")
    assert "integrity" in answer.out
    report = shell.ok("doctor", "--json").json
    assert report["healthy"] is True
    found = {one["what"]: one for one in report["findings"]}
    assert found["durability"]["value"] == "journal wal, synchronous full"
    assert found["backlog"]["value"] == "0 ready, 1 delayed, 0 blocked"
    assert {one["health"] for one in report["findings"]} == {"ok"}


def test_what_needs_care_is_a_warning_with_advice(shell: Shell) -> None:
    shell.submit("a")
    shell.ok("pause", "mail")
    report = shell.ok("doctor", "--json").json
    assert report["healthy"] is True
    warned = {
        one["what"]: one["advice"] for one in report["findings"] if one["health"] == "warning"
    }
    assert set(warned) == {"backlog", "queue mail"}
    assert all(warned.values())


def test_relaxed_durability_is_a_warning(shell: Shell) -> None:
    shell.submit("a", "--delay", "1h")
    answer = shell.bare("doctor", "--url", f"{shell.url}?synchronous=normal")
    assert "warning  durability" in answer.out


def test_a_missing_file_is_not_created(shell: Shell) -> None:
    assert shell.bare("doctor", "--url", "sqlite:///nowhere/at/all.db").code == 4
