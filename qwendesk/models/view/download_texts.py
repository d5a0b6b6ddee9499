"""Texts of the list of downloads. No widgets here."""

from pathlib import PurePath
from typing import Final, Literal

from qwendesk.core.translation import tr, tr_n
from qwendesk.core.units import show_bytes
from qwendesk.hub.download_queue import DownloadItem, SavedDownload
from qwendesk.hub.network import HubErrorKind
from qwendesk.models.downloads import DownloadsState

NextStep = Literal["retry", "page", "token", "folders", "online"]

_STEPS: Final[dict[HubErrorKind, tuple[NextStep, ...]]] = {
    "gated": ("page", "token", "retry"),
    "denied": ("token", "page", "retry"),
    "not_found": ("page", "retry"),
    "no_space": ("retry", "folders"),
    "disk": ("retry", "folders"),
    "offline": ("online",),
}


def next_steps(trouble: HubErrorKind | None) -> tuple[NextStep, ...]:
    """Return the steps that may solve a failure, most likely first."""
    return _STEPS.get(trouble, ("retry",)) if trouble is not None else ("retry",)


def step_text(step: NextStep) -> tuple[str, str]:
    """Return a button's text and tooltip."""
    return {
        "retry": (tr("Try again"), tr("Continue with what was downloaded")),
        "page": (tr("Open web page"), tr("Open the repository in your browser")),
        "token": (tr("Access token…"), tr("Enter your access token in the settings")),
        "folders": (tr("Model folders…"), tr("Choose another folder in the settings")),
        "online": (tr("Go online"), tr("Allow connections")),
    }[step]


def file_name(kept: SavedDownload) -> str:
    """Return the model's file name."""
    return PurePath(kept.files[0].target).name


def contents_text(kept: SavedDownload) -> str:
    """Return what a download contains: "unsloth/Qwen3.5-4B-GGUF · 2 shards · with vision file"."""
    first = kept.files[0].file
    names = [PurePath(each.target).name.lower() for each in kept.files]
    n_projectors = sum("mmproj" in name for name in names[1:])
    n_shards = len(names) - n_projectors
    parts = [
        first.repo,
        tr_n("{0} shard", "{0} shards", n_shards) if n_shards > 1 else "",
        tr("with vision file") if n_projectors else "",
    ]
    return " · ".join(part for part in parts if part)


def state_chip_text(item: DownloadItem, *, is_offline: bool) -> tuple[str, str]:
    """Return the state in one word, and its tone."""
    match item.saved.state:
        case "done":
            return tr("Finished"), "good"
        case "failed":
            return tr("Failed"), "bad"
        case "paused":
            return tr("Paused"), "plain"
        case "queued":
            return (tr("Offline"), "warn") if is_offline else (tr("Waiting"), "plain")
        case _:
            words = {"checking": tr("Checking"), "waiting": tr("Retrying")}
            return words.get(item.phase, tr("Downloading")), "warn" if item.phase == "waiting" else "info"


def progress_text(item: DownloadItem) -> str:
    """Return "3.2 GB of 19.7 GB · 48 MB/s · 5 min left", without the parts that aren't known."""
    whole = show_bytes(item.saved.n_bytes)
    if item.saved.state == "done":
        return whole
    parts = [tr("{0} of {1}", show_bytes(item.n_done), whole)]
    if item.saved.state == "running" and item.phase == "downloading":
        parts += _speed_texts(item.bytes_per_s, item.seconds_left)
    return " · ".join(parts)


def total_text(state: DownloadsState) -> str:
    """Return "3 downloads · 12.4 GB of 45.0 GB · 48 MB/s · 12 min left", without the parts that aren't known."""
    total, unfinished = state.total, len(state.unfinished)
    if not unfinished:
        return tr("All downloads are finished")
    parts = [tr_n("{0} download", "{0} downloads", unfinished)]
    parts.append(tr("{0} of {1}", show_bytes(total.n_done), show_bytes(total.n_bytes)))
    parts += _speed_texts(total.bytes_per_s, total.seconds_left)
    return " · ".join(parts)


def time_left_text(seconds: float) -> str:
    """Return "under a minute left", "5 min left" or "2 h 5 min left"."""
    minutes = round(seconds / 60)
    if minutes < 1:
        return tr("under a minute left")
    hours, rest = divmod(minutes, 60)
    return tr("{0} h {1} min left", hours, rest) if hours else tr("{0} min left", minutes)


def _speed_texts(bytes_per_s: float, seconds_left: float | None) -> list[str]:
    if bytes_per_s < 1 or seconds_left is None:
        return []
    return [tr("{0}/s", show_bytes(int(bytes_per_s))), time_left_text(seconds_left)]
