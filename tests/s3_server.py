"""A server on loopback that speaks S3 (moto's), with a bucket."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from pyarrow import fs

BUCKET = "history"
KEYS = {"AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test", "AWS_REGION": "us-east-1"}


@contextmanager
def s3_server() -> Iterator[str]:
    """Its URL; the environment says where it is, and with which keys, as long as it runs."""
    from moto.server import ThreadedMotoServer

    server = ThreadedMotoServer("127.0.0.1", 0)
    server.start()
    host, port = server.get_host_and_port()
    with pytest.MonkeyPatch.context() as patch:
        for name, value in {**KEYS, "AWS_ENDPOINT_URL": f"http://{host}:{port}"}.items():
            patch.setenv(name, value)
        try:
            fs.S3FileSystem(
                endpoint_override=f"{host}:{port}", scheme="http", region="us-east-1", allow_bucket_creation=True
            ).create_dir(BUCKET)
            yield f"http://{host}:{port}"
        finally:
            server.stop()
