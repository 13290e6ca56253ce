"""How an enrichment can fail."""

from __future__ import annotations

from collections.abc import Sequence

from headrace.errors import HeadraceError

_TEXT_CHARS_MAX = 200


class EnrichmentFailed(HeadraceError):
    """Rows have no result. The others have; their results stay in the store."""

    code = "ENRICHMENT_FAILED"

    def __init__(self, name: str, rows: int, examples: Sequence[tuple[str, str]]) -> None:
        told = "; ".join(f"{text[:_TEXT_CHARS_MAX]}: {error}" for text, error in examples)
        super().__init__(
            f"{rows} rows of enrichment {name} have no result, such as {told}. What is done stays: run them "
            'again with retry_failed=True, or take them as they are with on_error="keep"'
        )
        self.rows = rows
        self.examples = tuple(examples)
