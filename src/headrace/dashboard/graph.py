"""Dependencies as a drawing: jobs in columns, each to the right of what it waits for. Pure.

Many equal jobs side by side (same column, same type, same neighbours) are drawn as one: a set of them with
its states. What remains is laid out in columns by the longest way from a start, and put in order within its
column by where its neighbours stand, so that few lines cross.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from markupsafe import Markup

from headrace.dashboard import words
from headrace.dashboard.links import Links
from headrace.model import State

NODE_WIDTH, NODE_HEIGHT = 176, 44
GAP_X, GAP_Y = 56, 16
MARGIN = 8
FOLD_FROM = 6
"""So many equal jobs side by side are drawn as one."""
_SWEEPS = 4
_NAME_CHARS = 20


@dataclass(frozen=True)
class Node:
    id: str
    type: str
    state: State


@dataclass
class Placed:
    """One node, or a set of equal ones, where it is drawn."""

    jobs: list[Node]
    column: int = 0
    row: float = 0.0
    above: set[int] = field(default_factory=set)
    """By index: what it waits for."""
    below: set[int] = field(default_factory=set)


Edge = tuple[str, str]
"""From the job that is waited for to the one that waits."""


def lay_out(nodes: Sequence[Node], edges: Sequence[Edge]) -> list[Placed]:
    """Where each is drawn. Edges to what is not among the nodes are left out."""
    known = {node.id: node for node in nodes}
    edges = [edge for edge in edges if edge[0] in known and edge[1] in known]
    columns = _columns(known, edges)
    placed = _folded(nodes, edges, columns)
    index = {job.id: i for i, one in enumerate(placed) for job in one.jobs}
    for parent, child in edges:
        placed[index[child]].above.add(index[parent])
        placed[index[parent]].below.add(index[child])
    _order(placed)
    return placed


def _columns(known: Mapping[str, Node], edges: Sequence[Edge]) -> dict[str, int]:
    """The longest way to each. A ring, which the store refuses, would end where all were seen."""
    waits: dict[str, set[str]] = defaultdict(set)
    for parent, child in edges:
        waits[child].add(parent)
    columns = dict.fromkeys(known, 0)
    for _ in range(len(known)):
        moved = False
        for child, parents in waits.items():
            least = 1 + max(columns[parent] for parent in parents)
            if columns[child] < least:
                columns[child] = least
                moved = True
        if not moved:
            break
    return columns


def _folded(
    nodes: Sequence[Node], edges: Sequence[Edge], columns: Mapping[str, int]
) -> list[Placed]:
    above: dict[str, set[str]] = defaultdict(set)
    below: dict[str, set[str]] = defaultdict(set)
    for parent, child in edges:
        above[child].add(parent)
        below[parent].add(child)
    alike: dict[tuple[int, str, frozenset[str], frozenset[str]], list[Node]] = defaultdict(list)
    for node in nodes:
        kin = frozenset(above[node.id]), frozenset(below[node.id])
        alike[columns[node.id], node.type, *kin].append(node)
    placed: list[Placed] = []
    for (column, *_), group in alike.items():
        sets = [group] if len(group) >= FOLD_FROM else [[node] for node in group]
        placed += (Placed(jobs, column) for jobs in sets)
    return placed


def _order(placed: Sequence[Placed]) -> None:
    """Each column by the mean place of its neighbours, to the right and back again a few times."""
    by_column: dict[int, list[Placed]] = defaultdict(list)
    for one in placed:
        by_column[one.column].append(one)
    tallest = max((len(column) for column in by_column.values()), default=0)
    for column in by_column.values():
        _settle(column, tallest)
    for sweep in range(_SWEEPS):
        for number in sorted(by_column, reverse=bool(sweep % 2)):
            column = by_column[number]
            rank = {id(one): _mean(placed, one, back=bool(sweep % 2)) for one in column}
            column.sort(key=lambda one, rank=rank: rank[id(one)])  # type: ignore[misc]  # bound here
            _settle(column, tallest)


def _settle(column: Sequence[Placed], tallest: int) -> None:
    """One below the other, the column in the middle."""
    first = (tallest - len(column)) / 2
    for place, one in enumerate(column):
        one.row = first + place


def _mean(placed: Sequence[Placed], one: Placed, *, back: bool) -> float:
    kin = one.below if back else one.above
    return sum(placed[i].row for i in kin) / len(kin) if kin else one.row


def draw(placed: Sequence[Placed], links: Links, here: str | None = None) -> Markup:
    """The drawing in its natural size: what holds it scrolls. `here`: the job whose page it is on."""
    if not placed:
        return Markup("")
    width = MARGIN * 2 + (max(one.column for one in placed) + 1) * (NODE_WIDTH + GAP_X) - GAP_X
    height = MARGIN * 2 + (max(one.row for one in placed) + 1) * (NODE_HEIGHT + GAP_Y) - GAP_Y
    lines = [_line(placed[i], one) for one in placed for i in sorted(one.above)]
    nodes = [_node(one, links, here) for one in placed]
    jobs = sum(len(one.jobs) for one in placed)
    return Markup(
        '<div class="graph" tabindex="0" role="group" aria-label="{}"><svg viewBox="0 0 {w:.0f} {h:.0f}" '
        'width="{w:.0f}" height="{h:.0f}">{}{}</svg></div>'
    ).format(
        f"Dependencies of {jobs} jobs, from left to right",
        Markup("").join(lines),
        Markup("").join(nodes),
        w=width,
        h=height,
    )


def _at(one: Placed) -> tuple[float, float]:
    return (
        MARGIN + one.column * (NODE_WIDTH + GAP_X),
        MARGIN + one.row * (NODE_HEIGHT + GAP_Y),
    )


def _line(parent: Placed, child: Placed) -> Markup:
    (from_x, from_y), (to_x, to_y) = _at(parent), _at(child)
    from_x += NODE_WIDTH
    from_y += NODE_HEIGHT / 2
    to_y += NODE_HEIGHT / 2
    middle = (from_x + to_x) / 2
    done = all(job.state is State.COMPLETED for job in parent.jobs)
    return Markup(
        '<path class="edge{}" d="M{:.1f} {:.1f} C{m:.1f} {:.1f} {m:.1f} {:.1f} {:.1f} {:.1f}"/>'
    ).format(" done" if done else "", from_x, from_y, from_y, to_y, to_x, to_y, m=middle)


def _node(one: Placed, links: Links, here: str | None) -> Markup:
    x, y = _at(one)
    states = Counter(job.state for job in one.jobs)
    first = one.jobs[0]
    if len(one.jobs) == 1:
        href, told = links.to("job", id=first.id), f"{first.state} · {words.short_id(first.id)}"
        title = f"{first.type}, {first.state}, {first.id}"
    else:
        href = links.to("jobs", type=first.type)
        told = ", ".join(f"{count} {state}" for state, count in states.most_common(2))
        title = f"{len(one.jobs)} × {first.type}: {told}"
    name = first.type if len(one.jobs) == 1 else f"{len(one.jobs)} × {first.type}"
    is_here = any(job.id == here for job in one.jobs)
    return Markup(
        '<a href="{}" class="node{}"><title>{}</title>'
        '<rect x="{:.1f}" y="{:.1f}" width="{}" height="{}" rx="6"/>{}'
        '<text class="name" x="{:.1f}" y="{:.1f}">{}</text><text x="{:.1f}" y="{:.1f}">{}</text></a>'
    ).format(
        *(href, " here" if is_here else "", title),
        *(x, y, NODE_WIDTH, NODE_HEIGHT),
        _stripe(states, x, y),
        *(x + 14, y + 18, _cut(name)),
        *(x + 14, y + 34, _cut(told, _NAME_CHARS + 4)),
    )


def _stripe(states: Counter[State], x: float, y: float) -> Markup:
    """The left edge of a node in the colours of its states, each as long as its share."""
    drawn: list[Markup] = []
    whole, at = states.total(), y + 6
    for state in words.ORDER:
        if states[state]:
            length = (NODE_HEIGHT - 12) * states[state] / whole
            drawn.append(
                Markup(
                    '<rect class="fill {}" x="{:.1f}" y="{:.1f}" width="4" height="{:.1f}" rx="2"/>'
                ).format(state.value, x + 5, at, length)
            )
            at += length
    return Markup("").join(drawn)


def _cut(text: str, chars: int = _NAME_CHARS) -> str:
    return text if len(text) <= chars else f"{text[: chars - 1]}…"
