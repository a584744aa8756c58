"""The web application: the JSON API and the static page.

`application(opponents)` is an ASGI app. Its errors are JSON `{"error": one line}`: 404 an unknown player, 422 a bad
request, 500 a player that cannot be loaded or whose outputs cannot be used, 503 too many waiting requests (with
Retry-After). /docs.html describes the API without a CDN.
"""

from __future__ import annotations

import html
import mimetypes
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from fastapi import APIRouter, FastAPI
from fastapi.exceptions import RequestValidationError
from fastapi.responses import HTMLResponse, JSONResponse
from fastapi.staticfiles import StaticFiles
from starlette.exceptions import HTTPException
from starlette.middleware.cors import CORSMiddleware
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.requests import Request as HTTPRequest

import distill
from distill.web.headers import WithHeaders
from distill.web.messages import Analysis, GameAnalysis, GameRequest, Problem, Request
from distill.web.opponents import Opponents
from distill.web.rooms import Rooms, routes

PAGE = Path(__file__).parent / "page"
PREVIEW = "preview.png"
REFUSALS: dict[int | str, dict[str, Any]] = {
    "4XX": {"model": Problem, "description": "no such player, or a bad request"},
    "5XX": {"model": Problem, "description": "the server is busy (503; see Retry-After), or the player failed"},
}


def application(
    opponents: Opponents, hosts: Sequence[str] = ("*",), origins: Sequence[str] = (), frames: Sequence[str] = ()
) -> FastAPI:
    """The app around these opponents, which are closed when it stops.

    Args:
      hosts: names and addresses at which it answers; `*`: at any.
      origins: web sites whose pages may use the API, such as https://example.org.
      frames: web sites whose pages may show this one in a frame.
    """

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        yield
        opponents.close()

    app = FastAPI(
        title="distill",
        summary="Connect 4 players choose and evaluate moves.",
        version=distill.__version__,
        lifespan=lifespan,
        docs_url=None,  # FastAPI's own come from a CDN; ours is page/docs.html
        redoc_url=None,
    )
    app.include_router(_routes(opponents))
    app.include_router(routes(Rooms()))
    _add_errors(app)
    _add_page(app)
    app.add_middleware(TrustedHostMiddleware, allowed_hosts=hosts)
    app.add_middleware(WithHeaders, frames=frames)
    if origins:
        app.add_middleware(
            CORSMiddleware, allow_origins=origins, allow_methods=["GET", "POST"], allow_headers=["Content-Type"]
        )
    return app


def _routes(opponents: Opponents) -> APIRouter:
    """The JSON API."""
    routes = APIRouter(prefix="/api/v1")

    @routes.get("/health")
    async def health() -> dict[str, str]:
        """Whether the server answers."""
        return {"status": "ok", "version": distill.__version__}

    routes.get("/players")(opponents.catalogue)

    @routes.post("/analysis", responses=REFUSALS)
    async def analysis(request: Request) -> Analysis:
        """A player's move, and its evaluation of each column: a policy, visits, or the solver's scores."""
        (result,) = await opponents.analyse(request.player, [request.position()], request.seed)
        return result

    @routes.post("/game", responses=REFUSALS)
    async def game(request: GameRequest) -> GameAnalysis:
        """A player's evaluation of every position of a game, in one request: for a review."""
        analyses = await opponents.analyse(request.player, request.positions(), request.seed)
        return GameAnalysis(player=request.player, analyses=analyses)

    return routes


def _add_errors(app: FastAPI) -> None:
    """Errors as JSON of one line: of several problems with a request the first, after the name of its field."""

    @app.exception_handler(RequestValidationError)
    async def invalid(_: Any, error: RequestValidationError) -> JSONResponse:
        problem = error.errors()[0]
        field = ".".join(str(part) for part in problem["loc"] if part != "body")
        return JSONResponse({"error": " ".join(f"{field}: {problem['msg']}".removeprefix(": ").split())}, 422)

    @app.exception_handler(HTTPException)
    async def other(_: Any, error: HTTPException) -> JSONResponse:
        return JSONResponse({"error": str(error.detail)}, error.status_code, error.headers)


def _add_page(app: FastAPI) -> None:
    """The static page, with the description of the API."""

    @app.get("/", include_in_schema=False)
    async def index(request: HTTPRequest) -> HTMLResponse:
        picture = html.escape(f"{request.base_url}{PREVIEW}")  # previews of links need the whole address
        page = (PAGE / "index.html").read_text(encoding="utf-8")
        return HTMLResponse(page.replace(f'content="{PREVIEW}"', f'content="{picture}"'))

    mimetypes.add_type("text/javascript", ".js")  # some systems' tables say otherwise, and browsers insist
    app.mount("/", StaticFiles(directory=PAGE, html=True))
