"""The example of the README: run it while `headrace worker jobs:app` runs beside it."""

from headrace import Headrace

app = Headrace()  # the file headrace.db; HEADRACE_URL names PostgreSQL or Redis instead


@app.task(max_attempts=5)
async def greet(name: str) -> str:
    return f"Hello, {name}!"


if __name__ == "__main__":
    job = greet.submit_sync("Ada")  # or, with an event loop: await greet.submit("Ada")
    print(app.sync.wait(job, timeout=30))
