"""Reads and writes the configuration files of other programs. All functions block."""

from pathlib import Path

import msgspec

from qwendesk.core.files import reason_of, write_whole
from qwendesk.core.translation import tr
from qwendesk.server.setups.merging import NotMerged, merged
from qwendesk.server.setups.programs import Program, Target

_LARGEST_BYTES = 4 * 2**20


class Written(msgspec.Struct, frozen=True):
    file: Path
    backup: Path | None = None
    """The file as it was before; None if there was none, or it had the entries already."""


def content(file: Path) -> str:
    """Return the text of a file; "" if there is none. Raise NotMerged if it can't be read."""
    try:
        if not file.exists():
            return ""
        if file.stat().st_size > _LARGEST_BYTES:
            raise NotMerged(tr("{0} is too large for a file of settings.", file))
        return file.read_bytes().decode()
    except OSError as error:
        raise NotMerged(tr("{0} can't be read: {1}.", file, reason_of(error, file))) from error
    except UnicodeDecodeError as error:
        raise NotMerged(tr("{0} isn't in UTF-8.", file)) from error


def new_content(program: Program, file: Path, target: Target) -> str:
    """Return what the file will be with the entries in it. Raise NotMerged."""
    if program.only_shown:
        raise NotMerged(tr("QwenDesk doesn't write into the settings of {0}.", program.name))
    return merged(content(file), program.entries(target), program.kind, program.slot)


def write_entries(program: Program, file: Path, target: Target) -> Written:
    """Put the entries into the file, after keeping a copy of it. Raise NotMerged.

    A link is followed, so that it stays one. Only this user can read the file from then on, because of the key.
    """
    real = file.resolve()
    before, new = content(real), new_content(program, real, target)
    if new == before:
        return Written(file)
    try:
        backup = _keep(real, before) if real.exists() else None
        write_whole(real, new.encode(), mode=0o600)
    except OSError as error:
        raise NotMerged(tr("{0} can't be written: {1}.", file, reason_of(error, file))) from error
    return Written(file, backup)


def _keep(file: Path, text: str) -> Path:
    """Write a copy beside the file, under a name that is free."""
    backup, number = file.with_name(f"{file.name}.before-qwendesk"), 2
    while backup.exists():
        backup, number = file.with_name(f"{file.name}.before-qwendesk-{number}"), number + 1
    write_whole(backup, text.encode(), mode=0o600)
    return backup
