"""How much room the drives of model folders have."""

import shutil
from pathlib import Path


def free_on_drive(folder: Path) -> int | None:
    """Bytes free where `folder` is or will be; None when the system does not say. Blocks for a moment."""
    for place in (folder, *folder.parents):
        try:
            return shutil.disk_usage(place).free
        except FileNotFoundError:
            continue
        except OSError:
            return None
    return None
