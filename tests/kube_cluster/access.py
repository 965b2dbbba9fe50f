"""Keys, tokens and kubeconfig files: who may speak to the API server, and how."""

from __future__ import annotations

import json
import secrets
import subprocess
from pathlib import Path

from kube_cluster.errors import KubeClusterError
from kube_cluster.layout import KubeLayout

GROUPS = {
    "admin": "system:masters",
    "system:kube-controller-manager": "",
    "system:kube-scheduler": "",
    "system:kube-proxy": "",
    "system:node:node": "system:nodes",
    "coredns": "",
}
"""The users with a token of their own, each with its group; Kubernetes has roles bound to these names."""


def write_keys(layout: KubeLayout) -> None:
    """The API server's certificate, the key for ServiceAccounts, and a token for each user of the control plane."""
    layout.pki_dir.mkdir(mode=0o700, parents=True)
    _write_certificate(layout)
    _openssl("genrsa", "-out", str(layout.service_account_key), "2048")
    lines = [f'{secrets.token_hex(16)},{user},{user},"{group}"' for user, group in GROUPS.items()]
    layout.tokens_file.write_text("".join(f"{line}\n" for line in lines))


def token_of(layout: KubeLayout, user: str) -> str:
    """The token of one of `GROUPS`."""
    for line in layout.tokens_file.read_text().splitlines():
        token, name, *_ = line.split(",")
        if name == user:
            return token
    raise KubeClusterError(f"no token for user {user!r}: there are {', '.join(GROUPS)}")


def write_kubeconfigs(layout: KubeLayout) -> None:
    for user in GROUPS:
        write_kubeconfig(layout, layout.kubeconfig_of(user), token_of(layout, user))


def write_kubeconfig(layout: KubeLayout, file: Path, token: str, namespace: str = "default") -> Path:
    """A kubeconfig file for whoever has this token. JSON is YAML."""
    name = layout.name
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": name,
        "contexts": [{"name": name, "context": {"cluster": name, "user": name, "namespace": namespace}}],
        "clusters": [
            {"name": name, "cluster": {"server": layout.url, "certificate-authority": str(layout.ca_file)}},
        ],
        "users": [{"name": name, "user": {"token": token}}],
    }
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    file.write_text(json.dumps(config, indent=1))
    # Helm warns of a kubeconfig that others can read.
    file.chmod(0o600)
    return file


def _write_certificate(layout: KubeLayout) -> None:
    """One that is its own authority: whoever has it as CA trusts the API server, and nothing else."""
    hosts = ("localhost", "kubernetes.default.svc.cluster.local", "kubernetes.default.svc", "kubernetes.default")
    addresses = (layout.api_host, layout.api_service_ip)
    names = [*(f"DNS:{host}" for host in hosts), *(f"IP:{address}" for address in addresses)]
    _openssl(
        *("req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "3650", "-subj", "/CN=kubernetes"),
        *("-addext", f"subjectAltName={','.join(names)}"),
        *("-addext", "keyUsage=critical,digitalSignature,keyEncipherment,keyCertSign"),
        *("-keyout", str(layout.api_key), "-out", str(layout.ca_file)),
    )


def _openssl(*arguments: str) -> None:
    done = subprocess.run(["openssl", *arguments], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise KubeClusterError(f"openssl {' '.join(arguments)}: {done.stderr.strip()}")
