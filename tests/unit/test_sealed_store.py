"""The store as the manager sees it: no verb of the protocol gets past it unnamed."""

from __future__ import annotations

import inspect

from headrace.manager.sealed_store import SealedStore
from headrace.stores.base import JobStore


def _members(kind: type) -> dict[str, object]:
    return {name: member for name, member in vars(kind).items() if not name.startswith("_")}


def test_every_verb_of_the_protocol_is_named_and_none_else() -> None:
    assert _members(SealedStore).keys() == _members(JobStore).keys()
    assert not hasattr(SealedStore, "__getattr__"), "a verb that nobody thought of would pass"


def test_verbs_take_what_the_protocol_says_they_take() -> None:
    for name, member in _members(JobStore).items():
        if inspect.isfunction(member):
            wanted = inspect.signature(member).parameters
            assert inspect.signature(getattr(SealedStore, name)).parameters == wanted, name
