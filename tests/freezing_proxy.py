"""A proxy before the API server, whose watches can freeze: open, silent, without an error, as some networks do it."""

from __future__ import annotations

import contextlib
import json
import socket
import ssl
import threading
from pathlib import Path
from types import TracebackType

WATCH = b"watch=true"
CHUNK_BYTES = 65536


class FreezingProxy:
    """Plain HTTP on this side, TLS on the other. Only watches that are open when it freezes are silent from then on."""

    def __init__(self, kubeconfig: Path) -> None:
        self._config = json.loads(kubeconfig.read_text())
        cluster = self._config["clusters"][0]["cluster"]
        host, port = cluster["server"].removeprefix("https://").split(":")
        self._target = host, int(port)
        self._tls = ssl.create_default_context(cafile=cluster["certificate-authority"])
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._ended = threading.Event()
        self._watches: dict[socket.socket, bytes] = {}
        self._frozen: set[socket.socket] = set()

    def kubeconfig(self, file: Path) -> Path:
        """A file like the one that this was made from, through the proxy."""
        cluster = {"server": f"http://127.0.0.1:{self._listener.getsockname()[1]}"}
        name = self._config["clusters"][0]["name"]
        file.write_text(json.dumps({**self._config, "clusters": [{"name": name, "cluster": cluster}]}))
        return file

    def freeze(self) -> int:
        """Let nothing through to whoever watches now; how many watches that are."""
        self._frozen |= self._watches.keys()
        return len(self._frozen)

    def watches(self, plural: str) -> bool:
        """Whether a watch of that kind is open."""
        return any(plural.encode() in request for request in tuple(self._watches.values()))

    def __enter__(self) -> FreezingProxy:
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self._ended.set()
        self._listener.close()

    def _accept(self) -> None:
        while not self._ended.is_set():
            try:
                client, _ = self._listener.accept()
                server = self._tls.wrap_socket(socket.create_connection(self._target), server_hostname=self._target[0])
            except OSError:
                continue
            for pump in (self._requests, self._answers):
                threading.Thread(target=pump, args=(client, server), daemon=True).start()

    def _requests(self, client: socket.socket, server: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while content := client.recv(CHUNK_BYTES):
                if WATCH in content:
                    self._watches[client] = content
                server.sendall(content)
        self._end(client, server)

    def _answers(self, client: socket.socket, server: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while content := server.recv(CHUNK_BYTES):
                if client not in self._frozen:
                    client.sendall(content)
        if client not in self._frozen:
            self._end(client, server)

    def _end(self, *both: socket.socket) -> None:
        self._watches.pop(both[0], None)
        for one in both:
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
            one.close()
