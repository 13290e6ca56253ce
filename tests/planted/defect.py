"""A defect: a piece of Headrace that is replaced by a wrong one, for a while."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any
from unittest import mock

Defect = Callable[[], contextlib.AbstractContextManager[Any]]


def patched(where: object, name: str, wrong: object) -> Defect:
    """The defect of having `wrong` in the place of `where.name`."""
    return lambda: mock.patch.object(where, name, wrong)
