"""What is wrong with the options of standalone mode, or does nothing, or not yet."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import typer

from storm_operator.adapters.profile_file import ProfileFile
from storm_operator.core.learned_profile import NoProfile
from storm_operator.folders import is_folder


def check_paths(folder: Path, storm_home: Path | None, storm_conf_dir: Path | None) -> None:
    """A usage error where a folder is none, or one of two is given that belong together."""
    if not is_folder(folder):
        raise typer.BadParameter(f"FOLDER: {folder} is not a folder; give one that holds StormTopology YAML files")
    if (storm_home is None) != (storm_conf_dir is None):
        raise typer.BadParameter("--storm-home and --storm-conf-dir: give both, or none where nothing is submitted")
    for option, path in (("--storm-home", storm_home), ("--storm-conf-dir", storm_conf_dir)):
        if path is not None and not is_folder(path):
            raise typer.BadParameter(f"{option}: {path} is no folder")


def refuse_idle(context: typer.Context, names: tuple[str, ...], user: object, what_for: str) -> None:
    """A usage error for the first of these options that is given although there is no `user` of it."""
    sources = ((name, context.get_parameter_source(name)) for name in names)
    idle = next((name for name, source in sources if source is not None and source.name == "COMMANDLINE"), None)
    if idle and not user:
        raise typer.BadParameter(f"--{idle.replace('_', '-')} is {what_for}")


def say_what_is_no_profile_yet(profile: Path | None, say: Callable[[str], None]) -> None:
    """Of a `profile` that is given, and followed all the same: it may come later."""
    if profile is None:
        return
    try:
        profile.stat()
    except FileNotFoundError:
        say(f"--profile: {profile} is not there yet; it is followed once it is")
    except OSError as error:
        say(f"--profile: {profile} cannot be read yet ({error.strerror}); it is followed once it can")
    else:
        found = ProfileFile(profile, "").reading()
        if isinstance(found, NoProfile):
            say(f"--profile: {found.reason}; it is followed once it is a profile")
