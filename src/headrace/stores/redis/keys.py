"""The names of the store's keys. One hash tag holds them all in one slot of a cluster."""

from __future__ import annotations

ROOT = "root"


class Keys:
    """Key names under one prefix: `{prefix}:rows` and so on. The braces are Redis' hash tag."""

    def __init__(self, prefix: str) -> None:
        self.root = f"{{{prefix}}}"

    def of(self, name: str) -> str:
        """A fixed key; `root` is what scripts derive the others from."""
        return self.root if name == ROOT else f"{self.root}:{name}"

    def tag(self, tag: str) -> str:
        """All jobs with the tag, by seq."""
        return self.of(f"tag:{tag}")

    def records(self, kind: str) -> str:
        """The records of a kind, by name."""
        return self.of(f"records:{kind}")

    def spawned(self, parent_id: str) -> str:
        """All jobs that a job spawned, by seq."""
        return self.of(f"spawned:{parent_id}")
