"""The page on this machine: a server on 127.0.0.1 that tells nobody else anything.

    address       http://127.0.0.1:PORT/TOKEN/: without the token, of 256 random bits, nothing is answered
    Host          must be this address: a name of somebody else's that resolves to 127.0.0.1 is refused
    Origin        must be this page: of every websocket, and of every request that has one
    files         a table of names, read once at the start: no path from outside reaches the file system
    messages      at most 512 kB, of known names and numbers (wire.py)
    work          one message a page at a time, two at once in all, each with a limit of time (compute.py);
                  a page that is closed stops what it has asked for
    headers       a content security policy under which the page loads nothing but its own files

Source of the checks: OWASP's cheat sheets on websockets and on DNS rebinding.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import secrets
import socket
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route, WebSocketRoute
from starlette.types import ASGIApp, Receive, Scope, Send
from starlette.websockets import WebSocket, WebSocketDisconnect, WebSocketState

from gramian import clock
from gramian.clock import Bell, OutOfTime
from gramian.errors import GramianError, InputError
from gramian.explore import wire
from gramian.explore.compute import SECONDS, answer
from gramian.explore.opening import Opened
from gramian.version import __version__

HOST = "127.0.0.1"
MOST_PAGES, AT_ONCE, REQUESTS = 8, 2, 40
POLICY_VIOLATED, TOO_MANY = 1008, 1013  # codes of closed websockets (RFC 6455)
KINDS = {".html": "text/html", ".css": "text/css", ".mjs": "text/javascript", ".svg": "image/svg+xml"}


class Gate:
    """Lets in what comes from this page alone: the right Host, Origin and token."""

    def __init__(self, app: ASGIApp, token: str, port: int) -> None:
        self.app, self.token = app, token
        self.hosts = {f"{name}:{port}" for name in (HOST, "localhost")}
        self.origins = {f"http://{host}" for host in self.hosts}
        sockets = " ".join(sorted(f"ws://{host}" for host in self.hosts))
        policy = (
            "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'"
            f" {sockets}; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
        )
        self.headers = {
            "content-security-policy": policy,
            "x-content-type-options": "nosniff",
            "x-frame-options": "DENY",
            "referrer-policy": "no-referrer",
            "cross-origin-opener-policy": "same-origin",
            "cross-origin-resource-policy": "same-origin",
            "cache-control": "no-store",
        }

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return
        why = self.refusal(scope)
        if why and scope["type"] == "websocket":
            await receive()
            await send({"type": "websocket.close", "code": POLICY_VIOLATED, "reason": why})
            return

        async def sealed(message: Any) -> None:
            if message["type"] == "http.response.start":
                own = [(name.encode(), value.encode()) for name, value in self.headers.items()]
                message = {**message, "headers": [*message.get("headers", []), *own]}
            await send(message)

        if why:
            await PlainTextResponse(f"{why}\n", 403)(scope, receive, sealed)
            return
        await self.app(scope, receive, sealed if scope["type"] == "http" else send)

    def refusal(self, scope: Scope) -> str:
        """Why this is not let in; empty where it is."""
        headers = Headers(scope=scope)
        if headers.getlist("host") not in [[host] for host in self.hosts]:
            return "This is not the address of the page."
        origins = headers.getlist("origin")
        if origins not in [[origin] for origin in self.origins] and (origins or scope["type"] == "websocket"):
            return "This comes from another page."
        token = scope["path"].split("/", 2)[1] if scope["path"].startswith("/") else ""
        if not secrets.compare_digest(token.encode(), self.token.encode()):
            return "The address is the one that gramian explore has printed, with its token."
        return ""


def page_files() -> dict[str, tuple[bytes, str]]:
    """The files of the page by name, each with its kind; the page itself says that the library is here."""
    found: dict[str, tuple[bytes, str]] = {}

    def collect(folder: Traversable, before: str) -> None:
        for entry in folder.iterdir():
            name = f"{before}{entry.name}"
            if entry.is_dir():
                collect(entry, f"{name}/")
                continue
            kind = KINDS.get(f".{entry.name.rpartition('.')[2]}")
            if kind is not None:
                found[name] = entry.read_bytes(), kind

    collect(files("gramian.explore") / "static", "")
    page = found["index.html"][0].replace(b'data-library="none"', b'data-library="here"')
    return {**found, "index.html": (page, KINDS[".html"]), "": (page, KINDS[".html"])}


class Explorer:
    """The page, its websocket, and the threads that work for it."""

    def __init__(self, opened: Opened, token: str, port: int) -> None:
        self.opened, self.token = opened, token
        self.served = page_files()
        self.threads = ThreadPoolExecutor(AT_ONCE, thread_name_prefix="gramian-explore")
        self.bells: set[Bell] = set()
        routes = [
            WebSocketRoute(f"/{token}/ws", self.talk),
            Route(f"/{token}/{{name:path}}", self.file, methods=["GET"]),
        ]
        self.app: ASGIApp = Gate(Starlette(routes=routes), token, port)

    async def file(self, request: Request) -> Response:
        found = self.served.get(request.path_params["name"])
        if found is None:
            return PlainTextResponse("There is no such file.\n", 404)
        return Response(found[0], media_type=found[1])

    async def talk(self, page: WebSocket) -> None:
        """One page: it is told what was opened, and answered message by message."""
        await page.accept()
        if len(self.bells) >= MOST_PAGES:
            await page.close(TOO_MANY, f"{MOST_PAGES} pages are open already: close one.")
            return
        bell = _Bell()
        self.bells.add(bell)
        work: asyncio.Task[None] | None = None
        try:
            hello = {"table": self.opened.table, "scene": self.opened.scene}
            await page.send_text(json.dumps({"hello": {**hello, "version": __version__}}))
            while True:
                text = await page.receive_text()
                try:
                    message = wire.read(text, self.opened.kernel)
                except GramianError as error:
                    await self._tell(page, {"id": None, "error": str(error)})
                    continue
                if message.ask == "stop":
                    bell.rung += 1
                elif work is not None and not work.done():
                    busy = "The page has asked while an answer was on its way."
                    await self._tell(page, {"id": message.id, "error": busy})
                else:
                    work = asyncio.create_task(self._work(page, message, bell))
        except (WebSocketDisconnect, KeyError):  # a KeyError: bytes, where text belongs
            pass
        finally:
            bell.rung += 1
            self.bells.discard(bell)
            if page.application_state is WebSocketState.CONNECTED:
                with contextlib.suppress(RuntimeError):
                    await page.close(POLICY_VIOLATED)

    async def _work(self, page: WebSocket, message: wire.Message, bell: Bell) -> None:
        loop = asyncio.get_running_loop()
        try:
            said = await loop.run_in_executor(self.threads, self._answered, message, bell)
        except RuntimeError:  # the threads are going home
            return
        await self._tell(page, said)

    def _answered(self, message: wire.Message, bell: Bell) -> dict[str, Any]:
        """On a thread: an answer, or what was wrong, whatever that is."""
        try:
            with clock.listening(bell):
                return {"id": message.id, "answer": answer(message, self.opened.along)}
        except GramianError as error:
            return {"id": message.id, "error": str(error)}
        except OutOfTime:
            return {
                "id": message.id,
                "error": f"This took longer than {SECONDS:.0f} seconds and was given up.",
            }
        except KeyboardInterrupt:
            return {"id": message.id, "error": "Stopped."}
        except MemoryError:
            return {"id": message.id, "error": "There is not enough memory for this. Use fewer points."}

    @staticmethod
    async def _tell(page: WebSocket, said: dict[str, Any]) -> None:
        try:
            text = json.dumps(said, allow_nan=False)
        except ValueError:
            text = json.dumps({"id": said["id"], "error": "The answer has numbers that are not finite."})
        with contextlib.suppress(RuntimeError, WebSocketDisconnect):  # the page has left
            await page.send_text(text)

    def stop(self) -> None:
        """What is at work hears of it at its next look at the clock."""
        for bell in self.bells:
            bell.rung += 1
        self.threads.shutdown(wait=False, cancel_futures=True)


class _Bell(Bell):
    """One of several, told apart by which it is."""

    __hash__ = object.__hash__
    __eq__ = object.__eq__


class _Server(uvicorn.Server):
    """Says when it listens."""

    def __init__(self, config: uvicorn.Config, ready: Callable[[], None]) -> None:
        super().__init__(config)
        self.ready = ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self.started:
            self.ready()


def listening_socket(port: int) -> socket.socket:
    """On loopback alone; port 0: one that is free."""
    found = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        found.bind((HOST, port))
    except OSError as error:
        found.close()
        why = error.strerror or error
        raise InputError(
            f"Port {port} cannot be used: {why}. Give another, or --port 0 for a free one."
        ) from None
    return found


def serve(opened: Opened, port: int, ready: Callable[[str], None]) -> None:
    """Serves the page until Ctrl-C; `ready` is told its address when it listens."""
    own = listening_socket(port)
    port, token = own.getsockname()[1], secrets.token_urlsafe(32)
    explorer = Explorer(opened, token, port)
    config = uvicorn.Config(
        explorer.app,
        log_level="critical",
        access_log=False,
        server_header=False,
        lifespan="off",
        limit_concurrency=REQUESTS,
        timeout_graceful_shutdown=2,
        ws="websockets-sansio",
        ws_max_size=wire.MOST_BYTES,
        ws_max_queue=4,
        ws_per_message_deflate=False,  # a small message cannot become a large one
        proxy_headers=False,
    )
    try:
        _Server(config, lambda: ready(f"http://{HOST}:{port}/{token}/")).run(sockets=[own])
    finally:
        explorer.stop()
        own.close()
