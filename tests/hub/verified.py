"""Made-up model files and catalogs for the tests of verification."""

from collections.abc import Iterable, Sequence
from pathlib import Path

import msgspec

from qwendesk.core.model_facts import Hyperparameters
from qwendesk.hub import evidence as evidence_module
from qwendesk.hub.catalog import Catalog
from qwendesk.hub.catalog_schema import (
    SCHEMA_VERSION,
    CatalogFile,
    CatalogModel,
    Contents,
    CutOff,
    Licence,
    Part,
    QuantNote,
    Repository,
    Superseded,
    WithdrawnFile,
)
from qwendesk.hub.evidence import Evidence, Upstream
from qwendesk.hub.file_hashes import hash_file
from qwendesk.hub.findings import Finding
from qwendesk.hub.header_cache import HeaderCache
from qwendesk.hub.verify import verify
from tests.gguf_files import F32, mmproj_values, model_values, tensor, write_model
from tools.gguf_writer import Tensor, Value

MXFP4 = 39
BROKEN_TEMPLATE = (
    "{% for tool_call in message.tool_calls %}{% for name, value in tool_call.arguments|items %}"
    "{{ name }}={{ value }}{% endfor %}{% endfor %}"
)
FIXED_TEMPLATE = "{% if tool_call.arguments is mapping %}" + BROKEN_TEMPLATE + "{% endif %}"
REPO = "unsloth/Qwen3.5-35B-A3B-GGUF"
OLD, NEW, OTHER = "a" * 64, "b" * 64, "c" * 64
COMMIT = "0123456789" * 4


def catalog(
    *,
    files: Sequence[CatalogFile] = (),
    superseded: Sequence[Superseded] = (),
    deletions: Sequence[WithdrawnFile] = (),
    notes: Sequence[QuantNote] = (),
) -> Catalog:
    """One model in Unsloth's repository with a picture file, and whatever a test needs."""
    model = CatalogModel(
        id="Qwen3.5-35B-A3B",
        purpose="Tests",
        released="2026-02-24",
        architecture="qwen35moe",
        params_b=35,
        active_params_b=3,
        base_repo="Qwen/Qwen3.5-35B-A3B",
        presets="p",
        hyperparameters=Hyperparameters(**dict.fromkeys(Hyperparameters.__struct_fields__, 1)),
        licence=Licence("Apache 2.0", source="Tests"),
    )
    mmproj = CatalogFile("mmproj-F16.gguf", 899_283_648, kind="mmproj", quant="F16", is_exact=True)
    repository = Repository(REPO, model.id, "2026-05-27", (*files, mmproj), mmproj_repo=REPO, mmproj_path=mmproj.path)
    return Catalog(
        Contents(
            schema_version=SCHEMA_VERSION,
            date="2026-07-29",
            sources=(),
            models=(model,),
            repositories=(repository,),
            superseded=tuple(superseded),
            deletions=tuple(deletions),
            notes=tuple(notes),
            cut_offs=(CutOff(REPO, "2026-02-27T18:00:00Z", "2026-02-27T18:00:00Z", "2026-03-05T00:00:00Z"),),
        )
    )


def current(path: str, sha256: str = NEW, n_bytes: int = 20_000_000_000) -> CatalogFile:
    return CatalogFile(path, n_bytes, sha256=sha256, is_exact=True)


def current_set(path: str, hashes: Sequence[str]) -> CatalogFile:
    return CatalogFile(path, 3, parts=tuple(Part(1, sha256) for sha256 in hashes))


def qwen(path: Path, tensors: Sequence[Tensor] | None = None, **changes: Value) -> Path:
    """A sound little Qwen3.5-35B-A3B at `path`, whose folders are made; `changes` as for `model_values`."""
    path.parent.mkdir(parents=True, exist_ok=True)
    values = model_values(**({"general__name": "Qwen3.5-35B-A3B"} | changes))
    weights = [tensor("token_embd.weight", 64, 4), tensor("blk.0.attn_qkv.weight", 64, 2)]
    return write_model(path, values, weights if tensors is None else tensors)


def unsloth(path: Path, tensors: Sequence[Tensor] | None = None, **changes: Value) -> Path:
    """The same, with the header fields that Unsloth writes."""
    theirs: dict[str, Value] = {
        "general.quantized_by": "Unsloth",
        "quantize.imatrix.file": "Qwen3.5-35B-A3B-GGUF/imatrix_unsloth.gguf",
    }
    return qwen(path, tensors, **(theirs | changes))


def mmproj(path: Path, width: int = 64, **changes: Value) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    return write_model(path, mmproj_values(width, **changes), [tensor("mm.2.bias", width)])


def mxfp4(name: str) -> Tensor:
    return tensor(name, 64, 2, kind=MXFP4)


def split(folder: Path, name: str = "Qwen3.5-35B-A3B-Q4_K_M", count: int = 3, total: int | None = None) -> list[Path]:
    """A sound set of `count` parts as Unsloth has them: the first holds metadata alone."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = [folder / f"{name}-{number:05}-of-{count:05}.gguf" for number in range(1, count + 1)]
    tensors = 2 * (count - 1) if total is None else total
    for number, path in enumerate(paths):
        place: dict[str, Value] = {"split.no": number, "split.count": count, "split.tensors.count": tensors}
        if number == 0:
            qwen(path, [], qwen35moe__block_count=count - 1, **place)
        else:
            write_model(
                path, place, [tensor(f"blk.{number - 1}.{part}.weight", 64, kind=F32) for part in ("attn_q", "ffn_up")]
            )
    return paths


def lay_record(path: Path, sha256: str, commit: str = COMMIT) -> None:
    """The Hub library's record of a download into a folder."""
    record = path.parent / ".cache" / "huggingface" / "download" / f"{path.name}.metadata"
    record.parent.mkdir(parents=True, exist_ok=True)
    record.write_text(f"{commit}\n{sha256}\n1772000000.0\n", encoding="utf-8")


def gather(path: Path) -> Evidence:
    """Evidence on a file whose header was never read before."""
    return evidence_module.gather(path, HeaderCache())


def gather_all(paths: Iterable[Path]) -> list[Evidence]:
    """Evidence on each file; only once for shards of the same set."""
    return list({found.path: found for found in map(gather, paths)}.values())


def with_hashes(evidence: Evidence) -> Evidence:
    files = tuple(msgspec.structs.replace(file, sha256=hash_file(Path(file.path))) for file in evidence.files)
    return msgspec.structs.replace(evidence, files=files)


def full(path: Path) -> Evidence:
    return with_hashes(gather(path))


def asked(evidence: Evidence, upstream: Upstream) -> Evidence:
    """The same after the Hub said `upstream` of every file."""
    return msgspec.structs.replace(
        evidence, files=tuple(msgspec.structs.replace(file, upstream=upstream) for file in evidence.files)
    )


def findings(evidence: Evidence | Path, known: Catalog | None = None) -> dict[str, Finding]:
    """By code; fails when a code appears twice."""
    evidence = gather(evidence) if isinstance(evidence, Path) else evidence
    found = verify(evidence, known or catalog())
    by_code = {finding.code: finding for finding in found}
    assert len(by_code) == len(found)
    assert all(finding.message.endswith(".") and finding.evidence for finding in found)
    return dict(by_code)


def codes(evidence: Evidence | Path, known: Catalog | None = None) -> set[str]:
    return set(findings(evidence, known)) - {"no-mmproj"}
