"""The examples of web applications, asked as their clients would, with a worker beside them."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import httpx
import pytest

from headrace import Headrace
from headrace.worker import Settings, Worker
from tests.worker.running import working

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.fixture
def example(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Any]:
    """The module, on a store of this test's own."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(EXAMPLES))
    module = import_module(request.param)
    with module.app.using(f"sqlite:///{tmp_path / 'jobs.db'}?synchronous=normal"):
        yield module
    del sys.modules[request.param]


def test_every_web_application_is_tested() -> None:
    names = {path.stem for path in EXAMPLES.glob("web_*.py")}
    assert names == {"web_fastapi", "web_flask", "web_django"}


def drain(app: Headrace) -> None:
    async def run() -> None:
        async with app:
            await Worker(app, Settings(maintenance=False)).drain()

    asyncio.run(run())


@pytest.mark.parametrize("example", ["web_fastapi"], indirect=True)
async def test_fastapi_submits_tells_of_progress_waits_and_cancels(example: Any) -> None:
    transport = httpx.ASGITransport(app=example.api)
    async with (
        httpx.AsyncClient(transport=transport, base_url="http://shop") as client,
        example.lifespan(example.api),
    ):
        asked: dict[str, str | int] = {"pages": 3, "key": "mine"}
        first = await client.post("/reports", params=asked)
        assert first.status_code == 202
        job = first.json()["id"]
        assert first.headers["location"] == f"/reports/{job}"
        assert (await client.post("/reports", params=asked)).json()["id"] == job
        other = (await client.post("/reports", params={"pages": 1000})).json()["id"]
        assert (await client.get("/reports/none")).status_code == 404

        async with working(example.app, maintenance=False):
            stream = await client.get(f"/reports/{job}/progress")
            seen = [
                json.loads(line.removeprefix("data: ")) for line in stream.text.splitlines() if line
            ]
            assert seen[-1] == {"id": job, "state": "completed", "progress": 1.0}
            assert {one["progress"] for one in seen} & {1 / 3, 2 / 3}, "not only its end"
            assert (await client.get(f"/reports/{job}/result")).json() == {"pages": 3}

            late = await client.get(f"/reports/{other}/result", params={"seconds": 0.01})
            assert late.status_code == 504
            assert (await client.delete(f"/reports/{other}")).status_code == 202
            ended = await client.get(f"/reports/{other}/result")
            assert ended.status_code == 409
        assert (await client.get(f"/reports/{other}")).json()["state"] == "cancelled"


@pytest.mark.parametrize("example", ["web_flask"], indirect=True)
def test_flask_submits_and_looks(example: Any) -> None:
    client = example.web.test_client()
    answer = client.post("/thumbnails", data={"path": "cat.png"})
    assert answer.status_code == 202
    job = answer.get_json()["id"]
    drain(example.app)
    shown = client.get(f"/thumbnails/{job}").get_json()
    assert shown == {"id": job, "state": "completed", "result": "cat.png@100"}
    assert client.get("/thumbnails/none").status_code == 404
    example.app.sync.close()


DJANGO = """
import asyncio
import web_django
from django.db import connection
from django.test import Client
from headrace.worker import Settings, Worker

client = Client()
print([client.post("/orders/7").status_code for _ in range(2)])
jobs = list(web_django.app.sync.find())
web_django.app.sync.close()

async def drain():
    async with web_django.app:
        return await Worker(web_django.app, Settings(maintenance=False)).drain()

print(len(jobs), asyncio.run(drain()))
with connection.cursor() as cursor:
    cursor.execute("SELECT number, confirmed FROM orders")
    print(cursor.fetchall())
"""


async def test_django_submits_once_with_the_row(tmp_path: Path) -> None:
    """In a process of its own: Django is configured once in each."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-c",
        DJANGO,
        cwd=tmp_path,
        env={"PYTHONPATH": f"{EXAMPLES}:{':'.join(sys.path)}"},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    out, error = await asyncio.wait_for(process.communicate(), 60)
    assert error.decode() == ""
    assert out.decode().splitlines() == ["[202, 202]", "1 1", "[(7, 1)]"]
