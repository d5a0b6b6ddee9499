"""Writes packaging/qwendesk.ico, which Windows programs and the installer carry; run by the release workflow."""

import sys

from PIL import Image

from tools.bundle.logo import LOGO_COLOUR, logo_image, logo_svg
from tools.setup.project import ROOT

TARGET = ROOT / "packaging" / "qwendesk.ico"
_SIZES = (16, 24, 32, 48, 64, 128, 256)


def main() -> int:
    largest = logo_image(logo_svg(LOGO_COLOUR), max(_SIZES))
    picture = Image.frombuffer(
        "RGBA", (largest.width(), largest.height()), bytes(largest.constBits()), "raw", "BGRA", 0, 1
    )
    picture.save(TARGET, sizes=[(side, side) for side in _SIZES])
    print(TARGET)
    return 0


if __name__ == "__main__":
    sys.exit(main())
