"""Reports to the user about the chats file: what happened, in numbers, and what to do."""

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Literal

import msgspec

from qwendesk.core.number_format import show_date
from qwendesk.core.translation import mark, tr, tr_n
from qwendesk.store.backups import Backup
from qwendesk.store.recovery import Recovered

FileProblem = Literal["missing", "empty", "damaged"]
"""Why the chats file had to be recovered."""
_PROBLEMS: Mapping[FileProblem, str] = MappingProxyType(
    {
        "missing": mark("The chats file was missing."),
        "empty": mark("The chats file was empty."),
        "damaged": mark("The chats file was damaged."),
    }
)


class StoreReport(msgspec.Struct, frozen=True):
    """A message to the user about the chats file."""

    title: str
    sentence: str
    backup: str = ""
    """Name of a backup that can be restored instead; "" if none is offered."""


def recovery_report(recovered: Recovered, problem: FileProblem, path: Path, aside: Path | None) -> StoreReport:
    """Return the report of a recovery. `aside` is the folder that has the damaged file now."""
    parts = [
        tr(_PROBLEMS[problem]),
        tr("QwenDesk recovered {0} with {1}.", _chats(recovered.chats), _messages(recovered.messages)),
    ]
    chats, messages = recovered.chat_rows.from_backup, recovered.message_rows.from_backup
    if recovered.backup is not None and (messages or chats):
        made_at = _time_of(recovered.backup)
        parts.append(tr("From the backup of {0}: {1}, {2}.", made_at, _chats(chats), _messages(messages)))
    parts += _losses(recovered)
    if recovered.doubted_chats:
        parts.append(
            tr_n(
                "{0} chat may have lost what the model had read there, so its tools ask before each change.",
                "{0} chats may have lost what the model had read there, so their tools ask before each change.",
                recovered.doubted_chats,
            )
        )
    if aside is not None:
        parts.append(tr("The damaged file is kept in {0}. If nothing is missing, delete that folder.", aside))
    if recovered.backup is None:
        parts.append(
            tr(
                "There is no backup. If you have an older copy of {0}, close QwenDesk and put it in {1}.",
                path.name,
                path.parent,
            )
        )
    offered = recovered.backup.path.name if recovered.backup is not None and not recovered.is_complete else ""
    return StoreReport(tr("Chats recovered"), " ".join(parts), offered)


def restored_report(backup: Backup, folder: Path) -> StoreReport:
    sentence = tr(
        "Your chats are now those of the backup of {0}. The previous file is kept in {1}, in a folder whose name "
        "begins with “replaced”.",
        _time_of(backup),
        folder,
    )
    return StoreReport(tr("Backup restored"), sentence)


def _losses(recovered: Recovered) -> list[str]:
    """Return sentences about what could not be recovered."""
    if recovered.is_complete and not recovered.lost_titles:
        return [tr("Nothing was lost.")]
    sentences = []
    lost = []
    if recovered.lost_messages:
        lost.append(_messages(recovered.lost_messages))
    if recovered.lost_chats:
        lost.append(_chats(recovered.lost_chats))
    if lost:
        sentences.append(tr("Lost: {0}.", ", ".join(lost)))
    incomplete = []
    if recovered.message_rows.incomplete:
        incomplete.append(_messages(recovered.message_rows.incomplete))
    if recovered.chat_rows.incomplete:
        incomplete.append(_chats(recovered.chat_rows.incomplete))
    if incomplete:
        sentences.append(tr("Incomplete: {0}.", ", ".join(incomplete)))
    if recovered.lost_titles:
        sentences.append(tr("Without title, folder and settings: {0}.", _chats(recovered.lost_titles)))
    if not recovered.is_exact:
        sentences.append(tr("More messages may be lost, but QwenDesk can't tell how many."))
    return sentences


def _chats(count: int) -> str:
    return tr_n("{0} chat", "{0} chats", count)


def _messages(count: int) -> str:
    return tr_n("{0} message", "{0} messages", count)


def _time_of(backup: Backup) -> str:
    made_at = backup.made_at.astimezone()
    return f"{show_date(made_at.date())}, {made_at:%H:%M}"
