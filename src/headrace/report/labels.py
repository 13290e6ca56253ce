"""Names in little room: cut, and still another each."""

from __future__ import annotations

from collections.abc import Sequence


def shortened(names: Sequence[str], chars: int) -> dict[str, str]:
    """Each name in so many characters, none like another: cut at its end, in its middle, or numbered."""
    short: dict[str, str] = {}
    for name in names:
        tries = [_cut(name, chars)]
        if len(name) > chars:
            tries += [
                f"{name[:head]}…{name[head - chars + 1 :]}" for head in range(chars // 2, 0, -1)
            ]
        others = [one for one in names if one != name]
        alone = (one for one in tries if not any(_may_be(one, other) for other in others))
        short[name] = next(alone, f"{_cut(name, chars - 4)} {len(short) + 1}")
    return short


def _may_be(short: str, other: str) -> bool:
    """Whether another name could be meant by what is left of one."""
    head, cut, tail = short.partition("…")
    return bool(cut) and other.startswith(head) and other.endswith(tail)


def _cut(text: str, chars: int) -> str:
    return text if len(text) <= chars else text[: chars - 1] + "…"
