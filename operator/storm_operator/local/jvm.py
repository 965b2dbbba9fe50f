"""JVM options: small heaps, and start-up that costs as little CPU as can be had."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

COMMON = ("-XX:+UseSerialGC", "-Xshare:auto", "-XX:TieredStopAtLevel=1", "-Xss256k", "-XX:-UsePerfData")
DAEMON_OPTIONS = ("-XX:MaxMetaspaceSize=96m", "-XX:ReservedCodeCacheSize=32m")

LATE_C2 = (
    "-XX:Tier4InvocationThreshold=20000",
    "-XX:Tier4MinInvocationThreshold=3000",
    "-XX:Tier4CompileThreshold=40000",
)
"""C2 later than usual (5000, 600, 15000): while a worker starts, what C2 compiles is used once and costs a fifth of the
CPU of the whole start, on a machine that has one core. Code that stays hot still gets there."""


class Jvm(StrEnum):
    """The kinds of JVM in a Storm cluster; each has its own heap and its own archive of classes."""

    ZOOKEEPER = "zookeeper"
    NIMBUS = "nimbus"
    SUPERVISOR = "supervisor"
    WORKER = "worker"
    LOG_WRITER = "log-writer"


HEAP_MB: Mapping[Jvm, int] = {Jvm.ZOOKEEPER: 64, Jvm.NIMBUS: 160, Jvm.SUPERVISOR: 64, Jvm.LOG_WRITER: 16}


def daemon_options(kind: Jvm, class_data: str | None) -> tuple[str, ...]:
    return (f"-Xmx{HEAP_MB[kind]}m", *COMMON, *DAEMON_OPTIONS, *_given(class_data))


def log_writer_options(class_data: str | None) -> tuple[str, ...]:
    """The process between supervisor and worker: it starts the worker and copies what that prints into a file."""
    small = ("-XX:MaxMetaspaceSize=32m", "-XX:ReservedCodeCacheSize=8m")
    return (f"-Xmx{HEAP_MB[Jvm.LOG_WRITER]}m", *COMMON, *small, *_given(class_data))


def worker_options(heap_mb: int, fast_start: bool, class_data: str | None) -> tuple[str, ...]:
    """Workers run C2 unless `fast_start`: C1 alone halves their throughput."""
    compilers = ("-XX:TieredStopAtLevel=1",) if fast_start else LATE_C2
    return (
        f"-Xmx{heap_mb}m",
        f"-Xms{heap_mb // 2}m",
        "-XX:+UseSerialGC",
        "-Xshare:auto",
        "-XX:-UsePerfData",
        "-XX:MaxMetaspaceSize=128m",
        "-XX:ReservedCodeCacheSize=64m",
        *compilers,
        *_given(class_data),
    )


def _given(option: str | None) -> tuple[str, ...]:
    return (option,) if option else ()
