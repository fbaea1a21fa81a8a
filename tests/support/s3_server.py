"""A small S3: the requests that a table needs, over real HTTP, with answers that can be made to fail."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import ClassVar
from urllib.parse import parse_qs, unquote, urlsplit
from xml.etree import ElementTree
from xml.sax.saxutils import escape


@dataclass
class S3Bucket:
    """What is stored, and how the next PUTs fail.

    Attributes:
        objects: Key -> bytes.
        conditional: Whether `If-None-Match` is known; otherwise it is answered 501.
        fault: None; a status to answer PUTs with; `"drop"`: cut the connection; `"lose"`: store, then cut it.
        puts: Keys of all PUT requests.
        denied: Whether every request is answered 403.
    """

    objects: dict[str, bytes] = field(default_factory=dict)
    conditional: bool = True
    fault: int | str | None = None
    puts: list[str] = field(default_factory=list)
    denied: bool = False
    lock: threading.Lock = field(default_factory=threading.Lock)


class _Requests(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    bucket: ClassVar[S3Bucket]

    def parse_request(self) -> bool:
        """Denies before anything is looked at; whoever is denied sends nothing more on this connection."""
        if not super().parse_request():
            return False
        if self.bucket.denied:
            self.close_connection = True
            self._error(403, "AccessDenied")
            return False
        return True

    def log_message(self, *_: object) -> None:
        """Silent."""

    def _key(self) -> str:
        return unquote(urlsplit(self.path).path).split("/", 2)[2]

    def _answer(self, status: int, body: bytes = b"", **headers: str) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def _error(self, status: int, code: str) -> None:
        self._answer(status, f"<Error><Code>{code}</Code></Error>".encode())

    def _hang_up(self) -> None:
        self.close_connection = True
        self.connection.close()

    def do_PUT(self) -> None:
        data = self.rfile.read(int(self.headers["Content-Length"] or 0))
        source = self.headers["x-amz-copy-source"]
        bucket, key, conditional = self.bucket, self._key(), self.headers["If-None-Match"] == "*"
        with bucket.lock:
            bucket.puts.append(key)
            if isinstance(bucket.fault, int):
                return self._error(bucket.fault, "Fault")
            if bucket.fault == "drop":
                return self._hang_up()
            if conditional and not bucket.conditional:
                return self._error(501, "NotImplemented")
            if conditional and key in bucket.objects:
                return self._error(412, "PreconditionFailed")
            if source is not None:
                copied = bucket.objects.get(unquote(source).lstrip("/").split("/", 1)[1])
                if copied is None:
                    return self._error(404, "NoSuchKey")
                data = copied
            bucket.objects[key] = data
        if bucket.fault == "lose":
            return self._hang_up()
        if source is not None:
            return self._answer(200, b'<CopyObjectResult><ETag>"1"</ETag></CopyObjectResult>')
        return self._answer(200, ETag='"1"')

    def do_GET(self) -> None:
        url = urlsplit(self.path)
        query = {name: values[0] for name, values in parse_qs(url.query, keep_blank_values=True).items()}
        if "list-type" in query:
            return self._list(query)
        data = self.bucket.objects.get(self._key())
        if data is None:
            return self._error(404, "NoSuchKey")
        headers = {"ETag": '"1"', "Last_Modified": "Fri, 01 Nov 2024 10:00:00 GMT"}
        if (wanted := self.headers["Range"]) is None:
            return self._answer(200, data, **headers)
        start, end = (int(part) for part in wanted.removeprefix("bytes=").split("-"))
        if start >= len(data):
            return self._error(416, "InvalidRange")
        part = data[start : end + 1]
        return self._answer(206, part, Content_Range=f"bytes {start}-{start + len(part) - 1}/{len(data)}", **headers)

    do_HEAD = do_GET

    def do_DELETE(self) -> None:
        self.bucket.objects.pop(self._key(), None)
        self._answer(204)

    def do_POST(self) -> None:
        root = ElementTree.fromstring(self.rfile.read(int(self.headers["Content-Length"])))
        keys = [node.text or "" for node in root.iter() if node.tag.rpartition("}")[2] == "Key"]
        for key in keys:
            self.bucket.objects.pop(key, None)
        deleted = "".join(f"<Deleted><Key>{escape(key)}</Key></Deleted>" for key in keys)
        self._answer(200, f"<DeleteResult>{deleted}</DeleteResult>".encode())

    def _list(self, query: dict[str, str]) -> None:
        prefix, after, delimiter = query.get("prefix", ""), query.get("start-after", ""), query.get("delimiter")
        contents, prefixes = [], set()
        for key in sorted(self.bucket.objects):
            if not key.startswith(prefix) or key <= after:
                continue
            if delimiter and delimiter in key[len(prefix) :]:
                prefixes.add(prefix + key[len(prefix) :].split(delimiter)[0] + delimiter)
                continue
            contents.append(
                f"<Contents><Key>{escape(key)}</Key><LastModified>2024-11-01T10:00:00.000Z</LastModified>"
                f"<ETag>1</ETag><Size>{len(self.bucket.objects[key])}</Size></Contents>"
            )
        common = "".join(f"<CommonPrefixes><Prefix>{escape(p)}</Prefix></CommonPrefixes>" for p in sorted(prefixes))
        self._answer(200, f"<ListBucketResult>{''.join(contents)}{common}</ListBucketResult>".encode())


@contextmanager
def serve_s3(bucket: S3Bucket) -> Iterator[str]:
    """Serves the bucket under any name; gives the endpoint."""
    requests = type("Requests", (_Requests,), {"bucket": bucket})
    server = ThreadingHTTPServer(("127.0.0.1", 0), requests)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
