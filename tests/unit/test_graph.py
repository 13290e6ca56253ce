"""Dependencies: judging a child, ordering a batch, finding circles."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace import graph
from headrace.errors import DependencyCycle
from headrace.graph import Fall, Go, Wait
from headrace.model import TERMINAL, DependencyKind, State

AFTER, ANY = DependencyKind.AFTER, DependencyKind.AFTER_ANY
outcomes = st.one_of(st.none(), st.sampled_from(sorted(TERMINAL)))
parents = st.lists(st.tuples(st.sampled_from(DependencyKind), outcomes), max_size=8)


@given(parents)
def test_judge_is_what_the_words_say(facts: list[tuple[DependencyKind, State | None]]) -> None:
    needed = [outcome for kind, outcome in facts if kind is not ANY]
    optional = [outcome for kind, outcome in facts if kind is ANY]
    verdict = graph.judge(graph.join_of(facts))
    if any(outcome not in (None, State.COMPLETED) for outcome in needed):
        assert isinstance(verdict, Fall)
        assert verdict.target in {
            graph.PROPAGATED[o] for o in needed if o not in (None, State.COMPLETED)
        }
    elif None in needed or (optional and all(outcome is None for outcome in optional)):
        assert verdict == Wait()
    else:
        assert verdict == Go()


@given(parents, st.randoms())
def test_the_order_of_parents_does_not_matter(
    facts: list[tuple[DependencyKind, State | None]], dice: object
) -> None:
    shuffled = list(facts)
    dice.shuffle(shuffled)  # type: ignore[attr-defined]
    assert graph.join_of(shuffled) == graph.join_of(facts)


@given(st.integers(0, 60), st.data())
def test_order_puts_parents_first(size: int, data: st.DataObject) -> None:
    names = [str(n) for n in range(size)]
    children = {
        name: data.draw(st.lists(st.sampled_from(names[:n]), unique=True, max_size=4)) if n else []
        for n, name in enumerate(names)
    }
    shuffled = dict(sorted(children.items(), key=lambda item: hash(item[0])))
    ordered = graph.order(shuffled)
    assert sorted(ordered) == sorted(names)
    place = {name: index for index, name in enumerate(ordered)}
    assert all(place[parent] < place[name] for name, above in children.items() for parent in above)


@pytest.mark.parametrize(
    "children",
    [
        {"a": ["a"]},
        {"a": ["b"], "b": ["a"]},
        {"x": [], "a": ["c", "x"], "b": ["a"], "c": ["b"], "d": ["c"]},
    ],
)
def test_a_circle_is_named(children: dict[str, list[str]]) -> None:
    with pytest.raises(DependencyCycle) as caught:
        graph.order(children)
    circle = str(caught.value).split(": ")[1].split(";")[0].split(" -> ")
    assert circle[0] == circle[-1]
    for child, parent in itertools.pairwise(circle):
        assert parent in children[child]


def test_a_chain_of_a_hundred_thousand_needs_no_recursion() -> None:
    names = [str(n) for n in range(100_000)]
    children = {name: [names[n - 1]] if n else [] for n, name in enumerate(names)}
    assert graph.order(children) == names
