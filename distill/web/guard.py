"""ASGI middleware around the application: what is refused before it is read, and what every reply carries.

`Guard(app, names)` calls the application with the requests that it does not refuse. Its own refusals are JSON
`{"error": one line}`.
"""

from __future__ import annotations

import asyncio
import ipaddress
from collections.abc import Sequence
from contextlib import suppress
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

BODY_LIMIT = 4096
"""Largest body in bytes; a request with every field is below 700."""
HEADERS = {
    "content-security-policy": "default-src 'self'; img-src 'self' data:; base-uri 'none'; frame-ancestors ",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cache-control": "no-cache",  # revalidate: an upgraded page shows at once
}


class Guard:
    """The middleware. It answers at any IP address, at localhost, and at these names; the frames are sites."""

    def __init__(self, app: ASGIApp, names: Sequence[str] = (), frames: Sequence[str] = ()) -> None:
        self._app, self._names = app, {"localhost", *(name.lower() for name in names)}
        policy = HEADERS["content-security-policy"] + (" ".join(frames) or "'none'")
        self._headers = HEADERS | {"content-security-policy": policy}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(self._headers)
            await send(message)

        headers = Headers(scope=scope)
        refusal = self._refused_host(headers.get("host", "")) or _refused_body(headers)
        # FastAPI answers HEAD nowhere by itself: it gets the reply to GET, whose body the server leaves out.
        method = "GET" if scope["method"] == "HEAD" else scope["method"]
        with suppress(asyncio.CancelledError):  # the server stops
            await (refusal or self._app)({**scope, "method": method}, receive, send_with_headers)

    def _refused_host(self, header: str) -> JSONResponse | None:
        """A web site that points its own name at this machine (DNS rebinding) must not reach it; an address may.

        Every browser sends a host, so a request without one (a health check in HTTP/1.0) is not refused.
        """
        host = header  # unless it can be read, as `[` cannot
        try:
            host = urlsplit(f"//{header}").hostname or ""
            ipaddress.ip_address(host)
        except ValueError:
            if header and host not in self._names:
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
