"""A webhook from end to end: a job with a callback url, the signed request, and who receives it."""

import asyncio
import logging
import sys
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread

import msgspec

from headrace import JobSpec, PermanentError, connect, webhooks

SECRET = webhooks.new_secret()


class Receiver(BaseHTTPRequestHandler):
    """Somebody else's server. It has the secret, and any library for Standard Webhooks would do."""

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        try:
            webhooks.verify(dict(self.headers), body, [SECRET], datetime.now(UTC))
        except webhooks.InvalidSignature as error:
            self.send_error(400, error.message)
            return
        told = msgspec.json.decode(body)
        print("received:", told["type"], told["data"]["id"], told["data"]["result"])
        self.send_response(204)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


async def main(url: str) -> None:
    async with await connect("memory:") as jobs:
        await jobs.submit(JobSpec(id="report-1", type="report", callback_url=url))
        (report,) = await jobs.claim("worker-1")
        await jobs.complete(report.id, report.token, {"pages": 12})

        # The delivery is a job, too: stored with the report, released by its end.
        (delivery,) = await jobs.claim("worker-1", queues=[webhooks.QUEUE])
        print("to deliver:", ", ".join(delivery.tags))
        try:
            await webhooks.deliver(jobs, delivery, secrets=[SECRET])
        except PermanentError as error:
            print("refused:", error.code)

        # This receiver is on this very host, which must be allowed by name.
        sent = await webhooks.deliver(
            jobs, delivery, secrets=[SECRET], allow_private=["127.0.0.0/8"]
        )
        await jobs.complete(delivery.id, delivery.token, sent)
        print("delivered:", sent["status"])


logging.basicConfig(stream=sys.stdout, format="the operator sees: %(message)s")
server = HTTPServer(("127.0.0.1", 0), Receiver)
Thread(target=server.serve_forever, daemon=True).start()
asyncio.run(main(f"http://127.0.0.1:{server.server_port}/hooks"))
server.shutdown()
server.server_close()
