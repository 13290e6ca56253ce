"""Check the Lua of the Redis store: each file by its names, each script by the server that runs it.

    python tools/lint_lua.py

Of every script and shared part: no name is read that neither Lua nor Redis nor a part named under `uses`
offers, nothing but its own locals is assigned, no local is left unread, and no part is used for nothing. Then
a real server loads every script as it is sent. Prints what is wrong, and exits with 1.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator
from pathlib import Path

import tree_sitter_lua
from redis.exceptions import ResponseError
from tree_sitter import Language, Node, Parser

sys.path.insert(0, str(Path(__file__).parent.parent))

from headrace.stores.redis.connection import Server
from headrace.stores.redis.opening import parse
from headrace.stores.redis.scripts import Script, header_of, parts, texts
from tests.stores.redis import server as redis_server

LUA = frozenset(
    ("ipairs", "math", "next", "pairs", "string", "table", "tonumber", "tostring", "type", "unpack")
)
REDIS = frozenset(("ARGV", "KEYS", "bit", "cjson", "cmsgpack", "redis", "struct"))
BOUND = frozenset({"K"})
"""What is put before every script: see headrace.stores.redis.scripts."""

_parse = Parser(Language(tree_sitter_lua.language())).parse


class Local:
    """A name that a text declares: where, and whether it is ever read."""

    def __init__(self, line: int) -> None:
        self.line = line
        self.is_read = False


class Names:
    """What one text declares, reads and assigns."""

    def __init__(self, text: str) -> None:
        tree = _parse(text.encode())
        self.problems = [f"{_line(tree.root_node)}: cannot be read"] * tree.root_node.has_error
        self.read: set[str] = set()
        """Names that are not the text's own."""
        self._scopes: list[dict[str, Local]] = [{}]
        self._block(tree.root_node)
        self.own = self._scopes[0]
        """What stands at the top: what a part offers."""

    def _block(self, block: Node) -> None:
        for statement in block.named_children:
            self._visit(statement)

    def _visit(self, node: Node) -> None:  # noqa: PLR0912 - one branch per construct of the language
        match node.type:
            case "comment":
                pass
            case "identifier":
                self._use(node)
            case "dot_index_expression" | "method_index_expression":
                self._visit(_field(node, "table"))
            case "field":
                if node.child_by_field_name("name") is not None and node.children[0].type == "[":
                    self._visit(_field(node, "name"))
                self._visit(_field(node, "value"))
            case "variable_declaration":
                self._declaration(node)
            case "assignment_statement":
                targets, values = node.named_children
                self._visit(values)
                for target in targets.named_children:
                    self._assign(target)
            case "function_declaration":
                name = _field(node, "name")
                if node.children[0].type == "local":
                    self._declare(name)
                else:
                    self._assign(name)
                self._function(node)
            case "function_definition":
                self._function(node)
            case "for_statement":
                self._loop(node)
            case "repeat_statement":
                with_condition = [*_body(node), _field(node, "condition")]
                self._within(with_condition)
            case "block":
                self._within(node.named_children)
            case _:
                self._block(node)

    def _within(self, nodes: list[Node]) -> None:
        """In a scope of their own."""
        self._scopes.append({})
        for node in nodes:
            self._visit(node)
        self._close()

    def _declaration(self, node: Node) -> None:
        (inner,) = node.named_children
        names, *values = inner.named_children if inner.type == "assignment_statement" else [inner]
        for value in values:
            self._visit(value)
        for name in names.named_children:
            self._declare(name)

    def _function(self, node: Node) -> None:
        self._scopes.append({})
        for parameter in _field(node, "parameters").named_children:
            if parameter.type == "identifier":
                self._declare(parameter)
        self._within(_body(node))
        self._close()

    def _loop(self, node: Node) -> None:
        clause = _field(node, "clause")
        if clause.type == "for_generic_clause":
            variables, values = clause.named_children
            names, ranges = variables.named_children, [values]
        else:
            first, *ranges = clause.named_children
            names = [first]
        for value in ranges:
            self._visit(value)
        self._scopes.append({})
        for name in names:
            self._declare(name)
        self._within(_body(node))
        self._close()

    def _declare(self, name: Node) -> None:
        self._scopes[-1][_text(name)] = Local(_line(name))

    def _find(self, name: str) -> Local | None:
        return next((scope[name] for scope in reversed(self._scopes) if name in scope), None)

    def _use(self, name: Node) -> None:
        local = self._find(_text(name))
        if local is None:
            self.read.add(_text(name))
        else:
            local.is_read = True

    def _assign(self, target: Node) -> None:
        if target.type != "identifier":
            self._visit(target)
        elif self._find(_text(target)) is None:
            self.problems.append(f"{_line(target)}: assigns {_text(target)}, which is not its own")

    def _close(self) -> None:
        self.problems += unread(self._scopes.pop())


def unread(scope: dict[str, Local]) -> Iterator[str]:
    for name, local in scope.items():
        if not local.is_read and not name.startswith("_"):
            yield f"{local.line}: {name} is never read"


def check_names() -> Iterator[str]:
    """What is wrong with each part and script by itself."""
    offered = {name: Names(text) for name, text in parts().items()}
    scripts = {name: Names(text) for name, text in texts().items()}
    wanted = set[str]().union(*(names.read for names in (*offered.values(), *scripts.values())))
    for kind, found, sources in (("part", offered, parts()), ("script", scripts, texts())):
        for name, names in found.items():
            used = header_of(sources[name]).get("uses", "").split()
            known = LUA | REDIS | BOUND
            for part in used:
                if not names.read & offered[part].own.keys():
                    yield f"{kind} {name}: uses {part} for nothing"
                known = known.union(offered[part].own)
            for undefined in sorted(names.read - known):
                yield f"{kind} {name}: reads {undefined}, which no part that it uses offers"
            own = {
                own_name: local
                for own_name, local in names.own.items()
                if kind == "script" or own_name not in wanted
            }
            for problem in (*names.problems, *unread(own)):
                yield f"{kind} {name}:{problem}"


async def check_loading(url: str) -> list[str]:
    """What the server has against any script."""
    server = Server(parse(url, prefix="lint", relaxed_durability=True))
    problems = []
    for name in texts():
        try:
            await server.read("SCRIPT", "LOAD", Script(name).text)
        except Exception as error:
            if not isinstance(error.__cause__, ResponseError):
                raise
            problems.append(f"script {name}: {error.__cause__}")
    await server.close()
    return problems


def _text(node: Node) -> str:
    return (node.text or b"").decode()


def _line(node: Node) -> int:
    return node.start_point.row + 1


def _field(node: Node, name: str) -> Node:
    child = node.child_by_field_name(name)
    assert child is not None, f"{node.type} without {name}"
    return child


def _body(node: Node) -> list[Node]:
    body = node.child_by_field_name("body")
    return [] if body is None else body.named_children


def main() -> None:
    problems = list(check_names())
    with redis_server.running("lint") as url:
        problems += asyncio.run(check_loading(url))
    for problem in problems:
        print(problem)
    print(f"{len(texts())} scripts and {len(parts())} parts of Lua: {len(problems)} problems")
    sys.exit(1 if problems else 0)


if __name__ == "__main__":
    main()
