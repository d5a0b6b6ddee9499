"""Names of a server's tools for the model: none of them can be taken for a tool of the app or of another server."""

import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence

SEPARATOR = "__"
"""Between the server's part and the tool's. No tool of the app has it in its name, and no server's part."""
_MOST = 64
"""Characters of a name, as other programs limit them too."""
_MOST_PREFIX = 24
_NOT_ALLOWED = re.compile(r"[^A-Za-z0-9_-]+")


def server_prefixes(names: Mapping[str, str]) -> dict[str, str]:
    """Return a prefix for each server, by its id; `names` are those that the user sees, by id."""
    prefixes: dict[str, str] = {}
    for server_id, name in names.items():
        slug = re.sub(r"_+", "_", _NOT_ALLOWED.sub("_", name.lower())).strip("_-")[:_MOST_PREFIX].strip("_-")
        prefixes[server_id] = _unique(slug or "server", prefixes.values())
    return prefixes


def tool_names(prefix: str, tools: Sequence[str]) -> dict[str, str]:
    """Return the model's name of each tool by the server's name of it. It does not depend on the tools' order."""
    names: dict[str, str] = {}
    for tool in sorted(set(tools)):
        slug = _NOT_ALLOWED.sub("_", tool).strip("_") or "tool"
        name = f"{prefix}{SEPARATOR}{slug}"
        if len(name) > _MOST:
            digest = hashlib.sha256(tool.encode("utf-8", "replace")).hexdigest()[:8]
            name = f"{name[: _MOST - 9]}_{digest}"
        names[tool] = _unique(name, names.values())
    return names


def _unique(name: str, taken: Iterable[str]) -> str:
    """Return `name`, with a number if it is taken."""
    others = set(taken)
    number, unique = 1, name
    while unique in others:
        number += 1
        unique = f"{name}_{number}"
    return unique
