"""The page and its API over HTTP: a thread for each connection, nothing but the standard library."""

from __future__ import annotations

import ipaddress
import mimetypes
import socket
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler
from importlib.metadata import version
from importlib.resources import files
from importlib.resources.abc import Traversable
from urllib.parse import parse_qsl, urlsplit

from storm_operator.console.api import Api
from storm_operator.console.api_documents import Failure
from storm_operator.console.documents import squeezed, to_bytes, unsqueezed
from storm_operator.console.messages import JSON, Request, Response, tag_of
from storm_operator.console.openapi import openapi_text
from storm_operator.console.routes import PREFIX
from storm_operator.core.server_url import is_loopback
from storm_operator.http_listening import HttpServer

DEFAULT_PORT = 8088
LOOPBACK = "127.0.0.1"
STOP_LOOK_SECONDS = 0.05
"""So often it is looked whether the server is to end: nobody who stops it waits longer."""
MOST_BODY_BYTES = 1024
LEAST_SQUEEZED_BYTES = 1024
SAFETY = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
}


@dataclass(frozen=True, slots=True)
class Site:
    """What is served and who may ask. `checks_host`: only names that no stranger's DNS can point here are answered."""

    api: Api
    pages: Mapping[str, Response]
    checks_host: bool


def serve_page(api: Api, host: str, port: int) -> HttpServer:
    """Answer in threads of their own until the server is shut down; OSError where the address cannot be had.

    A browser takes a stranger's name that points to this machine for the stranger's own site. So where being reached
    is all that is asked of a caller (on loopback, or where approval asks no token), only addresses and this machine's
    own names are answered.
    """
    pages = static_pages() | {"/openapi.json": _page(openapi_text(version("storm-operator")).encode(), JSON)}
    needs_no_token = api.approver is not None and not api.approver.needs_token
    site = Site(api, pages, checks_host=is_loopback(host) or needs_no_token)
    server = _Server((host, port), type("SiteHandler", (PageHandler,), {"site": site}))
    threading.Thread(target=server.serve_forever, args=(STOP_LOOK_SECONDS,), name="page", daemon=True).start()
    return server


class _Server(HttpServer):
    request_queue_size = 32


def static_pages() -> dict[str, Response]:
    """The page's files by path, as they are in the package."""
    found: dict[str, Response] = {}

    def collect(folder: Traversable, path: str) -> None:
        for entry in folder.iterdir():
            if entry.is_dir():
                collect(entry, f"{path}{entry.name}/")
            else:
                kind = mimetypes.guess_type(entry.name)[0] or "application/octet-stream"
                found[path + entry.name] = _page(entry.read_bytes(), kind)

    collect(files("storm_operator.console") / "static", "/")
    return found | {"/": found["/index.html"]}


def _page(content: bytes, content_type: str) -> Response:
    return Response(HTTPStatus.OK, content, content_type, f'"{tag_of(content)}"')


def is_own_name(host_header: str) -> bool:
    """Whether a Host header is an address or a name of this machine: nothing that DNS elsewhere decides about."""
    try:
        name = urlsplit(f"//{host_header}").hostname or ""
    except ValueError:  # a bracket that is not closed, for one
        return False
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return name in ("localhost", socket.gethostname().lower())
    return True


def is_of(origin: str, host_header: str) -> bool:
    """Whether a page at that Origin was itself served under that Host header."""
    try:
        return urlsplit(origin).netloc == host_header
    except ValueError:
        return False


class PageHandler(BaseHTTPRequestHandler):
    """One connection; `site` is set by the class that is made for each server."""

    site: Site
    protocol_version = "HTTP/1.1"
    server_version = "storm-operator"
    sys_version = ""

    def do_GET(self) -> None:
        self._answer(with_body=True)

    def do_HEAD(self) -> None:
        self._answer(with_body=False)

    def do_POST(self) -> None:
        self._answer(with_body=True)

    def do_PUT(self) -> None:
        """Refused, as DELETE and PATCH, in the same form as all else: no program is to be told in HTML."""
        self._answer(with_body=True)

    def do_DELETE(self) -> None:
        self._answer(with_body=True)

    def do_PATCH(self) -> None:
        self._answer(with_body=True)

    def _answer(self, with_body: bool) -> None:
        response = self._refusal() or self._found()
        body, encoding = response.body, ""
        takes_gzip = "gzip" in self.headers.get("Accept-Encoding", "")
        if response.is_gzip and not takes_gzip:
            body = unsqueezed(body)
        elif response.is_gzip or (takes_gzip and len(body) >= LEAST_SQUEEZED_BYTES):
            body, encoding = (body if response.is_gzip else squeezed(body)), "gzip"
        self.send_response(response.status)
        headers = {"Content-Type": response.content_type, "Cache-Control": "no-cache", "Vary": "Accept-Encoding"}
        headers |= {"ETag": response.tag} if response.tag else {}
        headers |= {"Content-Encoding": encoding} if encoding else {}
        headers |= {"Connection": "close"} if self.close_connection else {}
        for name, value in (headers | SAFETY).items():
            self.send_header(name, value)
        if response.status is not HTTPStatus.NOT_MODIFIED:
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if with_body and response.status is not HTTPStatus.NOT_MODIFIED:
            self.wfile.write(body)

    def _refusal(self) -> Response | None:
        """Why this request is not looked at; None when it is."""
        host = self.headers.get("Host", "")
        if self.site.checks_host and not is_own_name(host):
            return self._refused(HTTPStatus.MISDIRECTED_REQUEST, f"Host is {host!r}: ask by address or localhost")
        if self._has_unread_body():
            return self._refused(HTTPStatus.BAD_REQUEST, "a body comes with POST alone, and with one Content-Length")
        if self.command != "POST":
            return None
        origin = self.headers.get("Origin")
        if origin is not None and not is_of(origin, host):
            return self._refused(HTTPStatus.FORBIDDEN, f"Origin is {origin!r}: only this page itself may ask this")
        if self.headers.get_content_type() != JSON:  # no form of another site can send that without being asked
            return self._refused(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, f"Content-Type must be {JSON}")
        length = self.headers.get("Content-Length", "")
        is_number = length.isascii() and length.isdigit() and len(length) <= len(str(MOST_BODY_BYTES))
        if not is_number or int(length) > MOST_BODY_BYTES:
            return self._refused(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"Content-Length must be up to {MOST_BODY_BYTES}")
        return None

    def _has_unread_body(self) -> bool:
        """Whether something would follow that nobody reads as this request's: it would be taken for the next one's."""
        lengths = self.headers.get_all("Content-Length", [])
        if "Transfer-Encoding" in self.headers or len(lengths) > 1:
            return True
        return self.command != "POST" and lengths not in ([], ["0"])

    def _refused(self, status: HTTPStatus, words: str) -> Response:
        self.close_connection = True  # the body, if there is one, is not read
        return Response(status, to_bytes(Failure(words)))

    def _found(self) -> Response:
        try:
            parts = urlsplit(self.path)
        except ValueError:  # an address with a bracket that is not closed, for one
            return self._refused(HTTPStatus.BAD_REQUEST, f"there is nothing at {self.path}")
        body = self.rfile.read(int(self.headers["Content-Length"])) if self.command == "POST" else b""
        tag = self.headers.get("If-None-Match", "")
        page = self.site.pages.get(parts.path)
        if page is not None and self.command in ("GET", "HEAD"):
            return Response(HTTPStatus.NOT_MODIFIED, b"", tag=tag) if tag == page.tag else page
        if not parts.path.startswith(PREFIX):
            return Response(HTTPStatus.NOT_FOUND, to_bytes(Failure(f"there is nothing at {parts.path}")))
        scheme, _, token = self.headers.get("Authorization", "").partition(" ")
        return self.site.api.answer(
            Request(
                method="GET" if self.command == "HEAD" else self.command,
                path=parts.path,
                query=dict(parse_qsl(parts.query)),
                body=body,
                token=token.strip() if scheme.lower() == "bearer" else "",
                known_tag=tag,
            )
        )

    def log_message(self, format: str, *arguments: object) -> None:  # noqa: A002 - as in the base class
        """The page asks every second: not worth a line each."""
