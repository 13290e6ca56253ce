"""The example of the README: run it while `headrace worker jobs:app` runs beside it."""

from headrace import Headrace

app = Headrace()


@app.task(max_attempts=5)
async def greet(name: str) -> str:
    return f"Hello, {name}!"


if __name__ == "__main__":
    job = app.sync.submit(greet, "Ada")
    print(app.sync.wait(job, timeout=30))
