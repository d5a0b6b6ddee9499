"""How large the bundle is, and what of it."""

from collections import Counter
from dataclasses import dataclass
from pathlib import Path

MOST_BYTES = 320 * 1024 * 1024
"""Of the Linux bundle with CPU engines, unpacked: what people with a slow line can be asked to fetch.

It was 250 MiB before web search (primp, lxml: 21), the server and its TLS (aiohttp, cryptography: 20), MCP (7), charts.
"""
MOST_WITH_VULKAN_BYTES = 420 * 1024 * 1024
"""Of the whole Linux bundle, with the engine for graphics cards."""
_VULKAN = "_internal/engines/vulkan"


@dataclass(frozen=True)
class Sizes:
    """Bytes of the bundle: without the Vulkan engine, and with it."""

    cpu_bytes: int
    all_bytes: int

    @property
    def fits(self) -> bool:
        return self.cpu_bytes <= MOST_BYTES and self.all_bytes <= MOST_WITH_VULKAN_BYTES


def bytes_by_part(bundle: Path) -> Counter[str]:
    """Bytes below each folder of the bundle's first two levels, and each engine; links count nothing."""
    parts: Counter[str] = Counter()
    for path in bundle.rglob("*"):
        if path.is_file() and not path.is_symlink():
            inside = path.relative_to(bundle).parts
            depth = 3 if inside[:2] == ("_internal", "engines") else 2
            parts["/".join(inside[:depth]) if len(inside) > 2 else inside[0]] += path.stat().st_size
    return parts


def report(bundle: Path, most: int = 15) -> tuple[Sizes, str]:
    """The sizes, and a table of the largest parts for people."""
    parts = bytes_by_part(bundle)
    total = sum(parts.values())
    sizes = Sizes(total - parts[_VULKAN], total)
    lines = [_line(n_bytes, name) for name, n_bytes in parts.most_common(most)]
    lines.append(_line(sizes.cpu_bytes, f"in all, for a processor (at most {MOST_BYTES / 2**20:.0f})"))
    if parts[_VULKAN]:
        lines.append(_line(total, f"in all, with Vulkan (at most {MOST_WITH_VULKAN_BYTES / 2**20:.0f})"))
    return sizes, "\n".join(lines)


def _line(n_bytes: int, name: str) -> str:
    return f"{n_bytes / 2**20:8.1f} MiB  {name}"
