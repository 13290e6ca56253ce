from __future__ import annotations

from pathlib import Path

import pytest

from headrace.errors import InvalidInput
from headrace.worker.loading import load_app


@pytest.mark.parametrize(
    ("place", "told"),
    [
        ("jobs", "'jobs' does not name an application; nothing was started: write module:name"),
        (":app", "':app' does not name an application"),
        ("there_is_no_such:app", r"no module 'there_is_no_such' .*; nothing was started"),
        ("json:app", r"the module 'json' has no 'app'; .* application; nothing was started"),
        ("json:dumps", r"'json:dumps' is a function; .* application; nothing was started"),
    ],
)
def test_a_place_without_an_application_is_refused(
    place: str, told: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(InvalidInput, match=told):
        load_app(place)
