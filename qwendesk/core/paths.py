"""Where things live: the app's resources, and the folders of this user (by platformdirs)."""

import sys
from pathlib import Path

import platformdirs

_APP = "QwenDesk"


def resources_folder() -> Path:
    """The read-only files the app ships: beside the package in a source tree, inside it in a wheel or bundle."""
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
    """The user guide's pages and pictures: in `docs` of a source tree, in the resources of a wheel or bundle."""
    inside = resources_folder() / "guide"
    return inside if inside.is_dir() else resources_folder().parent / "docs" / "guide"


def demo_model() -> Path:
    """The built-in demo model: for trying the app and testing the engine, not for real questions."""
    return resources_folder() / "demo" / "qwendesk-demo-Q8_0.gguf"


def is_demo(model: str) -> bool:
    """Whether a model's path is that of the built-in demo."""
    return Path(model).name == demo_model().name


def demo_mmproj() -> Path:
    return resources_folder() / "demo" / "mmproj-qwendesk-demo-Q8_0.gguf"


def engine_places() -> tuple[Path, ...]:
    """Where engine folders may lie: beside the resources of a bundle, and in this user's data. May not exist."""
    return resources_folder().parent / "engines", data_folder() / "engines"


def data_folder() -> Path:
    """This user's data (chats, attachments). Not created here."""
    return Path(platformdirs.user_data_dir(_APP, appauthor=False))


def config_folder() -> Path:
    """This user's settings. Not created here."""
    return Path(platformdirs.user_config_dir(_APP, appauthor=False))


def cache_folder() -> Path:
    """What may be deleted at any time. Not created here."""
    return Path(platformdirs.user_cache_dir(_APP, appauthor=False))


def log_folder() -> Path:
    """Logs (never message text). Not created here."""
    return Path(platformdirs.user_log_dir(_APP, appauthor=False))
