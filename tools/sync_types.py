"""Write src/headrace/app/sync.py: the types of `app.sync`, made from those of the application.

python tools/sync_types.py
"""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
APPLICATION = ROOT / "src/headrace/app/application.py"
TRANSACTION = ROOT / "src/headrace/app/transaction.py"
MADE = ROOT / "src/headrace/app/sync.py"

HEAD = '''"""What `app.sync` offers, for type checkers and editors: at run time it is a Bridge.

Made by `make docs` from the application's own methods; a test fails when it drifts from them.
"""

from __future__ import annotations
'''
LEFT_OUT = {"connect", "manager", "through_middleware"}
"""They are of use only to those who have an event loop."""
BRIDGED = {"Transaction": "SyncTransaction"}
ITERATED = {"Found": "Iterator[Job]"}


def module() -> str:
    """The whole module, formatted as `make format` would."""
    application, transaction = (ast.parse(path.read_text()) for path in (APPLICATION, TRANSACTION))
    parts = [
        HEAD,
        _imports(application),
        'P = ParamSpec("P")\nT = TypeVar("T")\n',
        _protocol(_class(transaction, "Transaction"), "SyncTransaction"),
        _protocol(_class(application, "Headrace"), "SyncHeadrace"),
    ]
    made = _ruff("\n".join(parts), "check", "--fix", "--select", "F401,I", "-")
    return _ruff(made, "format", "-")


def _class(tree: ast.Module, name: str) -> ast.ClassDef:
    return next(one for one in tree.body if isinstance(one, ast.ClassDef) and one.name == name)


def _imports(tree: ast.Module) -> str:
    """Those of the application, since its annotations use them; what is too much falls to the linter."""
    own = [
        one
        for one in ast.walk(tree)
        if isinstance(one, ast.ImportFrom)
        and one.module not in ("__future__", "headrace.app.sync", "typing", "collections.abc")
    ]
    return "\n".join(
        (
            "from collections.abc import AsyncIterator, Coroutine, Iterable, Iterator, Mapping, Sequence",
            "from typing import Any, ParamSpec, Protocol, TypeVar, overload",
            *(ast.unparse(one) for one in own),
            "",
        )
    )


def _protocol(source: ast.ClassDef, name: str) -> str:
    overloaded = {
        one.name
        for one in source.body
        if isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef) and _is_overload(one)
    }
    lines = [f"class {name}(Protocol):", f'    """{source.name}, without an event loop."""', ""]
    documented: set[str] = set()
    for one in source.body:
        if not isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        if one.name.startswith("_") or one.name in LEFT_OUT or not _is_bridged(one):
            continue
        if one.name in overloaded and not _is_overload(one):
            continue
        lines += ["    @overload"] if _is_overload(one) else []
        text = _without_loop(ast.get_docstring(_documented(source, one.name), clean=False))
        body = "..." if one.name in documented or text is None else f'"""{text}"""\n        ...'
        documented.add(one.name)
        lines.append(f"    def {one.name}({ast.unparse(one.args)}) -> {_returned(one)}:")
        lines += [f"        {body}", ""]
    return "\n".join(lines)


def _documented(source: ast.ClassDef, name: str) -> ast.FunctionDef | ast.AsyncFunctionDef:
    """The last of its definitions: overloads come before it."""
    found = [
        one
        for one in source.body
        if isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef) and one.name == name
    ]
    return found[-1]


def _without_loop(text: str | None) -> str | None:
    return text and text.replace("`async for", "`for").replace("`await ", "`")


def _is_overload(one: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    return any(ast.unparse(mark) == "overload" for mark in one.decorator_list)


def _is_bridged(one: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """A method that a program without an event loop could not use as it is."""
    returned = "" if one.returns is None else ast.unparse(one.returns)
    return isinstance(one, ast.AsyncFunctionDef) or returned in (*BRIDGED, *ITERATED)


def _returned(one: ast.FunctionDef | ast.AsyncFunctionDef) -> str:
    returned = "None" if one.returns is None else ast.unparse(one.returns)
    returned = BRIDGED.get(returned, ITERATED.get(returned, returned))
    return returned.replace("AsyncIterator[", "Iterator[")


def _ruff(text: str, *words: str) -> str:
    command = [
        sys.executable,
        "-m",
        "ruff",
        *words[:1],
        "-q",
        "--stdin-filename",
        str(MADE),
        *words[1:],
    ]
    return subprocess.run(command, input=text, capture_output=True, text=True, check=True).stdout


if __name__ == "__main__":
    MADE.write_text(module())
    sys.exit(0)
