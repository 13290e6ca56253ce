"""Finding an application by its place: `module:name`."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

from headrace.app import Headrace
from headrace.errors import InvalidInput

_UNSTARTED = "nothing was started"


def load_app(place: str) -> Headrace:
    """Import `package.module:name`; the current directory counts, as it does for `python -m`.

    Raises InvalidInput where there is no application, and what importing the module raises.
    """
    module_name, colon, name = place.partition(":")
    if not (module_name and colon and name):
        raise InvalidInput(
            f"{place!r} does not name an application; {_UNSTARTED}: write module:name, as in jobs:app"
        )
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)
    try:
        module = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        if error.name is None or not module_name.startswith(error.name):
            raise  # the module is there; something that it imports is not
        raise InvalidInput(
            f"there is no module {module_name!r} to import from {here}; {_UNSTARTED}"
        ) from error
    found = getattr(module, name, None)
    if not isinstance(found, Headrace):
        what = f"{place!r} is a {type(found).__name__}"
        if found is None:
            what = f"the module {module_name!r} has no {name!r}"
        raise InvalidInput(f"{what}; it must be a Headrace application; {_UNSTARTED}")
    return found
