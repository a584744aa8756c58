"""ASGI middleware around the application: what every reply carries, and HEAD."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress

from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

HEADERS = {
    "content-security-policy": "default-src 'self'; img-src 'self' data:; base-uri 'none'; frame-ancestors ",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cache-control": "no-cache",  # revalidate: an upgraded page shows at once
}


class WithHeaders:
    """The middleware; `frames` are the sites that may show the page in a frame."""

    def __init__(self, app: ASGIApp, frames: Sequence[str] = ()) -> None:
        policy = HEADERS["content-security-policy"] + (" ".join(frames) or "'none'")
        self._app, self._headers = app, HEADERS | {"content-security-policy": policy}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(self._headers)
            await send(message)

        # FastAPI answers HEAD nowhere by itself: it gets the reply to GET, whose body the server leaves out.
        if scope.get("method") == "HEAD":
            scope = {**scope, "method": "GET"}
        with suppress(asyncio.CancelledError):  # the server stops
            await self._app(scope, receive, send_with_headers)
