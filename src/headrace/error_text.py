"""What an exception says of itself, as plain text, whatever it does when it is asked. Pure.

An exception that a handler raises is the handler's object: its text, its name and its class may raise,
lie or bite. What it does then must not become anybody else's failure.
"""

from __future__ import annotations


def name_of(error: object) -> str:
    """The name of its class, past any metaclass."""
    name: str = type.__dict__["__name__"].__get__(type(error))
    return name


def text_of(error: object) -> str:
    """Its message; its name where it has none."""
    try:
        return plain(str(error)) or name_of(error)
    except BaseException:  # noqa: BLE001 - also SystemExit: it was asked for a text, no more
        return f"a {name_of(error)} that cannot be shown"


def told(error: object) -> str:
    """Its name and its message."""
    name, text = name_of(error), text_of(error)
    return name if text == name else f"{name}: {text}"


def plain(text: str) -> str:
    """The text itself, whatever a subclass makes of it."""
    return str.__str__(text)


def is_a(error: object, *kinds: type[BaseException]) -> bool:
    """By its real class: `isinstance` would ask the object."""
    return issubclass(type(error), kinds)
