"""What pages offer as a command line or as a request is one that there is."""

from __future__ import annotations

import html
import re
import shlex
from urllib.parse import parse_qsl, urlsplit

import click

from headrace.api.table import ROUTES
from headrace.cli.app import headrace as cli
from tests.dashboard.conftest import Dashboard
from tests.dashboard.test_pages import PLACES, fill


async def offered(dashboard: Dashboard) -> dict[str, str]:
    """All of them, by the page that offers it last."""
    ids = await fill(dashboard.manager)
    browser = dashboard.open_to_all()
    found: dict[str, str] = {}
    for place in (*PLACES, *(f"/job?id={job_id}" for job_id in ids.values())):
        page = (await browser.get(place)).text
        same = page.partition('id="same"')[2]
        for line in re.findall(r"<code>(.*?)</code>", same, flags=re.DOTALL):
            found[html.unescape(line)] = place
    assert len(found) > 30
    return found


async def test_every_request_has_a_route_that_takes_it(dashboard: Dashboard) -> None:
    wrong = []
    for line, place in (await offered(dashboard)).items():
        words = shlex.split(line)
        if words[0] != "curl":
            continue
        method = words[words.index("-X") + 1] if "-X" in words else "GET"
        url = urlsplit(words[-1])
        route = next(
            (
                one
                for one in ROUTES
                if one.method == method
                and re.fullmatch(re.sub(r"\{\w+\}", "[^/]+", one.path), url.path)
            ),
            None,
        )
        if route is None:
            wrong.append(f"{place}: {method} {url.path}")
            continue
        names = {name for name, _ in parse_qsl(url.query)}
        known = set() if route.query is None else set(route.query.__struct_encode_fields__)
        if names - known:
            wrong.append(f"{place}: {method} {url.path} takes no {sorted(names - known)}")
    assert not wrong, "\n".join(wrong)


async def test_every_command_can_be_typed(dashboard: Dashboard) -> None:
    wrong = []
    for line, place in (await offered(dashboard)).items():
        words = shlex.split(line)
        if words[0] != "headrace":
            continue
        command: click.Command = cli
        rest = words[1:]
        context = click.Context(cli, info_name="headrace")
        while isinstance(command, click.Group) and rest and not rest[0].startswith("-"):
            found = command.get_command(context, rest[0])
            if found is None:
                break
            command, rest = found, rest[1:]
        try:
            command.make_context(words[-1], list(rest), parent=context)
        except (click.UsageError, click.exceptions.NoArgsIsHelpError) as error:
            wrong.append(f"{place}: {line}: {error.format_message()}")
    assert not wrong, "\n".join(wrong)
