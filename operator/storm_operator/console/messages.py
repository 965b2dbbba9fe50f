"""A request to the API and its answer, without sockets."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from http import HTTPStatus

JSON = "application/json"


@dataclass(frozen=True, slots=True)
class Request:
    """`path` is as it was sent, with its escapes; `query` has the last value of each parameter; `token` is the bearer
    token, empty where there is none."""

    method: str
    path: str
    query: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""
    token: str = ""
    known_tag: str = ""


@dataclass(frozen=True, slots=True)
class Response:
    """`is_gzip`: `body` is compressed already. `tag` changes whenever the answer does; empty: never ask again by it."""

    status: HTTPStatus
    body: bytes
    content_type: str = JSON
    tag: str = ""
    is_gzip: bool = False


def tag_of(content: bytes) -> str:
    """Another one for any other content."""
    return hashlib.sha256(content).hexdigest()[:16]


class BadRequest(Exception):
    """The request is wrong; the message names the field, the value and what would be right."""

    def __init__(self, message: str, status: HTTPStatus = HTTPStatus.BAD_REQUEST) -> None:
        super().__init__(message)
        self.status = status
