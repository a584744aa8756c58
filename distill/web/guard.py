"""ASGI middleware around the application: what is refused before it is read, and what every reply carries.

`Guard(app, names)` reads a request's body, calls the application, and cancels it if the client disconnects. Its own
refusals are JSON `{"error": one line}`.
"""

from __future__ import annotations

import asyncio
import ipaddress
from collections.abc import Sequence
from typing import Any
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

BODY_LIMIT = 4096
"""Largest body in bytes; a request with every field is below 700."""
HEADERS = {
    "content-security-policy": "default-src 'self'; img-src 'self' data:; frame-ancestors 'none'; base-uri 'none'",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cache-control": "no-cache",  # revalidate: an upgraded page shows at once
}


class Guard:
    """The middleware. It answers at any IP address, at localhost, and at these names."""

    def __init__(self, app: ASGIApp, names: Sequence[str] = ()) -> None:
        self._app, self._names = app, {"localhost", *(name.lower() for name in names)}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        is_complete = asyncio.Event()

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(HEADERS)
            elif scope["method"] == "HEAD":
                message["body"] = b""
            await send(message)
            if message["type"] == "http.response.body" and not message.get("more_body"):
                is_complete.set()

        headers = Headers(scope=scope)
        if refusal := self._refused_host(headers.get("host", "")) or _refused_body(headers):
            await refusal(scope, receive, send_with_headers)
        else:
            try:
                body = await Request(scope, receive).body()
            except ClientDisconnect:
                return
            # FastAPI answers HEAD nowhere by itself: it gets the reply to GET, without its body.
            method = "GET" if scope["method"] == "HEAD" else scope["method"]
            leaving = asyncio.ensure_future(receive())  # after the body, the next message is the disconnect
            answer = self._app({**scope, "method": method}, _replay(body, leaving), send_with_headers)
            await _unless_left(asyncio.ensure_future(answer), leaving, is_complete)

    def _refused_host(self, header: str) -> JSONResponse | None:
        """A web site that points its own name at this machine (DNS rebinding) must not reach it; an address may."""
        try:
            host = urlsplit(f"//{header}").hostname or ""
            ipaddress.ip_address(host)
        except ValueError:
            if host not in self._names:
                line = f"this server does not answer at {host[:80]!r}; --allow-host {host[:80]} allows it"
                return JSONResponse({"error": line}, 400)
        return None


def _refused_body(headers: Headers) -> JSONResponse | None:
    if "transfer-encoding" in headers:  # in chunks, whose length is not known yet
        return JSONResponse({"error": "the request must have a Content-Length"}, 411)
    length = int(headers.get("content-length", 0))
    if length > BODY_LIMIT:
        return JSONResponse({"error": f"the body is over {BODY_LIMIT} bytes"}, 413, {"Connection": "close"})
    kind = headers.get("content-type", "").partition(";")[0].strip().lower()
    if length and kind != "application/json":
        line = f"the body must be JSON, with the header Content-Type: application/json, not {kind[:80] or 'none'}"
        return JSONResponse({"error": line}, 415)
    return None


def _replay(body: bytes, leaving: asyncio.Future[Message]) -> Receive:
    """A `receive` that gives a body that has been read, and then the disconnect, when it comes."""
    messages = iter([{"type": "http.request", "body": body, "more_body": False}])

    async def receive() -> Message:
        for message in messages:
            return message
        await asyncio.wait({leaving})
        return leaving.result()

    return receive


async def _unless_left(answering: asyncio.Future[None], leaving: asyncio.Future[Message], done: asyncio.Event) -> None:
    """Wait for the answer. If the client disconnects before its end, cancel it, so that queued work is dropped."""
    both: set[asyncio.Future[Any]] = {answering, leaving}
    try:
        await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
    finally:
        if not done.is_set():
            answering.cancel()  # without effect on a task that is done
    try:
        await answering
    except asyncio.CancelledError:
        if (task := asyncio.current_task()) and task.cancelling():
            raise
    finally:
        leaving.cancel()
