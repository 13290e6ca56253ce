"""Generated pages are what their generator makes today."""

from __future__ import annotations

from headrace.lifecycle import RULES
from tools import contract_table, lifecycle_diagram


def test_the_lifecycle_page_has_not_drifted_from_the_rules() -> None:
    text = lifecycle_diagram.PAGE.read_text()
    assert lifecycle_diagram.page(text) == text, "run: make docs"


def test_the_diagram_shows_every_rule() -> None:
    diagram = lifecycle_diagram.diagram()
    for rule in RULES:
        line = next(
            line
            for line in diagram.splitlines()
            if f"{rule.source or '[*]'} --> {rule.target}:" in line
        )
        assert rule.verb in line


def test_the_contracts_page_has_not_drifted_from_the_kit() -> None:
    assert contract_table.PAGE.read_text() == contract_table.page(), "run: make docs"
