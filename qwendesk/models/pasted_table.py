"""Reads measured speeds in a pasted text: rows of `qwendesk bench -o row`, and what llama-bench prints.

Of llama-bench that is its Markdown table with the lines around it, as people paste it in forums: quoted, fenced, with
bold rows, escaped underscores or decimal commas, or broken by a narrow terminal. CSV, JSON and JSON lines are read too.
"""

import csv
import re
from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import msgspec

from qwendesk.core.errors import QwenDeskError
from qwendesk.core.json_decoding import decode_json
from qwendesk.core.translation import tr
from qwendesk.core.units import GIB, MIB

# Longer texts, in characters, are whole pages: a table of a hundred tests has 12,000.
LONGEST = 100_000
# No home computer generates text faster for one chat, and no model has more context.
_FASTEST_TOK_S, _DEEPEST, _LARGEST_BYTES = 10_000.0, 10_000_000, 10 * 1024**4


class BadPaste(QwenDeskError):
    """A text that has no measured speeds, or a broken one."""

    def __init__(self, sentence: str) -> None:
        super().__init__(tr("Nothing was added"), sentence)


class NamedCard(msgspec.Struct, frozen=True):
    """A graphics card as the text names it."""

    name: str
    gib: float = 0.0
    """Its memory; 0 if the text doesn't say."""


class MeasuredRow(msgspec.Struct, frozen=True, kw_only=True):
    """One measured speed of generation, in llama-bench's words. "" stands for what the text doesn't say."""

    program: str = "llama-bench"
    model: str = ""
    """Such as "qwen35moe 35B.A3B Q4_K - Medium"."""
    file: str = ""
    sha256: str = ""
    n_bytes: int
    params_b: float = 0.0
    backends: str
    cards: tuple[NamedCard, ...] = ()
    devices: str = ""
    split_mode: str = ""
    main_gpu: int = 0
    n_gpu_layers: int | None = None
    n_cpu_moe: int = 0
    overrides: str = ""
    has_kv_in_ram: bool = False
    cache_type: str = ""
    depth: int = 0
    tok_s: float
    build: str = ""
    date: str = ""


# What begins the row of `qwendesk bench -o row`.
ROW_START = "| QwenDesk "
# The columns of llama-bench's table by the names of its fields.
_FIELDS: Mapping[str, str] = MappingProxyType(
    {
        "model": "model_type", "size": "model_size", "params": "model_n_params", "backend": "backends",
        "ngl": "n_gpu_layers", "ncmoe": "n_cpu_moe", "sm": "split_mode", "mg": "main_gpu", "nkvo": "no_kv_offload",
        "dev": "devices", "ot": "tensor_buft_overrides", "t/s": "avg_ts",
    }
)  # fmt: skip
_NEEDED = ("model_type", "model_size", "backends", "test", "avg_ts")
_QUOTED = re.compile(r"^(?:\s*>)+ ?")
_RULE = re.compile(r":?-+:?")
# Begins only where a name does, so that a long line without one is read once.
_GGUF = re.compile(r"(?<![^\s\"'`/\\|=()])[^\s\"'`/\\|=()]+\.gguf", re.IGNORECASE)
_NGL = re.compile(r"(?:-ngl|--n-gpu-layers)[ =](\d{1,4})")
_BUILD = re.compile(r"^build: ?(?P<commit>[0-9a-f]{6,40}) \((?P<number>\d+)\)")
# How llama.cpp announces CUDA's and ROCm's cards, Vulkan's and a Mac's.
_ANNOUNCED = (
    ("cuda", re.compile(r"\bDevice (?P<index>\d{1,3}): (?P<name>[^,]{1,99}), (?:.{,199}?VRAM: (?P<mib>\d{1,9}) MiB)?")),
    ("vulkan", re.compile(r"\bggml_vulkan: (?P<index>\d{1,3}) = (?P<name>.{1,99}) \([^()]{,99}\) \|")),
    ("metal", re.compile(r"\bggml_metal\w*: GPU name:\s+(?P<name>\S.{,99})")),
)
_TEST = re.compile(r"tg ?\d+(?: ?@ ?d ?=? ?(?P<depth>[-\d.,']+)(?P<k>k?))?", re.IGNORECASE)
_ROW = re.compile(
    r"\| QwenDesk (?P<version>\S+), llama-cpp-python (?P<engine>\S+) "
    r"\| (?P<backends>[^|:]+): (?P<cards>[^|]+), \d+ GB RAM "
    r"\| (?P<file>[^|]+), (?P<bytes>\d+) bytes of weights(?:, sha256 (?P<sha256>[0-9a-f]{64}))? "
    r"\| (?P<flags>[^|]+) \| (?P<memory>[^|]+) \| (?P<prompt>[^|]+) \| (?P<speeds>[^|]+) "
    r"\| (?P<date>\d{4}-\d\d-\d\d) \|"
)
_ROW_SPEED = re.compile(r"(?P<tok_s>\S+)(?: @ d(?P<depth>\S+))?")


def read_rows(text: str) -> tuple[MeasuredRow, ...]:
    """Return the speeds of generation in `text`; other tests are left out. Raises BadPaste."""
    if len(text) > LONGEST:
        raise BadPaste(tr("The text is too long. Paste only the table, with the lines above it that name the card."))
    plain = text.translate({0xA0: " ", 0x202F: " ", 0x2009: " ", 0xFEFF: None})
    lines = [_QUOTED.sub("", line) for line in plain.splitlines()]
    found = [*_own_rows(lines), *(_records(lines) or _table_rows(lines))]
    if not found:
        raise BadPaste(
            tr(
                "There is no measured speed of generation in this text. Copy a row on the Bench page, or paste the "
                "whole table of llama-bench with a test such as tg128."
            )
        )
    return tuple(found)


def _own_rows(lines: Sequence[str]) -> Iterator[MeasuredRow]:
    """Yield the speeds of each row of `qwendesk bench -o row`."""
    for line in lines:
        start = line.find(ROW_START)
        if start < 0:
            continue
        found = _ROW.match(line, start)
        if found is None:
            raise BadPaste(tr("The row of QwenDesk is incomplete. Copy the whole line."))
        flags = found["flags"].strip("` ").split()
        options = dict(zip(flags[::2], flags[1::2], strict=False))
        _, _, speeds = found["speeds"].partition(": ")
        for each in speeds.split(", "):
            speed = _ROW_SPEED.fullmatch(each.strip())
            if speed is None:
                raise BadPaste(tr("The row of QwenDesk is incomplete. Copy the whole line."))
            yield MeasuredRow(
                program=f"QwenDesk {found['version']}",
                file=found["file"],
                sha256=found["sha256"] or "",
                n_bytes=_size(found["bytes"]),
                backends=found["backends"],
                cards=cards_in(found["cards"]),
                n_gpu_layers=_whole(options.get("-ngl", "")),
                n_cpu_moe=_whole(options.get("-ncmoe", "")) or 0,
                cache_type=options.get("-ctk", ""),
                depth=_depth(speed["depth"] or "0"),
                tok_s=_speed(speed["tok_s"]),
                build=f"llama-cpp-python {found['engine']}",
                date=found["date"],
            )


def cards_in(text: str) -> tuple[NamedCard, ...]:
    """Return the cards of a text such as "2x RTX 3090 24 GB + RTX 3060 12 GB"."""
    found: list[NamedCard] = []
    for part in filter(None, (each.strip() for each in text.split("+"))):
        times = re.match(r"(\d{1,2}) ?[x×] ?", part)
        name = part[times.end() :] if times else part
        size = re.search(r"[ ,]{,3}\(?\b(\d{1,3}(?:\.\d+)?) ?Gi?B\b\)?", name, re.IGNORECASE)
        card = NamedCard((name.replace(size[0], "") if size else name).strip(" ,"), float(size[1]) if size else 0.0)
        found += [card] * min(int(times[1]) if times else 1, 16)
    return tuple(found)


def _records(lines: Sequence[str]) -> list[MeasuredRow]:
    """Return the speeds in CSV, JSON or JSON lines; [] if the text is none of these."""
    first = next((number for number, line in enumerate(lines) if "model_type" in line and "," in line), None)
    start = next((number for number, line in enumerate(lines) if line.lstrip()[:1] in ("[", "{")), None)
    records: list[Mapping[str, Any]] = []
    if start is not None and '"model_type"' in "".join(lines):
        text = "\n".join(lines[start:]).partition("```")[0].strip()
        records = _json(text)
    elif first is not None and not lines[first].lstrip().startswith("|"):
        csv_lines = [line for line in lines[first:] if line.strip() and not line.startswith("```")]
        try:
            records = [row for row in csv.DictReader(csv_lines, strict=True) if None not in row.values()]
        except csv.Error as error:
            raise BadPaste(tr("The CSV can't be read: {0}.", error)) from error
    generated = (each for each in records if _whole(each.get("n_gen")) and not _whole(each.get("n_prompt")))
    return [_from_fields({key: _text(value) for key, value in each.items() if key}) for each in generated]


def _json(text: str) -> list[Mapping[str, Any]]:
    try:
        found = decode_json(text.encode("utf-8", "replace"))
    except msgspec.DecodeError:
        try:
            found = [decode_json(line.strip().encode("utf-8", "replace")) for line in text.splitlines() if line.strip()]
        except msgspec.DecodeError as error:
            raise BadPaste(tr("The JSON can't be read. Copy all that llama-bench printed.")) from error
    records = found if isinstance(found, list) else [found]
    return [each for each in records if isinstance(each, dict)]


def _text(value: object) -> str:
    return str(int(value)) if isinstance(value, bool) else "" if value is None else str(value)


class _Context:
    """What stands around a table: the cards that llama.cpp announced, the model's file and the flags."""

    def __init__(self) -> None:
        self._cards: dict[str, dict[int, NamedCard]] = {}
        self._files: list[str] = []
        self._n_gpu_layers = ""
        self._is_used = False

    def read(self, line: str) -> None:
        """Take in a line that isn't part of a table."""
        if self._is_used and (_GGUF.search(line) or _NGL.search(line)):
            self._files, self._n_gpu_layers, self._is_used = [], "", False
        self._files += _GGUF.findall(line)
        ngl = _NGL.search(line)
        self._n_gpu_layers = ngl[1] if ngl else self._n_gpu_layers
        for kind, pattern in _ANNOUNCED:
            found = pattern.search(line)
            if found is not None:
                groups = found.groupdict()
                index, mib = int(groups.get("index") or 0), groups.get("mib")
                if not index:
                    self._cards[kind] = {}  # a new run lists its cards
                card = NamedCard(groups["name"].strip(), round(int(mib) / 1024, 1) if mib else 0.0)
                self._cards.setdefault(kind, {})[index] = card

    def fields(self, backends: str) -> dict[str, str]:
        """Return what the text says of a table with these backends, by llama-bench's names."""
        self._is_used = True
        kinds = {"ROCM": "cuda", "HIP": "cuda", "CUDA": "cuda", "VULKAN": "vulkan", "MTL": "metal", "METAL": "metal"}
        names = {kinds[each] for each in re.split(r"[, ]+", backends.upper()) if each in kinds}
        cards = self._cards.get(names.pop(), {}) if len(names) == 1 else {}
        in_order = (cards[index] for index in sorted(cards))
        return {
            "model_filename": self._files[0] if len(set(self._files)) == 1 else "",
            "n_gpu_layers": self._n_gpu_layers,
            "gpu_info": " + ".join(f"{each.name} {each.gib:g} GB" if each.gib else each.name for each in in_order),
        }


def _table_rows(lines: Sequence[str]) -> list[MeasuredRow]:
    """Return the speeds of all tables of llama-bench."""
    rows: list[dict[str, str]] = []
    columns: list[str] = []
    n_without_build, context = 0, _Context()
    for line in _unwrapped(lines):
        if not line.lstrip().startswith("|"):
            columns = columns if not line.strip() else []
            context.read(line)
            build = _BUILD.match(line.strip())
            if build is not None:
                for row in rows[n_without_build:]:
                    row |= {"build_commit": build["commit"], "build_number": build["number"]}
                n_without_build = len(rows)
            continue
        cells = [_cell(each) for each in line.strip().removeprefix("|").removesuffix("|").split("|")]
        lower = [each.lower() for each in cells]
        if "t/s" in lower and "test" in lower:
            columns = [_FIELDS.get(each, each) for each in lower]
            if not set(_NEEDED) <= set(columns):
                raise BadPaste(
                    tr("This table isn't llama-bench's: it has no columns for model, size, backend, test and t/s.")
                )
        elif columns and not all(_RULE.fullmatch(each) for each in cells):
            if len(cells) != len(columns):
                raise BadPaste(
                    tr("The table is cut off: its head has {0} columns, and a row has {1}.", len(columns), len(cells))
                )
            row = dict(zip(columns, cells, strict=True))
            rows.append(context.fields(row["backends"]) | row)
    return [_from_fields(row) for row in rows if _TEST.fullmatch(row["test"])]


def _unwrapped(lines: Sequence[str]) -> Iterator[str]:
    """Yield the lines as they were before a narrow terminal broke those that are longer than it is wide."""
    rows = [line for line in lines if line.startswith("|")]
    is_broken = any(line.startswith("|") != line.rstrip().endswith("|") for line in lines)
    # All rows may be broken beside a space, which gets lost.
    most = max(map(len, rows), default=0) + 2 if is_broken else 0
    width = max((len(line) for line in lines if len(line) <= most), default=0)
    row, other = "", ""
    for line in lines:
        is_row, is_rest = line.lstrip().startswith("|"), "|" in line and not line.lstrip().startswith("|")
        if row and line.strip() and (not row.rstrip().endswith("|") or (is_rest and width)):
            row += line
            continue
        if row or (is_row and other):
            yield row or other
            row = other = ""
        if is_row:
            row = line
        elif width and len(line) >= width - 1:
            other += line.ljust(width)
        else:
            yield other + line
            other = ""
    yield row or other


def _cell(text: str) -> str:
    return re.sub(r"\\([_*~`@#.-])", r"\1", text).strip().strip("*`~").strip()


def _from_fields(fields: Mapping[str, str]) -> MeasuredRow:
    """Return the speed of generation in a record or a row of a table. Raises BadPaste."""

    def get(name: str) -> str:
        return fields.get(name, "").strip()

    test = _TEST.fullmatch(get("test"))
    depth = (test["depth"] or "0") if test is not None else get("n_depth") or "0"
    tok_s, _, _ = get("avg_ts").partition("±")
    build = f"build {get('build_commit')} ({get('build_number')})" if get("build_commit") else ""
    return MeasuredRow(
        model=get("model_type"),
        file=get("model_filename").replace("\\", "/").rpartition("/")[2],
        n_bytes=_size(get("model_size")),
        params_b=_billions(get("model_n_params")),
        backends=get("backends"),
        cards=cards_in(re.sub(r", (?=\D)", " + ", get("gpu_info"))),
        devices="" if get("devices") == "auto" else get("devices"),
        split_mode=get("split_mode"),
        main_gpu=_whole(get("main_gpu")) or 0,
        n_gpu_layers=_whole(get("n_gpu_layers")),
        n_cpu_moe=_whole(get("n_cpu_moe")) or 0,
        overrides="" if get("tensor_buft_overrides") == "none" else get("tensor_buft_overrides"),
        has_kv_in_ram=_whole(get("no_kv_offload")) == 1,
        cache_type=get("type_k"),
        depth=_depth(depth, 1024 if test is not None and test["k"] else 1),
        tok_s=_speed(tok_s.strip().removesuffix("t/s").removesuffix("tok/s")),
        build=build,
        date=get("test_time")[:10] if re.match(r"\d{4}-\d\d-\d\dT", get("test_time")) else "",
    )


def _speed(text: str) -> float:
    tok_s = _number(text)
    if tok_s is None or not 0 < tok_s <= _FASTEST_TOK_S:
        raise BadPaste(tr('"{0}" isn\'t a speed in tokens per second.', text.strip()[:40]))
    return tok_s


def _size(text: str) -> int:
    number, unit = _with_unit(text)
    factor = {"GIB": GIB, "MIB": MIB, "GB": 10**9, "MB": 10**6, "": 1}.get(unit)
    value = _number(number)
    if factor is None or value is None or not 0 < value * factor <= _LARGEST_BYTES:
        raise BadPaste(tr('"{0}" isn\'t the size of a model.', text[:40]))
    return round(value * factor)


def _billions(text: str) -> float:
    number, unit = _with_unit(text)
    return (_number(number) or 0.0) * {"B": 1.0, "M": 1e-3, "T": 1e3}.get(unit, 1e-9)


def _with_unit(text: str) -> tuple[str, str]:
    """Return the number and its unit in capitals. The space between them gets lost where a terminal breaks a line."""
    number = text.strip().rstrip("BbGgIiMmTt ")
    return number, text.strip()[len(number) :].strip().upper()


def _depth(text: str, factor: int = 1) -> int:
    value = _number(text)
    if value is None or not 0 <= value * factor <= _DEEPEST or value != int(value):
        raise BadPaste(tr('"{0}" isn\'t a number of tokens.', text[:40]))
    return int(value) * factor


def _whole(value: object) -> int | None:
    """Return a whole number; None if it isn't one."""
    text = str(value).strip()
    return int(text) if re.fullmatch(r"-?\d{1,9}", text) else None


def _number(text: str) -> float | None:
    """Return a number with decimal points or commas, and thousands apart or not; None if it is none."""
    plain = text.strip().replace("'", "")
    if "," in plain and "." in plain:
        decimal = max(",.", key=plain.rfind)
        plain = plain.replace("," if decimal == "." else ".", "").replace(",", ".")
    elif "," in plain:
        plain = plain.replace(",", "") if re.search(r"\d,\d{3}$", plain) else plain.replace(",", ".")
    return float(plain) if re.fullmatch(r"-?\d{1,15}(?:\.\d{1,9})?", plain) else None
