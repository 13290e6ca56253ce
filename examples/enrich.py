"""A DataFrame through a flaky web service, under a rate limit: every row comes back exactly once.

The service is here, too: it answers some requests with 500, some slowly, and with 429 whoever asks too
fast. Needs headrace[spark]. Arguments: how many rows (300), how many requests per second (50).
"""

import json
import random
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request
from collections import Counter, deque
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import ClassVar

from headrace import Headrace, TemporaryError, WorkerSettings
from headrace.limits import QueueLimits, Rate
from headrace.retry import Exponential
from headrace.spark import enrich, session

ROWS, RATE = (int(one) for one in (sys.argv[1:] or ["300", "50"]))
ALLOWED = RATE + RATE // 2
"""Requests that the service answers in any second. Ours arrive a little later than they start."""


class Service(BaseHTTPRequestHandler):
    """Somebody else's service, which has its limits, and bad days."""

    protocol_version = "HTTP/1.1"
    answers: ClassVar[Counter[int]] = Counter()
    served: ClassVar[Counter[str]] = Counter()
    recent: ClassVar[deque[float]] = deque()
    lock = threading.Lock()
    dice = random.Random(7)

    def do_GET(self) -> None:
        city = self.path.rpartition("/")[2]
        with self.lock:
            now = time.monotonic()
            while self.recent and now - self.recent[0] > 1:
                self.recent.popleft()
            self.recent.append(now)
            mood = self.dice.random()
            status = 429 if len(self.recent) > ALLOWED else 500 if mood < 0.15 else 200
            self.answers[status] += 1
            self.served[city] += status == 200
        if mood > 0.9:
            time.sleep(0.3)
        body = json.dumps({"city": city, "degrees": len(city)}).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


server = ThreadingHTTPServer(("127.0.0.1", 0), Service)
threading.Thread(target=server.serve_forever, daemon=True).start()
folder = tempfile.mkdtemp(prefix="headrace-enrich-")
app = Headrace(f"sqlite:///{folder}/jobs.db")


@app.task(queue="weather", max_attempts=10, retry=Exponential(initial=0.05, cap=1.0))
def weather(city: str) -> dict[str, str | int]:
    """One request. What may work later is tried again later."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{server.server_port}/{city}") as answer:
            found: dict[str, str | int] = json.load(answer)
            return found
    except urllib.error.HTTPError as error:
        error.close()
        raise TemporaryError(f"the service answered {error.code}") from error


spark = session(master="local[2,3]", app_name="enrich")
cities = spark.createDataFrame([(n, f"city-{n}") for n in range(ROWS)], "id int, city string")

for turn in ("first", "second"):
    began, asked = time.monotonic(), Service.answers.total()
    enriched = enrich(
        cities,
        weather,
        key="id",
        name="weather-today",
        schema="city string, degrees int",
        limits=QueueLimits(concurrency=20, rate=Rate(RATE, burst=5)),
        workers=WorkerSettings(concurrency=20, poll_seconds=0.1),
        poll_seconds=0.2,
    )
    rows = enriched.collect()
    asked = Service.answers.total() - asked
    print(f"the {turn} time: {len(rows)} rows came back, after {asked} requests")
    if turn == "first":
        rate = asked / (time.monotonic() - began)
        assert rate < 1.2 * RATE, rate
        assert Service.answers[500] > 0

assert sorted(row["id"] for row in rows) == list(range(ROWS))
assert all(row["result"]["city"] == row["city"] and row["error"] is None for row in rows)
tries = Counter(row["attempts"] for row in rows)
print(f"each row exactly once: {len({row['id'] for row in rows}) == len(rows) == ROWS}")
print(f"some were tried again: {max(tries) > 1}")
print(f"every city was served once: {set(Service.served.values()) == {1}}")
print(f"the service answered: {dict(sorted(Service.answers.items()))}")
spark.stop()
server.shutdown()
server.server_close()
for path in Path(folder).iterdir():
    path.unlink()
Path(folder).rmdir()
