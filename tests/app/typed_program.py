"""A program as users write it, for type checkers: what they must know, and mistakes they must find.

`make check` reads it with mypy, and `test_types.py` with pyright: an `ignore` that hides no mistake is an
error, too.
"""

from __future__ import annotations

from typing import assert_type

from headrace import Context, Headrace, Job

app = Headrace("memory:")


@app.task
async def greet(name: str) -> str:
    return f"Hello, {name}!"


@app.task(queue="sums")
def add(a: int, b: int) -> int:
    return a + b


@app.task
async def resize(context: Context, path: str, width: int = 100) -> list[str]:
    return [path, str(width), context.job.id]


async def known() -> None:
    job = await greet.submit("Ada")
    assert_type(job, Job[str])
    assert_type(await app.wait(job), str)
    assert_type(await app.result(await add.submit(1, 2)), int)
    assert_type(await app.submit(resize, "a.png", width=5), Job[list[str]])
    assert_type(await app.get(job), Job[str])
    later = greet.options(delay="5m", queue="mail", priority="high", on_success=add)
    assert_type(await later.submit("Ada"), Job[str])


def known_without_a_loop() -> None:
    job = app.sync.submit(add, 1, 2)
    assert_type(job, Job[int])
    assert_type(add.submit_sync(1, 2), Job[int])
    assert_type(greet.options(key="once").submit_sync("Ada"), Job[str])
    assert_type(app.sync.wait(job, timeout=30), int)
    assert_type(app.sync.on(object()).submit(greet, "Ada"), Job[str])
    for found in app.sync.find(tasks=[greet]):
        assert_type(found.id, str)


async def mistakes() -> None:
    await greet.submit(3)  # type: ignore[call-overload]
    await add.submit(1)  # type: ignore[call-arg]
    await resize.submit("a.png", wide=5)  # type: ignore[call-overload]
    await app.submit(greet, 3)  # type: ignore[call-overload]
    await app.submit(add, 1, b="2")  # type: ignore[arg-type]
    (await app.wait(await greet.submit("Ada"))) + 1  # type: ignore[operator]
    app.sync.submit(greet, "x", "y")  # type: ignore[call-overload]
    app.sync.wait(app.sync.submit(add, 1, 2)).upper()  # type: ignore[attr-defined]
    app.sync.submitt(greet, "x")  # type: ignore[attr-defined]
    app.sync.on(object()).submit(add, "x", 2)  # type: ignore[call-overload]
    greet.submit_sync(3)  # type: ignore[call-overload]
    greet.options(quueue="mail")  # type: ignore[call-arg]
    greet.options(max_attempts="five")  # type: ignore[arg-type]
    app.task(dealy=5)  # type: ignore[call-overload]
    app.task(queue=5)  # type: ignore[call-overload]
    greet.delay("Ada")  # type: ignore[attr-defined]
