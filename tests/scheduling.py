"""How the tests are shared out between processes."""

from __future__ import annotations

from xdist.scheduler import LoadScopeScheduling

SPARK = ("tests/spark/", "tests/examples/test_enrich", "tests/examples/test_lake")


class OneSparkProcess(LoadScopeScheduling):  # type: ignore[misc]  # it ships without types
    """All tests on Spark in one process, since a session takes long to start; the others one by one.

    Not by marks of groups: the present pytest passes them by.
    """

    def _split_scope(self, nodeid: str) -> str:
        return "spark" if nodeid.startswith(SPARK) else nodeid
