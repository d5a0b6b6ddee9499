"""What the list of downloads says, made from frozen values. No widgets here."""

from collections.abc import Sequence
from pathlib import PurePath
from typing import Final, Literal

from qwendesk.core.units import show_bytes
from qwendesk.hub.network import Trouble
from qwendesk.hub.queue_state import DownloadItem, Kept
from qwendesk.services.models.downloads import DownloadsState
from qwendesk.ui.kit.text import tr, tr_n

NextStep = Literal["retry", "page", "token", "folders", "online"]

_STEPS: Final[dict[Trouble, tuple[NextStep, ...]]] = {
    "gated": ("page", "token", "retry"),
    "denied": ("token", "page", "retry"),
    "not_found": ("page", "retry"),
    "no_space": ("retry", "folders"),
    "disk": ("retry", "folders"),
    "offline": ("online",),
}


def next_steps(trouble: Trouble | None) -> tuple[NextStep, ...]:
    """What a person may do about it, the likeliest first."""
    return _STEPS.get(trouble, ("retry",)) if trouble is not None else ("retry",)


def step_text(step: NextStep) -> tuple[str, str]:
    """A button's text and tooltip."""
    return {
        "retry": (tr("Try again"), tr("Go on with what is there")),
        "page": (tr("Open its page"), tr("Open the repository in your browser")),
        "token": (tr("Access token…"), tr("Enter a token of yours in the settings")),
        "folders": (tr("Model folders…"), tr("Choose another folder in the settings")),
        "online": (tr("Go online"), tr("Allow connections again")),
    }[step]


def name_of(kept: Kept) -> str:
    """The model's file name."""
    return PurePath(kept.files[0].target).name


def what_it_brings(kept: Kept) -> str:
    """ "unsloth/Qwen3.5-4B-GGUF · 2 parts · with picture file"."""
    first = kept.files[0].file
    names = [PurePath(each.target).name.lower() for each in kept.files]
    n_pictures = sum("mmproj" in name for name in names[1:])
    n_parts = len(names) - n_pictures
    parts = [
        first.repo,
        tr_n("{0} part", "{0} parts", n_parts) if n_parts > 1 else "",
        tr("with picture file") if n_pictures else "",
    ]
    return " · ".join(part for part in parts if part)


def chip_of(item: DownloadItem, *, is_offline: bool) -> tuple[str, str]:
    """The state in one word, and its tone."""
    match item.kept.state:
        case "done":
            return tr("Finished"), "good"
        case "failed":
            return tr("Failed"), "bad"
        case "paused":
            return tr("Paused"), "plain"
        case "queued":
            return (tr("Offline"), "warn") if is_offline else (tr("Waiting"), "plain")
        case _:
            words = {"checking": tr("Checking"), "waiting": tr("Trying again")}
            return words.get(item.phase, tr("Downloading")), "warn" if item.phase == "waiting" else "info"


def progress_text(item: DownloadItem) -> str:
    """ "3.2 GB of 19.7 GB · 48 MB/s · 5 min left"; what is not known is left out."""
    whole = show_bytes(item.kept.n_bytes)
    if item.kept.state == "done":
        return whole
    parts = [tr("{0} of {1}", show_bytes(item.n_done), whole)]
    if item.kept.state == "running" and item.phase == "downloading":
        parts += _pace(item.bytes_per_s, item.seconds_left)
    return " · ".join(parts)


def total_text(state: DownloadsState) -> str:
    """ "3 downloads · 12.4 GB of 45.0 GB · 48 MB/s · 12 min left"."""
    total, unfinished = state.total, len(state.unfinished)
    if not unfinished:
        return tr("All downloads are finished")
    parts = [tr_n("{0} download", "{0} downloads", unfinished)]
    parts.append(tr("{0} of {1}", show_bytes(total.n_done), show_bytes(total.n_bytes)))
    parts += _pace(total.bytes_per_s, total.seconds_left)
    return " · ".join(parts)


def badge_text(items: Sequence[DownloadItem]) -> str:
    """What the rail's Models entry says of them: how many are not done, "" for none."""
    count = sum(item.kept.state != "done" for item in items)
    return str(count) if count else ""


def left_text(seconds: float) -> str:
    """ "under a minute left", "5 min left", "2 h 5 min left"."""
    minutes = round(seconds / 60)
    if minutes < 1:
        return tr("under a minute left")
    hours, rest = divmod(minutes, 60)
    return tr("{0} h {1} min left", hours, rest) if hours else tr("{0} min left", minutes)


def _pace(bytes_per_s: float, seconds_left: float | None) -> list[str]:
    if bytes_per_s < 1 or seconds_left is None:
        return []
    return [tr("{0}/s", show_bytes(int(bytes_per_s))), left_text(seconds_left)]
