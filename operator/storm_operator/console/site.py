"""The page of one running operator: what feeds it, who may approve on it, and where it is served."""

from __future__ import annotations

import errno
import socket
from collections.abc import Callable
from dataclasses import dataclass, field

from storm_operator.approval_desk import ApprovalDesk
from storm_operator.console.api import Api
from storm_operator.console.approval import LoopApprover
from storm_operator.console.server import DEFAULT_PORT, LOOPBACK, serve_page
from storm_operator.console.watcher import Watcher
from storm_operator.core.host_and_port import host_and_port
from storm_operator.core.proposals import Proposals
from storm_operator.http_listening import HttpServer


@dataclass(frozen=True, slots=True)
class PageAddress:
    """Where the page is served. Port 0: any that is free."""

    port: int = DEFAULT_PORT
    host: str = LOOPBACK

    @property
    def url(self) -> str:
        return f"http://{host_and_port(self.host, self.port)}/"


class PageUnavailable(Exception):
    """The page cannot be served; the message says why."""


def open_page(api: Api, address: PageAddress) -> tuple[HttpServer, PageAddress]:
    """The server, in a thread of its own, and where it really is. Raises `PageUnavailable`."""
    try:
        server = serve_page(api, address.host, address.port)
    except OSError as error:
        no_such_host = isinstance(error, socket.gaierror) or error.errno == errno.EADDRNOTAVAIL
        raise PageUnavailable(
            f"the page cannot be served at {host_and_port(address.host, address.port)} "
            f"({error.strerror or error}): choose another {'--page-host' if no_such_host else '--page-port'}"
        ) from error
    return server, PageAddress(int(server.server_address[1]), address.host)


@dataclass(slots=True)
class SinglePage:
    """The page of an operator with one loop of its own, as standalone and simulations have: `watcher` listens to it.

    `proposals` is told by whoever has made the loop, which needs the watcher first. `is_ending`: whether its present
    pass is the last.
    """

    cluster: str
    may_approve: bool
    watcher: Watcher = field(default_factory=Watcher)
    proposals: Callable[[], Proposals] = Proposals
    is_ending: Callable[[], bool] = lambda: False
    approver: LoopApprover = field(init=False)

    def __post_init__(self) -> None:
        self.approver = LoopApprover(self._waiting, self.is_ending, self.watcher.on_verdict)

    def open(self, address: PageAddress) -> tuple[HttpServer, PageAddress]:
        api = Api(lambda: {self.cluster: self.watcher}, self.approver if self.may_approve else None)
        return open_page(api, address)

    def _waiting(self) -> Proposals:
        return self.proposals()

    def carry_out(self, desk: ApprovalDesk) -> None:
        """What people said on the page since the last time; to be called between passes."""
        self.approver.carry_out(desk)

    def end(self) -> tuple[str, ...]:
        """The last pass is over: what people say from now on is refused. What is left undone, in sentences."""
        return self.approver.end()
