"""How large the bundle is, and what of it."""

from collections import Counter
from pathlib import Path

MOST_BYTES = 250 * 1024 * 1024
"""Of the Linux bundle with CPU engines, unpacked: what people with a slow line can be asked to fetch."""


def bytes_by_part(bundle: Path) -> Counter[str]:
    """Bytes below each folder of the bundle's first two levels; links count nothing."""
    parts: Counter[str] = Counter()
    for path in bundle.rglob("*"):
        if path.is_file() and not path.is_symlink():
            inside = path.relative_to(bundle).parts
            parts["/".join(inside[:2]) if len(inside) > 2 else inside[0]] += path.stat().st_size
    return parts


def report(bundle: Path, most: int = 15) -> tuple[int, str]:
    """All bytes, and a table of the largest parts for people."""
    parts = bytes_by_part(bundle)
    total = sum(parts.values())
    lines = [f"{n_bytes / 2**20:8.1f} MiB  {name}" for name, n_bytes in parts.most_common(most)]
    return total, "\n".join([*lines, f"{total / 2**20:8.1f} MiB  in all (at most {MOST_BYTES / 2**20:.0f})"])
