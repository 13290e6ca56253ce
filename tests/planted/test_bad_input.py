"""The fuzz and the search for secrets must object to every door that is left open."""

from __future__ import annotations

import pytest

from headrace.cli import main
from headrace.model import Lease
from tests.fuzz.fuzz import fuzz
from tests.planted.bad_input import NO_DEFECT, OPEN_DOORS, TOLD_CONTENTS, TOLD_SECRETS

CALLS = 1000
URLS = ("nothing://me:s3cret@host/db", "sqlite:///jobs.db?password=s3cret")


async def _leaks() -> bool:
    try:
        return bool((await fuzz("memory:", seed=3, calls=CALLS)).leaks)
    except Exception:  # noqa: BLE001 - the store is broken, or the innocent job was touched
        return True


def _tells(capsys: pytest.CaptureFixture[str]) -> bool:
    capsys.readouterr()
    for url in URLS:
        main(("list", "--url", url))
        main((url,))
    return "s3cret" in capsys.readouterr().err


async def test_without_a_defect_nothing_objects(capsys: pytest.CaptureFixture[str]) -> None:
    with NO_DEFECT():
        assert not await _leaks()


def test_without_a_defect_nothing_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    assert not _tells(capsys)
    assert "s3cret" not in repr(Lease("j", "s3cret"))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", OPEN_DOORS)
async def test_the_fuzz_objects(name: str) -> None:
    with OPEN_DOORS[name]():
        assert await _leaks(), f"the fuzz does not notice that {name}"


@pytest.mark.parametrize("name", TOLD_SECRETS)
def test_the_search_for_passwords_objects(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    with TOLD_SECRETS[name]():
        assert _tells(capsys), f"nobody notices that {name}"


@pytest.mark.parametrize("name", TOLD_CONTENTS)
def test_the_search_for_contents_objects(name: str) -> None:
    with TOLD_CONTENTS[name]():
        assert "s3cret" in repr(Lease("j", "s3cret"))
