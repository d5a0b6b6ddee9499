"""Every code has a file that gets it, and one that differs in little and does not."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import get_args

import msgspec
import pytest

from qwendesk.hub.catalog_schema import QuantNote, Superseded, WithdrawnFile
from qwendesk.hub.evidence import Upstream, model_files, with_duplicates
from qwendesk.hub.file_hashes import hash_file
from qwendesk.hub.finding_texts import FindingCode
from tests.gguf_files import tensor
from tests.hub.verified import (
    BROKEN_TEMPLATE,
    FIXED_TEMPLATE,
    NEW,
    OLD,
    REPO,
    asked,
    catalog,
    current,
    findings,
    full,
    gather,
    gather_all,
    lay_record,
    mmproj,
    mxfp4,
    qwen,
    split,
    unsloth,
    with_hashes,
)

Q4, XL = "Qwen3.5-35B-A3B-Q4_K_M.gguf", "Qwen3.5-35B-A3B-UD-Q4_K_XL.gguf"
POINTER = b"version https://git-lfs.github.com/spec/v1\noid sha256:" + b"0" * 64 + b"\nsize 20000000000\n"
Case = Callable[[Path, bool], set[str]]
"""A folder, and whether the near miss is meant; the codes found."""


def _bytes(content: bytes) -> Case:
    def case(folder: Path, is_miss: bool) -> set[str]:
        path = qwen(folder / Q4)
        if not is_miss:
            path.write_bytes(content)
        return set(findings(path))

    return case


def _truncated(folder: Path, is_miss: bool) -> set[str]:
    path = qwen(folder / Q4)
    path.write_bytes(path.read_bytes() if is_miss else path.read_bytes()[:-1])
    return set(findings(path))


def _longer(folder: Path, is_miss: bool) -> set[str]:
    path = qwen(folder / Q4)
    path.write_bytes(path.read_bytes() + bytes(64 if is_miss else 64 * 1024))
    return set(findings(path))


def _other_bytes(folder: Path, is_miss: bool) -> set[str]:
    path = qwen(folder / Q4)
    lay_record(path, hash_file(path) if is_miss else OLD)
    return set(findings(full(path)))


def _part_gone(folder: Path, is_miss: bool) -> set[str]:
    parts = split(folder)
    if not is_miss:
        parts[1].unlink()
    return set(findings(parts[0]))


def _part_swapped(folder: Path, is_miss: bool) -> set[str]:
    parts = split(folder)
    if not is_miss:
        shutil.copyfile(parts[1], parts[2])
    return set(findings(parts[0]))


def _small_pictures(folder: Path, is_miss: bool) -> set[str]:
    path = mmproj(folder / "mmproj-F16.gguf")
    if not is_miss:
        path.write_bytes(bytes(1024))
    return set(findings(path))


def _other_width(folder: Path, is_miss: bool) -> set[str]:
    qwen(folder / Q4)
    return set(findings(mmproj(folder / "mmproj-F16.gguf", 64 if is_miss else 128)))


def _no_pictures(folder: Path, is_miss: bool) -> set[str]:
    path = qwen(folder / Q4)
    if is_miss:
        mmproj(folder / "mmproj-F16.gguf")
    return set(findings(path))


def _architecture(folder: Path, is_miss: bool) -> set[str]:
    return set(findings(qwen(folder / "x.gguf", general__architecture="qwen35moe" if is_miss else "flux")))


def _draft(folder: Path, is_miss: bool) -> set[str]:
    return set(findings(qwen(folder / (Q4 if is_miss else f"mtp-{Q4}"))))


def _ollama(folder: Path, is_miss: bool) -> set[str]:
    inside = [tensor("token_embd.weight", 64, 4), *([] if is_miss else [tensor("v.patch_embd.weight", 64)])]
    return set(findings(qwen(folder / "blobs" / f"sha256-{'a' * 64}", inside)))


def _replaced(folder: Path, is_miss: bool) -> set[str]:
    path = unsloth(folder / Q4)
    sha256 = OLD if is_miss else hash_file(path)
    return set(findings(full(path), catalog(superseded=[Superseded(sha256, REPO, Q4, "2026-02-27")])))


def _before_the_fix(folder: Path, is_miss: bool) -> set[str]:
    path = unsloth(folder / REPO / Q4)
    lay_record(path, OLD)
    date = "2026-03-06T00:00:00Z" if is_miss else "2026-02-25T00:00:00Z"
    there = Upstream(sha256=OLD if is_miss else NEW, n_bytes=path.stat().st_size, local_date=date)
    return set(findings(asked(gather(path), there), catalog(files=[current(Q4)])))


def _mxfp4(folder: Path, is_miss: bool) -> set[str]:
    weights = [tensor("token_embd.weight", 64, 4), mxfp4("blk.0.attn_qkv.weight")]
    path = unsloth(
        folder / (XL.replace("UD-Q4_K_XL", "MXFP4_MOE") if is_miss else XL),
        weights,
        general__file_type=38 if is_miss else 15,
    )
    return set(findings(path))


def _template(folder: Path, is_miss: bool) -> set[str]:
    return set(findings(qwen(folder / Q4, tokenizer__chat_template=FIXED_TEMPLATE if is_miss else BROKEN_TEMPLATE)))


def _no_template(folder: Path, is_miss: bool) -> set[str]:
    return set(findings(qwen(folder / Q4, tokenizer__chat_template=FIXED_TEMPLATE if is_miss else "")))


def _imatrix(folder: Path, is_miss: bool) -> set[str]:
    return set(findings((unsloth if is_miss else qwen)(folder / XL, general__quantized_by="Unsloth")))


def _better_quant(folder: Path, is_miss: bool) -> set[str]:
    instead = "" if is_miss else "UD-Q4_K_L"
    note = QuantNote("Q4_K_M", "A note.", "a test", model="Qwen3.5-35B-A3B", uploader="unsloth", instead=instead)
    return set(findings(unsloth(folder / Q4), catalog(notes=[note])))


def _withdrawn(folder: Path, is_miss: bool) -> set[str]:
    path = XL if is_miss else Q4
    return set(
        findings(unsloth(folder / Q4), catalog(deletions=[WithdrawnFile(REPO, path, "2026-03-12", OLD, "x.gguf")]))
    )


def _twice(folder: Path, is_miss: bool) -> set[str]:
    qwen(folder / "a.gguf")
    qwen(folder / "b.gguf", general__name="Another" if is_miss else "Qwen3.5-35B-A3B")
    everything = with_duplicates([with_hashes(each) for each in gather_all(model_files(folder))])
    return set(findings(msgspec.structs.replace(everything[0])))


CASES: dict[str, Case] = {
    "not-gguf": _bytes(bytes(4096)),
    "lfs-pointer": _bytes(POINTER),
    "html-instead-of-model": _bytes(b"<!DOCTYPE html>\n<html><body>" + b"Access denied. " * 90 + b"</body></html>"),
    "truncated": _truncated,
    "size-mismatch": _longer,
    "hash-mismatch": _other_bytes,
    "missing-shard": _part_gone,
    "shard-mismatch": _part_swapped,
    "too-small-mmproj": _small_pictures,
    "mmproj-mismatch": _other_width,
    "no-mmproj": _no_pictures,
    "unsupported-arch": _architecture,
    "draft-file": _draft,
    "ollama-blob": _ollama,
    "outdated-upstream": _replaced,
    "unsloth-before-fix": _before_the_fix,
    "mxfp4-attention": _mxfp4,
    "broken-tool-template": _template,
    "no-template": _no_template,
    "no-imatrix": _imatrix,
    "quant-not-recommended": _better_quant,
    "deleted-upstream": _withdrawn,
    "duplicate": _twice,
}


def test_every_finding_code_has_a_case() -> None:
    assert set(CASES) == set(get_args(FindingCode))


@pytest.mark.parametrize("code", CASES)
def test_finding_applies_to_its_file_but_not_to_a_similar_one(tmp_path: Path, code: str) -> None:
    assert code in CASES[code](tmp_path / "hit", False)
    assert code not in CASES[code](tmp_path / "miss", True)
