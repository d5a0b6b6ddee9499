"""Paths of the app's resources and of this user's folders, which platformdirs determines."""

import functools
import sys
from pathlib import Path

import platformdirs

_APP = "QwenDesk"
_DEMO_MODEL = "qwendesk-demo-Q8_0.gguf"


@functools.cache
def resources_folder() -> Path:
    """Return the folder of the app's read-only files: next to the package in a source tree, inside a wheel or bundle.

    Raises FileNotFoundError if it is missing.
    """
    package = Path(__file__).resolve().parent.parent
    bundle = getattr(sys, "_MEIPASS", None)
    for candidate in (
        Path(bundle) / "resources" if bundle else None,
        package / "resources",
        package.parent / "resources",
    ):
        if candidate is not None and (candidate / "demo").is_dir():
            return candidate
    raise FileNotFoundError("QwenDesk's resources folder is missing: install the app again")


def guide_folder() -> Path:
    """Return the folder of the user guide: in `docs` of a source tree, in the resources of a wheel or bundle."""
    inside = resources_folder() / "guide"
    return inside if inside.is_dir() else resources_folder().parent / "docs" / "guide"


def demo_model() -> Path:
    """Return the path of the built-in demo model, for trying the app and testing the engine, not for real questions."""
    return resources_folder() / "demo" / _DEMO_MODEL


def is_demo(model: str) -> bool:
    """Return whether `model` is the path of the built-in demo model. One on a server has other abilities."""
    return Path(model).name == _DEMO_MODEL and not model.startswith(("http://", "https://"))


def demo_mmproj() -> Path:
    return resources_folder() / "demo" / "mmproj-qwendesk-demo-Q8_0.gguf"


def engine_places() -> tuple[Path, ...]:
    """Return the folders with engine folders: next to the resources and in the user's data. They may not exist."""
    return resources_folder().parent / "engines", data_folder() / "engines"


def data_folder() -> Path:
    """Return the folder of this user's data (chats, attachments), without creating it."""
    return Path(platformdirs.user_data_dir(_APP, appauthor=False))


def config_folder() -> Path:
    """Return the folder of this user's settings, without creating it."""
    return Path(platformdirs.user_config_dir(_APP, appauthor=False))


def cache_folder() -> Path:
    """Return the folder of files that may be deleted at any time, without creating it."""
    return Path(platformdirs.user_cache_dir(_APP, appauthor=False))


def log_folder() -> Path:
    """Return the folder of the logs, which never contain message text, without creating it."""
    return Path(platformdirs.user_log_dir(_APP, appauthor=False))


def own_folders() -> tuple[Path, ...]:
    """Return this user's folders that belong to the app, without duplicates; one may lie inside another.

    They may not exist, and a user may have replaced one with a link.
    """
    log = log_folder()
    # On Linux the log folder is QwenDesk/log in the user's state folder, so its parent belongs to the app too.
    state = (log.parent,) if log.parent.name == _APP else ()
    return tuple(dict.fromkeys((data_folder(), config_folder(), cache_folder(), *state, log)))


def is_own(path: Path, folders: tuple[Path, ...] | None = None) -> bool:
    """Return whether `path` is one of the app's folders or lies in one. Links are not resolved.

    `folders` are the app's, where they are known: finding them takes a quarter of a millisecond.
    """
    path = path.absolute()
    return any(path.is_relative_to(folder) for folder in folders or own_folders())
