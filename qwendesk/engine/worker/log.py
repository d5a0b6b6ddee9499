"""The log of llama.cpp: kept in memory for reports, and read for the memory that was allocated on each device.

Install it before the first call into the engine, but after `import llama_cpp`, which installs a callback of its own.

llama.cpp logs every buffer as "<who>: <device> <what> buffer size = <n> MiB".
"""

import collections
import ctypes
import re
import sys
from collections.abc import Iterable, Mapping

import llama_cpp.llama_cpp as C
import msgspec
from llama_cpp import mtmd_cpp

from qwendesk.engine.protocol import Allocation

# ggml's log level for text that continues the line before.
_CONTINUED = 5
_WARNING = 3
_KEPT_LINES = 4000
# A harmless warning that is logged for every image, because its tokens share positions under M-RoPE.
_EXPECTED = "find_slot: non-consecutive token position"


class EngineLog:
    """The last 4,000 whole lines of the engine's log, oldest first."""

    def __init__(self) -> None:
        self._lines: collections.deque[str] = collections.deque(maxlen=_KEPT_LINES)
        self._open = ""
        self._open_level = 0
        self._n_lines = 0
        self._callback = C.llama_log_callback(self._take)

    def install(self) -> None:
        """Receive the logs of ggml, llama.cpp and mtmd."""
        nothing = ctypes.c_void_p(0)
        C.llama_log_set(self._callback, nothing)
        mtmd_cpp.mtmd_log_set(self._callback, nothing)
        mtmd_cpp.mtmd_helper_log_set(self._callback, nothing)

    def mark(self) -> int:
        """Return a position in the log for `since`."""
        return self._n_lines

    def since(self, mark: int) -> tuple[str, ...]:
        """Return the lines after the position `mark`, as far as they are still kept."""
        wanted = self._n_lines - mark
        return tuple(self._lines)[-wanted:] if wanted > 0 else ()

    def _take(self, level: int, text: bytes, _user_data: object) -> None:
        if level != _CONTINUED:
            self._open_level = level
        self._open += text.decode("utf-8", "replace")
        *whole, self._open = self._open.split("\n")
        for line in whole:
            self._lines.append(line)
            self._n_lines += 1
            if self._open_level >= _WARNING and not line.startswith(_EXPECTED):
                print(line, file=sys.stderr, flush=True)


_BUFFER = re.compile(
    r"^(?P<who>\S+):\s+(?P<device>\S+)\s+(?P<what>[\w ]+?) buffer size\s+(?:=|is)\s+(?P<mib>[\d.]+) MiB"
)
_LAZY_TABLE = re.compile(r"tensor \S+ \(size = (\d+) MiB\) lazy read enabled")
_MIB = 1024**2
_FIELDS = {
    "model": "weights_bytes",
    "LoRA": "weights_bytes",
    "KV": "kv_bytes",
    "RS": "recurrent_bytes",
    "compute": "compute_bytes",
    "output": "compute_bytes",
}
_HOST_NAMES = re.compile(r"^(CPU(_\w+)?|.*_Host|CPU_REPACK|AMX)$")
_REPACKED = "CPU_REPACK"
# Logged for the model's context, and for that of its draft head.
_NEW_CONTEXT = "constructing llama_context"


def read_allocations(lines: Iterable[str], devices: Mapping[str, str]) -> tuple[Allocation, ...]:
    """Return the bytes allocated on each device, in the order in which the devices first appear.

    `devices` has the names of devices by the names of their buffers. A buffer of another name counts under that name.
    Host buffers of any backend (pinned memory, repacked weights) count as "CPU". A compute buffer may be logged several
    times: its largest size in each context counts. The buffers of the vision encoder have a field of their own. A
    table that is read row by row from the file is not counted, although its buffer is logged. Neither are repacked
    weights of a mapped file: the mapped buffer includes their originals, whose memory the system takes back when it
    needs it.
    """
    found: dict[str, dict[str, dict[str, int]]] = {}
    lazy_bytes = contexts = 0
    for line in lines:
        contexts += _NEW_CONTEXT in line
        if table := _LAZY_TABLE.search(line):
            lazy_bytes += int(table[1]) * _MIB
        match = _BUFFER.match(line)
        if match is None:
            continue
        name = match["device"]
        device = "CPU" if _HOST_NAMES.match(name) else devices.get(name, name)
        is_vision = "clip" in match["who"] or match["who"].startswith(("reserve_compute_meta", "alloc_compute_meta"))
        field = "vision_bytes" if is_vision else _FIELDS.get(match["what"].strip())
        if field is None:
            continue
        n_bytes = round(float(match["mib"]) * _MIB)
        kept = found.setdefault(device, {}).setdefault(field, {})
        source = f"{match['who']} {name} {match['what']} {contexts}"
        kept[source] = (
            max(kept.get(source, 0), n_bytes) if match["what"] == "compute" else kept.get(source, 0) + n_bytes
        )
    for fields in found.values():
        fields["weights_bytes"] = _without_repacked_copies(fields.get("weights_bytes", {}), lazy_bytes)
    sums = {device: {field: sum(parts.values()) for field, parts in fields.items()} for device, fields in found.items()}
    if lazy_bytes and "CPU" in sums:
        sums["CPU"]["weights_bytes"] = max(sums["CPU"].get("weights_bytes", 0) - lazy_bytes, 0)
    return tuple(Allocation(device, **fields) for device, fields in sums.items())


def _without_repacked_copies(weights: Mapping[str, int], lazy_bytes: int) -> dict[str, int]:
    """Return the sizes by their sources, without repacked weights whose originals are mapped too.

    If only a table is mapped, which is read lazily, the repacked weights have no other copy.
    """
    mapped = sum(size for source, size in weights.items() if "_Mapped " in source) - lazy_bytes
    return {source: size for source, size in weights.items() if _REPACKED not in source or size > mapped}


def with_vision_weights(allocations: tuple[Allocation, ...], device: str, n_bytes: int) -> tuple[Allocation, ...]:
    """Return `allocations` with the vision encoder's weights added on `device`: the engine does not log them."""
    rows = {row.device: row for row in allocations}
    row = rows.get(device, Allocation(device))
    rows[device] = msgspec.structs.replace(row, vision_bytes=row.vision_bytes + n_bytes)
    return tuple(rows.values())
