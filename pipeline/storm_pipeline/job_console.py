"""Where the jobs say what they do and have found, for people: beside the tables, which are what they make."""

from __future__ import annotations

from typing import Any

from rich.console import Console, RenderableType
from rich.markup import escape
from rich.status import Status

from storm_operator.cli_output import give_up_stdout


class JobConsole(Console):
    """Stdout; where nobody reads it any more, as behind `| head`, the job goes on without it."""

    def on_broken_pipe(self) -> None:
        self.quiet = True
        give_up_stdout()

    def status(self, status: RenderableType, **more: Any) -> Status:
        if not self.is_terminal:
            return StatusInLines(status, self)
        return PlainStatus(_as_it_stands(status), console=self, **more)


def _as_it_stands(text: RenderableType) -> RenderableType:
    return escape(text) if isinstance(text, str) else text


class PlainStatus(Status):
    """Brackets in what it says are no markup."""

    def update(self, status: RenderableType | None = None, **more: Any) -> None:
        super().update(None if status is None else _as_it_stands(status), **more)


class StatusInLines(Status):
    """For logs, in which nothing moves: each state in a line of its own, as it begins. Bars are left out."""

    def __init__(self, status: RenderableType, console: Console) -> None:
        super().__init__("", console=console)
        self.status = status

    def start(self) -> None:
        self._say()

    def update(self, status: RenderableType | None = None, **_: Any) -> None:
        if status is not None and status != self.status:
            self.status = status
            self._say()

    def stop(self) -> None:
        """Nothing moves that would have to end."""

    def _say(self) -> None:
        if isinstance(self.status, str):
            self.console.print(f"{self.status} ...", soft_wrap=True, markup=False)


def job_console() -> Console:
    """Stdout as it is now. Names of components and clusters are anybody's: brackets in them are no markup."""
    return JobConsole(highlight=False, markup=False)
