"""Jobs behind an API: submit and answer 202, progress as server-sent events, wait for a result, cancel.

pip install fastapi uvicorn
uvicorn web_fastapi:api &
headrace worker web_fastapi:app &
curl -s -X POST localhost:8000/reports -H 'content-type: application/json' -d '{"pages": 3}'
"""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from fastapi import FastAPI, HTTPException, Response
from fastapi.responses import StreamingResponse

from headrace import Context, Headrace, Job
from headrace.errors import JobFailed, JobNotFound

app = Headrace()


@app.task(queue="reports", timeout=60)
async def make_report(ctx: Context, pages: int) -> dict[str, int]:
    for page in range(pages):
        await asyncio.sleep(0.05)  # the work
        await ctx.progress((page + 1) / pages, f"page {page + 1}")
    return {"pages": pages}


@asynccontextmanager
async def lifespan(_: FastAPI) -> AsyncIterator[None]:
    async with app:  # connects here rather than at the first request
        yield


api = FastAPI(lifespan=lifespan)


def shown(job: Job) -> dict[str, Any]:
    return {"id": job.id, "state": job.state.value, "progress": job.progress}


async def found(job_id: str) -> Job:
    try:
        return await app.get(job_id)
    except JobNotFound as error:
        raise HTTPException(404, "no such report") from error


@api.post("/reports", status_code=202)
async def submit(pages: int, response: Response, key: str | None = None) -> dict[str, Any]:
    """With a key of the client's choice a repeated request finds the first one's job."""
    job = await make_report.options(key=key).submit(pages)
    response.headers["Location"] = f"/reports/{job.id}"
    return shown(job)


@api.get("/reports/{job_id}")
async def look(job_id: str) -> dict[str, Any]:
    return shown(await found(job_id))


@api.get("/reports/{job_id}/progress")
async def follow(job_id: str) -> StreamingResponse:
    """One event for each change, until the job has ended."""
    await found(job_id)

    async def events() -> AsyncIterator[str]:
        async for job in app.watch(job_id, look_seconds=0.1):
            yield f"data: {json.dumps(shown(job))}\n\n"

    return StreamingResponse(events(), media_type="text/event-stream")


@api.get("/reports/{job_id}/result")
async def wait(job_id: str, seconds: float = 10) -> Any:
    await found(job_id)
    try:
        return await app.wait(job_id, timeout=min(seconds, 30))
    except TimeoutError as error:
        raise HTTPException(504, "not ready: ask again") from error
    except JobFailed as error:
        raise HTTPException(409, str(error)) from error


@api.delete("/reports/{job_id}", status_code=202)
async def cancel(job_id: str) -> dict[str, Any]:
    await found(job_id)
    return shown(await app.cancel(job_id, "the client asked for it"))
