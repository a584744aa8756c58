"""The web application: the JSON API, the static page, and the limits around them.

`application(opponents)` is an ASGI app. Its errors are JSON `{"error": one line}`: 404 an unknown player, 411 a body
without its length, 413 one over the limit, 422 a bad request, 500 a network whose outputs cannot be used or a worker
process that cannot be started, 503 too many waiting requests (with Retry-After). The libraries around it answer in
plain text: 400 a host that is not served, 503 too many connections. /docs describes the API without a CDN.
"""

from __future__ import annotations

import asyncio
import mimetypes
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from fastapi import FastAPI
from fastapi import Request as HttpRequest
from fastapi.exceptions import RequestValidationError
from fastapi.responses import FileResponse, JSONResponse, Response
from fastapi.staticfiles import StaticFiles
from starlette.exceptions import HTTPException
from starlette.middleware.trustedhost import TrustedHostMiddleware

import distill
from distill.web.messages import (
    Analysis,
    Catalogue,
    GameAnalysis,
    GameRequest,
    Move,
    Problem,
    Request,
    RequestError,
    next_position,
)
from distill.web.opponents import Opponents

PAGE = Path(__file__).parent / "page"
BODY_LIMIT = 4096
"""Largest body in bytes; a request with every field is below 700."""
HOSTS = ["127.0.0.1", "localhost"]
"""Default host names: a web site that points its own name at 127.0.0.1 is refused."""
HEADERS = {
    "content-security-policy": "default-src 'self'; img-src 'self' data:; frame-ancestors 'none'; base-uri 'none'",
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cache-control": "no-cache",  # revalidate: an upgraded page shows at once
}


def application(opponents: Opponents, hosts: Sequence[str] = HOSTS) -> FastAPI:
    """The app around these opponents, which are closed when it stops; it answers only to `hosts`."""

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        warming = asyncio.create_task(opponents.warm_up())
        yield
        warming.cancel()
        opponents.close()

    app = FastAPI(
        title="distill",
        summary="Connect 4 players choose and evaluate moves.",
        version=distill.__version__,
        lifespan=lifespan,
        docs_url=None,  # FastAPI's own come from a CDN; ours is page/docs.html
        redoc_url=None,
    )
    refusals: dict[int | str, dict[str, Any]] = {
        400: {"model": Problem, "description": "a body that is no text"},
        404: {"model": Problem, "description": "no such player"},
        411: {"model": Problem, "description": "a body without Content-Length"},
        413: {"model": Problem, "description": f"a body over {BODY_LIMIT} bytes"},
        422: {"model": Problem, "description": "no JSON, a bad position or too many simulations"},
        500: {"model": Problem, "description": "a network's outputs cannot be used, or the solver's process is dead"},
        503: {"model": Problem, "description": "too many requests wait; see Retry-After"},
    }

    @app.get("/api/v1/players")
    async def list_players() -> Catalogue:
        """The players and the limits."""
        return opponents.catalogue()

    @app.post("/api/v1/move", responses=refusals)
    async def move(request: Request) -> Move:
        """A player's move in a position, and the position after it."""
        position = request.position()
        (found,) = await opponents.analyse(request.player, [position], request.seed)
        return next_position(request, position, found.move)

    @app.post("/api/v1/analysis", responses=refusals)
    async def analysis(request: Request) -> Analysis:
        """A player's evaluation of each column: a network's policy, a search's visits, the solver's scores."""
        (found,) = await opponents.analyse(request.player, [request.position()], request.seed)
        return found

    @app.post("/api/v1/game", responses=refusals)
    async def game(request: GameRequest) -> GameAnalysis:
        """A player's evaluation of every position of a game, in one request: for a review."""
        found = await opponents.analyse(request.player, request.positions(), request.seed)
        return GameAnalysis(player=request.player, analyses=found)

    @app.get("/docs", include_in_schema=False)
    async def docs() -> FileResponse:
        return FileResponse(PAGE / "docs.html")

    @app.exception_handler(RequestError)
    async def refuse(_: Any, error: RequestError) -> JSONResponse:
        headers = {} if error.retry_after is None else {"Retry-After": str(error.retry_after)}
        return JSONResponse({"error": error.message}, error.status, headers)

    @app.exception_handler(RequestValidationError)
    async def invalid(_: Any, error: RequestValidationError) -> JSONResponse:
        return JSONResponse({"error": _first_problem(error)}, 422)

    @app.exception_handler(HTTPException)
    async def other(_: Any, error: HTTPException) -> JSONResponse:
        return JSONResponse({"error": str(error.detail)}, error.status_code, error.headers)

    mimetypes.add_type("text/javascript", ".js")  # some systems' tables say otherwise, and browsers insist
    app.mount("/", StaticFiles(directory=PAGE, html=True))

    @app.middleware("http")
    async def guard(request: HttpRequest, call_next: Callable[[HttpRequest], Awaitable[Response]]) -> Response:
        """Refuse bodies over the limit before they are read, and add headers."""
        if "transfer-encoding" in request.headers:  # in chunks, whose length is not known yet
            response: Response = JSONResponse({"error": "the request must have a Content-Length"}, 411)
        elif int(request.headers.get("content-length", 0)) > BODY_LIMIT:
            response = JSONResponse({"error": f"the body is over {BODY_LIMIT} bytes"}, 413, {"Connection": "close"})
        else:
            response = await call_next(request)
        response.headers.update(HEADERS)
        return response

    app.add_middleware(TrustedHostMiddleware, allowed_hosts=list(hosts))
    return app


def _first_problem(error: RequestValidationError) -> str:
    """The first problem and its field, in one line."""
    problem = error.errors()[0]
    field = ".".join(str(part) for part in problem["loc"] if part != "body")
    return " ".join(f"{field}: {problem['msg']}".removeprefix(": ").split())
