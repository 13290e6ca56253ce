"""An S3 server of the tests' own, in memory: `python tests/spark/s3_server.py PORT [REFUSED]`.

As much of the protocol as pyarrow and delta-rs speak: objects with ranges and conditional writes, listings,
uploads in parts, deletion of several. Signatures are not looked at. Every so many requests (REFUSED) are told
to come back later, as S3 does under load.
"""

from __future__ import annotations

import contextlib
import hashlib
import itertools
import re
import sys
import threading
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, unquote, urlsplit
from xml.sax.saxutils import escape, unescape

_objects: dict[str, bytes] = {}
_uploads: dict[str, dict[int, bytes]] = {}
_numbers = itertools.count(1)
_writing = threading.Lock()
_refused = 0

Reply = tuple[int, bytes, dict[str, str]]


def _etag(content: bytes) -> str:
    return f'"{hashlib.md5(content, usedforsecurity=False).hexdigest()}"'


def _xml(text: str) -> bytes:
    return f'<?xml version="1.0" encoding="UTF-8"?>{text}'.encode()


def _error(status: int, code: str) -> Reply:
    return status, _xml(f"<Error><Code>{code}</Code><Message>{code}</Message></Error>"), {}


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, format: str, *args: object) -> None:
        pass

    def _answer(self) -> None:
        body = self._body()
        parts = urlsplit(self.path)
        key = unquote(parts.path).strip("/")
        asked = parse_qs(parts.query, keep_blank_values=True)
        if _refused and next(_numbers) % _refused == 0:
            self._send(*_error(503, "SlowDown"))
        elif "list-type" in asked:
            self._send(*_list(key, asked))
        else:
            self._send(*getattr(self, f"_{self.command.lower()}")(key, asked, body))

    do_GET = do_HEAD = do_PUT = do_POST = do_DELETE = _answer  # noqa: N815 - the base class's names

    def _send(self, status: int, content: bytes, headers: dict[str, str]) -> None:
        self.send_response(status)
        for name, value in {"Content-Length": str(len(content)), **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            with contextlib.suppress(ConnectionError):  # whoever asked has seen enough
                self.wfile.write(content)

    def _body(self) -> bytes:
        if "chunked" in self.headers.get("Transfer-Encoding", ""):
            found = b""
            while size := int(self.rfile.readline().split(b";")[0], 16):
                found += self.rfile.read(size)
                self.rfile.readline()
            self.rfile.readline()
        else:
            found = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        return _unwrapped(found) if "x-amz-decoded-content-length" in self.headers else found

    # --- verbs -----------------------------------------------------------------------------------

    def _get(self, key: str, asked: dict[str, list[str]], _body: bytes) -> Reply:
        if "location" in asked:
            return 200, _xml("<LocationConstraint/>"), {}
        if key not in _objects:
            return _error(404, "NoSuchKey")
        content = _objects[key]
        headers = {
            "ETag": _etag(content),
            "Last-Modified": formatdate(usegmt=True),
            "Accept-Ranges": "bytes",
            "Content-Type": "application/octet-stream",
        }
        wanted = re.fullmatch(r"bytes=(\d*)-(\d*)", self.headers.get("Range", ""))
        if wanted is None:
            return 200, content, headers
        first, last = wanted.groups()
        start = int(first) if first else max(len(content) - int(last), 0)
        end = min(int(last) + 1, len(content)) if first and last else len(content)
        headers["Content-Range"] = f"bytes {start}-{end - 1}/{len(content)}"
        return 206, content[start:end], headers

    def _head(self, key: str, asked: dict[str, list[str]], body: bytes) -> Reply:
        if "/" not in key:
            return 200, b"", {}
        if key not in _objects:
            return 404, b"", {}
        _, content, headers = self._get(key, asked, body)
        # The length is the object's, though nothing follows.
        return 200, b"", {**headers, "Content-Length": str(len(_objects[key] if content else b""))}

    def _put(self, key: str, asked: dict[str, list[str]], body: bytes) -> Reply:
        if "/" not in key:
            return 200, b"", {}
        if "uploadId" in asked:
            _uploads[asked["uploadId"][0]][int(asked["partNumber"][0])] = body
            return 200, b"", {"ETag": _etag(body)}
        with _writing:
            if self.headers.get("If-None-Match") == "*" and key in _objects:
                return _error(412, "PreconditionFailed")
            matching = self.headers.get("If-Match")
            if matching is not None and _etag(_objects.get(key, b"")) != matching:
                return _error(412, "PreconditionFailed")
            source = self.headers.get("x-amz-copy-source")
            _objects[key] = body if source is None else _objects[unquote(source).strip("/")]
        return 200, b"", {"ETag": _etag(_objects[key])}

    def _post(self, key: str, asked: dict[str, list[str]], body: bytes) -> Reply:
        if "uploads" in asked:
            name = f"upload-{next(_numbers)}"
            _uploads[name] = {}
            told = f"<Key>{escape(key)}</Key><UploadId>{name}</UploadId>"
            answer = f"<InitiateMultipartUploadResult>{told}</InitiateMultipartUploadResult>"
            return 200, _xml(answer), {}
        if "uploadId" in asked:
            with _writing:  # asked again, it has been done
                parts = _uploads.pop(asked["uploadId"][0], None)
                if parts is not None:
                    _objects[key] = b"".join(parts[number] for number in sorted(parts))
            told = f"<Key>{escape(key)}</Key><ETag>{_etag(_objects[key])}</ETag>"
            answer = f"<CompleteMultipartUploadResult>{told}</CompleteMultipartUploadResult>"
            return 200, _xml(answer), {}
        bucket = key.split("/", maxsplit=1)[0]
        names = re.findall(r"<Key>(.*?)</Key>", body.decode())
        for name in names:
            _objects.pop(f"{bucket}/{unescape(name)}", None)
        told = "".join(f"<Deleted><Key>{name}</Key></Deleted>" for name in names)
        return 200, _xml(f"<DeleteResult>{told}</DeleteResult>"), {}

    def _delete(self, key: str, asked: dict[str, list[str]], _body: bytes) -> Reply:
        _uploads.pop(asked.get("uploadId", [""])[0], None)
        if "uploadId" not in asked:
            _objects.pop(key, None)
        return 204, b"", {}


def _list(bucket: str, asked: dict[str, list[str]]) -> Reply:
    prefix, delimiter = (asked.get(name, [""])[0] for name in ("prefix", "delimiter"))
    after = asked.get("start-after", [""])[0]
    found: list[str] = []
    folders: set[str] = set()
    for whole in sorted(_objects):
        name = whole.removeprefix(f"{bucket}/")
        if name == whole or not name.startswith(prefix) or name <= after:
            continue
        rest = name[len(prefix) :]
        if delimiter and delimiter in rest:
            folders.add(prefix + rest.split(delimiter, maxsplit=1)[0] + delimiter)
            continue
        content = _objects[whole]
        found.append(
            f"<Contents><Key>{escape(name)}</Key><Size>{len(content)}</Size>"
            f"<ETag>{escape(_etag(content))}</ETag>"
            "<LastModified>2026-01-01T00:00:00.000Z</LastModified></Contents>"
        )
    found += [
        f"<CommonPrefixes><Prefix>{escape(one)}</Prefix></CommonPrefixes>"
        for one in sorted(folders)
    ]
    told = f"<Name>{bucket}</Name><Prefix>{escape(prefix)}</Prefix><IsTruncated>false</IsTruncated>"
    answer = f"<ListBucketResult>{told}<KeyCount>{len(found)}</KeyCount>{''.join(found)}</ListBucketResult>"
    return 200, _xml(answer), {}


def _unwrapped(body: bytes) -> bytes:
    """What was sent in chunks with their signatures or checksums."""
    found = b""
    while body:
        head, _, body = body.partition(b"\r\n")
        size = int(head.split(b";")[0], 16)
        if not size:
            break
        found, body = found + body[:size], body[size + 2 :]
    return found


if __name__ == "__main__":
    _refused = int(sys.argv[2]) if len(sys.argv) > 2 else 0
    ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
