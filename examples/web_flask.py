"""Jobs behind a Flask application: everything through `app.sync`, since there is no event loop.

pip install flask
flask --app web_flask:web run &
headrace worker web_flask:app &
curl -s -X POST localhost:5000/thumbnails -d path=cat.png
"""

from typing import Any

from flask import Flask, request

from headrace import Headrace
from headrace.errors import JobNotFound

app = Headrace()
web = Flask(__name__)


@app.task(queue="images", max_attempts=5)
def make_thumbnail(path: str, width: int = 100) -> str:
    """A sync handler: it runs in a thread of the worker."""
    return f"{path}@{width}"


@web.post("/thumbnails")
def submit() -> tuple[dict[str, Any], int]:
    # Behind PostgreSQL, `app.sync.on(db.session).submit(…)` commits the job with the request's own rows.
    job = app.sync.submit(make_thumbnail, request.form["path"])
    return {"id": job.id, "state": job.state.value}, 202


@web.get("/thumbnails/<job_id>")
def look(job_id: str) -> tuple[dict[str, Any], int]:
    try:
        job = app.sync.get(job_id)
    except JobNotFound:
        return {"error": "no such thumbnail"}, 404
    return {"id": job.id, "state": job.state.value, "result": job.result}, 200
