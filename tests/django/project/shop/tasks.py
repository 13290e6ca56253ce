"""Tasks, as Django's documentation writes them."""

from importlib.util import find_spec
from typing import Any

if find_spec("django.tasks"):
    from django.tasks import task
else:  # before Django 6
    from django_tasks import task


@task
def total(*prices: int, currency: str = "EUR") -> str:
    return f"{sum(prices)} {currency}"


@task(priority=60, queue_name="mail")
async def greet(name: str) -> str:
    return f"Hello, {name}!"


@task(takes_context=True)
def which(context: Any) -> list[Any]:
    return [context.attempt, context.task_result.id]


@task
def fail(reason: str) -> None:
    raise LookupError(reason)
