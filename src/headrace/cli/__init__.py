"""The `headrace` command line. `main` is all of it to the outside."""

from headrace.cli.app import main

__all__ = ["main"]
