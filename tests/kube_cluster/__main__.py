"""`python -m kube_cluster build | images | packages | up | down | status`: thin; the work is in the other modules."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from kube_cluster.binaries import CONTROL_PLANE, NODE, PROGRAMS, ensure_programs, unbuilt
from kube_cluster.cluster import KubeCluster
from kube_cluster.errors import KubeClusterError
from kube_cluster.images import PIPELINE_IMAGE, build_image, build_project_images
from kube_cluster.prerequisites import missing_packages

app = typer.Typer(help="A real Kubernetes on this machine, for tests.", no_args_is_help=True, add_completion=False)
Name = Annotated[str, typer.Option(help="The cluster's name.")]
Node = Annotated[bool, typer.Option("--node", help="With a real node that runs pods; without: the API server alone.")]


@app.command()
def build(
    programs: Annotated[
        list[str] | None, typer.Argument(help=f"Of: {', '.join(PROGRAMS)} [default: those of the API server and helm].")
    ] = None,
    node: Node = False,
) -> None:
    """Build the programs of the cluster that are not in the cache yet: minutes the first time, then nothing."""
    with _plain_errors():
        wanted = programs or [*(NODE if node else CONTROL_PLANE), "helm"]
        unknown = [name for name in wanted if name not in PROGRAMS]
        if unknown:
            raise KubeClusterError(f"no program {unknown[0]!r}: there are {', '.join(PROGRAMS)}")
        ensure_programs(wanted, _say)
        left = unbuilt(wanted)
    _say("built: " + ", ".join(name for name in wanted if name not in left))


@app.command()
def images() -> None:
    """Build the project's container images, and print their archives."""
    with _plain_errors():
        for archive in (*build_project_images(_say).values(), build_image("pipeline", PIPELINE_IMAGE, _say)):
            typer.echo(str(archive))


@app.command()
def packages() -> None:
    """Print the Debian packages that a node and its images need and that are not installed."""
    for package in missing_packages():
        typer.echo(package)


@app.command()
def up(
    name: Name = "kube",
    node: Node = False,
    logs_dir: Annotated[Path | None, typer.Option(help="Where logs stay after `down`.")] = None,
) -> None:
    """Bring the cluster up, wait until it is ready, and say how to talk to it."""
    with _plain_errors():
        cluster = KubeCluster(name, node, logs_dir)
        cluster.up(say=_say)
        try:
            cluster.wait_ready()
        except BaseException:
            cluster.down()
            raise
    typer.echo(f"export KUBECONFIG={cluster.kubeconfig}")


@app.command()
def down(name: Name = "kube") -> None:
    """Stop the cluster, and sweep whatever a crash left of it."""
    with _plain_errors():
        KubeCluster(name).down()
    _say(f"cluster {name!r} is down")


@app.command()
def status(name: Name = "kube") -> None:
    """Address, daemons and where their logs are. Ends with code 1 when the cluster is not up."""
    with _plain_errors():
        cluster = KubeCluster.attach(name)
        daemons = cluster.daemons()
    table = Table("daemon", "pid", "starts", "log", box=None, header_style="bold", pad_edge=False)
    for daemon in daemons:
        table.add_row(daemon["name"], str(daemon["pid"]), str(daemon["starts"]), daemon["log"])
    console = Console()
    console.print(f"API server {cluster.url}, KUBECONFIG={cluster.kubeconfig}", soft_wrap=True, highlight=False)
    console.print(table)


def _say(sentence: str) -> None:
    typer.echo(sentence, err=True)


@contextmanager
def _plain_errors() -> Iterator[None]:
    """Print the message of an error that was foreseen, and end with code 1."""
    try:
        yield
    except KubeClusterError as reason:
        typer.echo(str(reason), err=True)
        raise typer.Exit(1) from None


if __name__ == "__main__":
    app(prog_name="python -m kube_cluster")
