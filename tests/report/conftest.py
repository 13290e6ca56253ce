from __future__ import annotations

from pathlib import Path

import pytest

from headrace.report import Report, build, read
from tests.report import tables


@pytest.fixture(scope="session")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The gold tables of a small afternoon."""
    return tables.write(tmp_path_factory.mktemp("afternoon"), tables.AFTERNOON)


@pytest.fixture(scope="session")
def empty_lake(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Gold tables without a row."""
    return tables.write(tmp_path_factory.mktemp("empty"), {})


@pytest.fixture(scope="session")
def afternoon(lake: Path) -> Report:
    return build(read(lake))
