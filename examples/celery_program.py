"""A program as one writes it with Celery, in the words of Headrace: retries, countdown, chain, chord, beat.

@app.task(bind=True, max_retries=2)                  @app.task(max_attempts=3)
charge.apply_async((7,), countdown=60)               charge.options(delay="1m").submit(7)
chain(fetch.s(7), price.s()), chord([...], total.s())  app.chain, app.group
result.get(timeout=10), result.revoke()              app.wait(job, timeout=10), app.cancel(job)
"""

import asyncio
from datetime import timedelta

from headrace import Context, Headrace, TemporaryError, Worker
from headrace.clock import ManualClock

clock = ManualClock()  # so that a minute takes no time here; leave it out elsewhere
app = Headrace("memory:", clock=clock)


@app.task(max_attempts=3)
async def charge(ctx: Context, order: int) -> str:
    if ctx.attempt == 1:
        raise TemporaryError("the bank is down", retry_after=0)
    return f"charged order {order} at attempt {ctx.attempt}"


@app.task
async def fetch(order: int) -> list[int]:
    return [order, order + 1]


@app.task
async def price(items: list[int]) -> int:
    return 100 * len(items)


@app.task
async def total(prices: list[int]) -> int:
    return sum(prices)


async def main() -> None:
    async with app:
        work = Worker(app)
        later = await charge.options(delay="1m").submit(7)
        print("due now:", await work.drain())
        clock.advance(timedelta(minutes=1).total_seconds())
        print("a minute later:", await work.drain())
        print(await app.result(later))

        one = await app.chain(fetch.spec(7), price)
        many = await app.group([price.spec([7]), price.spec([8, 9])], then=total)
        unwanted = await charge.submit(8)
        await app.cancel(unwanted)
        await work.drain()
        print("chain:", await app.result(one), "group:", await app.result(many))
        print("revoked:", (await app.get(unwanted)).state)

        await app.schedule("nightly", "0 3 * * *", total.spec([1, 2]))
        print("beat:", [one.name for one in await (await app.manager()).schedules()])


asyncio.run(main())
