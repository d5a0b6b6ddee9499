"""Builds resources/catalog.json from a file of collected facts: `python -m tools.build_catalog FACTS.json`.

The facts list files one by one with rounded sizes; the catalog joins split sets, pairs picture files with models,
and leaves out what is gone. tools/catalog_qwen38.json, which is in the catalog's own schema, is added to it.
docs/catalog.md describes the result.
"""

import argparse
import json
import re
import sys
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from qwendesk.core.model_facts import Hyperparameters
from qwendesk.core.units import GIB
from qwendesk.hub.catalog import FILE_NAME, Catalog, decode_catalog
from qwendesk.hub.catalog_schema import (
    SCHEMA_VERSION,
    CatalogFile,
    CatalogModel,
    Contents,
    CutOff,
    Licence,
    Part,
    Repository,
    Sampling,
    Superseded,
    WithdrawnFile,
)
from tools.catalog_benchmarks import BENCHMARKS
from tools.catalog_speeds import SPEEDS
from tools.catalog_texts import COMMON_PRESETS, NOTES, PRESETS, PURPOSES, QUALITY

ADDED = Path(__file__).with_name("catalog_qwen38.json")
"""What is newer than the collected facts: Qwen3.8."""
UPLOADERS = ("unsloth", "bartowski", "lmstudio-community", "ggml-org")
_FIRST_PART = re.compile(r"-\d{5}-of-\d{5}\.gguf$")
_MODEL_NAME = re.compile(r"(?:Qwen_)?(?P<model>Qwen3\.[56]-[\d.]+B(?:-A\d+B)?)(?P<base>-Base)?(?P<mtp>-MTP)?-GGUF$")
_MMPROJ_ORDER = ("F16", "BF16", "Q8_0", "F32")
_PRESET_NAMES: Mapping[str, str] = {"instruct_text": "instruct_general", "thinking_text": "thinking_general"}
_GONE = "GONE"
_NOT_LISTS = ("schema_version", "date", "presets")

Facts = Mapping[str, Any]


def main(arguments: Sequence[str] | None = None) -> int:
    """Writes the catalog; exit status 0."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("facts", type=Path, metavar="FACTS.json")
    parser.add_argument("--output", type=Path, default=Path("resources") / FILE_NAME)
    options = parser.parse_args(arguments)
    collected = build(json.loads(options.facts.read_text(encoding="utf-8")))
    contents = joined(collected, msgspec.json.decode(ADDED.read_bytes(), type=Contents))
    text = encode(contents)
    catalog: Catalog = decode_catalog(text)
    options.output.write_bytes(text)
    n_files = sum(len(repository.files) for repository in catalog.repositories)
    sys.stdout.write(
        f"{options.output}: {len(catalog.repositories)} repositories, {n_files} files, {len(text):,} bytes\n"
    )
    return 0


def build(facts: Facts) -> Contents:
    """The catalog's contents from collected facts."""
    repositories = [_repository(facts, repo, files) for repo, files in sorted(facts["repos"].items())]
    superseded, withdrawn = _superseded(facts)
    return Contents(
        schema_version=SCHEMA_VERSION,
        date=max(file["last_state_seen"] for files in facts["repos"].values() for file in files),
        sources=tuple(facts["_about"]["sources"]),
        models=tuple(_model(facts, identity) for identity in PURPOSES),
        presets={name: _presets(facts, name) for name in dict.fromkeys([COMMON_PRESETS, *PRESETS.values()])},
        quality=QUALITY,
        benchmarks=BENCHMARKS,
        speeds=SPEEDS,
        notes=NOTES,
        cut_offs=_cut_offs(facts["prefix_rules"]),
        superseded=tuple(superseded),
        deletions=(*withdrawn, *_deletions(facts["repos"])),
        repositories=_with_mmproj(repositories),
    )


def joined(first: Contents, second: Contents) -> Contents:
    """Both catalogs as one, with the later date."""
    names = [field.name for field in msgspec.structs.fields(Contents)]
    lists = {name: getattr(first, name) + getattr(second, name) for name in names if name not in _NOT_LISTS}
    presets = {**first.presets, **second.presets}
    return Contents(schema_version=SCHEMA_VERSION, date=max(first.date, second.date), presets=presets, **lists)


def encode(contents: Contents) -> bytes:
    """JSON with one line for each file, so that a change of the catalog can be read."""
    lines = []
    for key, value in msgspec.to_builtins(contents).items():
        if key == "repositories":
            lines.append(f'"{key}":[\n{_lines(_repository_text(each) for each in value)}\n]')
        elif isinstance(value, list | tuple):
            lines.append(f'"{key}":[\n{_lines(map(_text, value))}\n]')
        else:
            lines.append(f'"{key}":{_text(value)}')
    return ("{\n" + ",\n".join(lines) + "\n}\n").encode()


def _repository_text(repository: dict[str, Any]) -> str:
    files = repository.pop("files")
    return f'{_text(repository)[:-1]},"files":[\n{_lines(map(_text, files))}\n]}}'


def _lines(texts: Any) -> str:
    return ",\n".join(texts)


def _text(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def _model(facts: Facts, identity: str) -> CatalogModel:
    values = facts["hyperparameters"][identity]
    names = {field.name for field in msgspec.structs.fields(Hyperparameters)}
    size = re.search(r"-(?P<total>[\d.]+)B(?:-A(?P<active>\d+)B)?$", identity)
    if size is None:
        raise ValueError(f"{identity}: no size in the name")
    short = identity.removeprefix("Qwen3.5-").removeprefix("Qwen")
    return CatalogModel(
        id=identity,
        purpose=PURPOSES[identity],
        released=facts["release_dates"][short].split()[0],
        architecture=values["architecture"],
        params_b=float(values.get("params_b", size["total"])),
        active_params_b=float(size["active"] or values.get("params_b", size["total"])),
        base_repo=f"Qwen/{identity}",
        presets=PRESETS.get(identity, COMMON_PRESETS),
        hyperparameters=Hyperparameters(**{key: value for key, value in values.items() if key in names}),
        licence=Licence("Apache 2.0", source=f"huggingface.co/Qwen/{identity}"),
    )


def _presets(facts: Facts, name: str) -> dict[str, Sampling]:
    return {_PRESET_NAMES.get(key, key): Sampling(**values) for key, values in facts["sampling"][name].items()}


def _repository(facts: Facts, repo: str, files: Sequence[Facts]) -> Repository:
    found = _MODEL_NAME.search(repo)
    if found is None or repo.partition("/")[0] not in UPLOADERS:
        raise ValueError(f"{repo}: not a repository the catalog knows how to read")
    present = [file for file in files if not _is_gone(file)]
    seen = max((file["first_seen"] for file in present), default=max(file["last_state_seen"] for file in files))
    return Repository(
        repo=repo,
        model=found["model"],
        seen=seen,
        files=tuple(_file(group, seen) for group in _sets(present)),
        revision=facts["unsloth_pinned_revisions"]["Qwen3.5/3.6 HEAD pins seen"].get(repo, ""),
        is_mtp=bool(found["mtp"]),
        is_base=bool(found["base"]),
    )


def _is_gone(file: Facts) -> bool:
    return _GONE in file.get("catalog_sizes_over_time", ())


def _sets(files: Sequence[Facts]) -> list[list[Facts]]:
    """Files in one piece alone, the parts of a set together; raises ValueError for a set with a part missing."""
    groups: dict[tuple[str, int], list[Facts]] = defaultdict(list)
    for file in files:
        groups[_FIRST_PART.sub("", file["path"]), file.get("shards", 0)].append(file)
    for (name, shards), group in groups.items():
        group.sort(key=lambda file: int(file.get("shard", 0)))
        if shards and [file["shard"] for file in group] != list(range(1, shards + 1)):
            raise ValueError(f"{name}: parts are missing")
    return list(groups.values())


def _file(group: Sequence[Facts], repository_seen: str) -> CatalogFile:
    first = group[0]
    is_set = len(group) > 1
    return CatalogFile(
        path=first["path"],
        n_bytes=sum(_n_bytes(file) for file in group),
        kind=first["kind"],
        quant=first.get("quant", "") or _mmproj_quant(first),
        is_exact=all("bytes" in file for file in group),
        sha256="" if is_set else first.get("sha256", ""),
        seen=first["first_seen"] if first["first_seen"] != repository_seen else "",
        parts=tuple(_part(file) for file in group) if is_set else (),
        note="" if is_set else first.get("note", ""),
    )


def _part(file: Facts) -> Part:
    return Part(_n_bytes(file), file.get("sha256", ""), "bytes" in file)


def _n_bytes(file: Facts) -> int:
    """Exact where the sources are; else the rounded size they print."""
    return int(file["bytes"]) if "bytes" in file else round(file["size_gib_approx"] * GIB)


def _mmproj_quant(file: Facts) -> str:
    found = re.search(r"-(F16|BF16|F32|Q8_0)\.gguf$", file["path"], re.IGNORECASE)
    return found[1].upper() if found and file["kind"] == "mmproj" else ""


def _with_mmproj(repositories: Sequence[Repository]) -> tuple[Repository, ...]:
    """Each with the picture file for its models: its own best, else that of the first uploader who has one."""
    own = {each.repo: _best_mmproj(each) for each in repositories}
    ranked = sorted(repositories, key=lambda each: (each.is_mtp, UPLOADERS.index(each.uploader)))

    def paired(repository: Repository) -> Repository:
        lender = (
            repository
            if own[repository.repo]
            else next((each for each in ranked if each.model == repository.model and own[each.repo]), repository)
        )
        return msgspec.structs.replace(repository, mmproj_repo=lender.repo, mmproj_path=own[lender.repo])

    return tuple(map(paired, repositories))


def _best_mmproj(repository: Repository) -> str:
    files = [file for file in repository.files if file.kind == "mmproj"]
    return min(files, key=lambda file: _MMPROJ_ORDER.index(file.quant)).path if files else ""


def _cut_offs(rules: Facts) -> tuple[CutOff, ...]:
    # The facts' only certain date is the first repair; the rest is inferred and needs a hash beside it.
    certain = rules["cutoffs_utc"]["unsloth/Qwen3.5-35B-A3B-GGUF"]["mxfp4_fix_after"]
    return tuple(
        CutOff(repo, certain, times["mxfp4_fix_after"], times["final_after"] or "")
        for repo, times in rules["cutoffs_utc"].items()
    )


def _superseded(facts: Facts) -> tuple[list[Superseded], list[WithdrawnFile]]:
    """Replaced bytes; and, of those, the files that were withdrawn instead of replaced."""
    superseded, withdrawn = [], []
    for entry in [*facts["superseded_sha256"], *facts["superseded_other"]["bartowski"]]:
        owner, name, path = entry["path"].split("/", 2)
        repo = f"{owner}/{name}"
        if "replaced_by" not in entry:
            instead = path.replace("-UD-Q4_K_M", "-UD-Q4_K_L")
            withdrawn.append(WithdrawnFile(repo, path, "2026-03-12", entry["sha256"], instead))
            continue
        reason = "replaced by the upload with the new template and importance matrix" if owner == "unsloth" else ""
        superseded.append(
            Superseded(
                entry["sha256"],
                repo,
                path,
                entry["seen"],
                entry["replaced_by"],
                entry.get("replacement_seen", ""),
                reason,
            )
        )
    return superseded, withdrawn


def _deletions(repos: Mapping[str, Sequence[Facts]]) -> list[WithdrawnFile]:
    return [
        WithdrawnFile(repo, file["path"], file["last_state_seen"])
        for repo, files in sorted(repos.items())
        for file in files
        if _is_gone(file)
    ]


if __name__ == "__main__":
    sys.exit(main())
