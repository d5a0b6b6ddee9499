"""The Debian mirror that this machine already uses."""

import os
import re
from collections.abc import Iterable
from pathlib import Path

MIRROR_VARIABLE = "DEBIAN_MIRROR"
_SOURCES = Path("/etc/apt")
_ONE_LINE = re.compile(r"^deb(?:\s+\[[^\]]*\])?\s+(\S+)\s+\S+")
_URIS = re.compile(r"^URIs:\s*(\S.*)$")


def find_mirror() -> str:
    """Return the address in DEBIAN_MIRROR, else in the system's package sources; empty if there is none."""
    return os.environ.get(MIRROR_VARIABLE, "") or debian_mirror(_source_texts())


def debian_mirror(texts: Iterable[str]) -> str:
    """Return the address of the Debian mirror that the system's package sources name; empty if they name none.

    `texts` are the contents of files below /etc/apt, in either format.
    """
    for text in texts:
        for line in text.splitlines():
            uris, one_line = _URIS.match(line), _ONE_LINE.match(line)
            addresses = uris[1].split() if uris else [one_line[1]] if one_line else []
            for address in addresses:
                if address.rstrip("/").endswith("/debian") and "snapshot" not in address:
                    return address.rstrip("/")
    return ""


def _source_texts() -> list[str]:
    files = [_SOURCES / "sources.list", *sorted((_SOURCES / "sources.list.d").glob("*"))]
    return [file.read_text(encoding="utf-8", errors="replace") for file in files if file.is_file()]
