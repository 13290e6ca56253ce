"""Jobs in a Django project, here in one file: a view that stores a row, and a job with it or not at all.

On PostgreSQL, `app.sync.on(connection)` inside `transaction.atomic()` makes them one. On other stores, as
here, the job is submitted when the transaction has committed, under a key: a repeated request finds it.

    pip install django
    python web_django.py runserver &
    DJANGO_SETTINGS_MODULE=web_django headrace worker web_django:app &
    curl -s -X POST localhost:8000/orders/1
"""

import sys
from datetime import timedelta

import django
from django.conf import settings
from django.db import close_old_connections, connection, transaction
from django.http import HttpRequest, JsonResponse
from django.urls import path

from headrace import Headrace

if not settings.configured:
    settings.configure(
        DEBUG=True,
        ALLOWED_HOSTS=["*"],
        ROOT_URLCONF=__name__,
        USE_TZ=True,
        DATABASES={"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": "orders.db"}},
    )
    django.setup()

app = Headrace()


@app.task(queue="mail")
def confirm(order: int) -> str:
    # A handler runs in a thread of its own: what Django does between requests, it must do itself.
    close_old_connections()
    with connection.cursor() as cursor:
        cursor.execute("UPDATE orders SET confirmed = 1 WHERE number = %s", [order])
    return f"order {order} is confirmed"


def place(_: HttpRequest, number: int) -> JsonResponse:
    with transaction.atomic():
        with connection.cursor() as cursor:
            cursor.execute(
                "CREATE TABLE IF NOT EXISTS orders (number integer PRIMARY KEY, confirmed integer DEFAULT 0)"
            )
            cursor.execute("INSERT OR IGNORE INTO orders (number) VALUES (%s)", [number])
        once = confirm.options(key=f"order-{number}", key_hold=timedelta(hours=24))
        transaction.on_commit(lambda: app.sync.submit(once, number))
    return JsonResponse({"order": number}, status=202)


urlpatterns = [path("orders/<int:number>", place)]


if __name__ == "__main__":
    from django.core.management import execute_from_command_line

    execute_from_command_line(sys.argv)
