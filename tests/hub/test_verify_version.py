"""Old and mistaken uploads are found by the evidence that decides, in its order; present files never are."""

from pathlib import Path

import msgspec
import pytest

from qwendesk.hub.catalog import Catalog, load_catalog
from qwendesk.hub.catalog_schema import CatalogFile, Repository, Superseded, WithdrawnFile
from qwendesk.hub.evidence import Upstream
from qwendesk.hub.file_hashes import hash_file
from qwendesk.hub.verify import verify
from tests.gguf_files import tensor
from tests.hub.verified import (
    MXFP4,
    NEW,
    OLD,
    OTHER,
    REPO,
    asked,
    catalog,
    codes,
    current,
    findings,
    full,
    gather,
    lay_record,
    mxfp4,
    qwen,
    split,
    unsloth,
)  # fmt: skip

XL = "Qwen3.5-35B-A3B-UD-Q4_K_XL.gguf"
Q4 = "Qwen3.5-35B-A3B-Q4_K_M.gguf"
ATTENTION = [tensor("token_embd.weight", 64, 4), mxfp4("blk.0.attn_qkv.weight"), mxfp4("blk.0.ssm_out.weight")]
EXPERTS = [tensor("token_embd.weight", 64, 4), mxfp4("blk.0.ffn_up_exps.weight")]


def replaced(path: str, sha256: str = OLD) -> Superseded:
    return Superseded(sha256, REPO, path, "2026-03-01", NEW, "2026-03-05", "new template")


@pytest.mark.parametrize("tensors", [ATTENTION, EXPERTS])
@pytest.mark.parametrize("quant", ["UD-Q2_K_XL", "UD-Q3_K_XL", "UD-Q4_K_XL"])
def test_mxfp4_in_an_early_unsloth_file_is_bad_without_any_network(tmp_path: Path, tensors: list, quant: str) -> None:
    found = findings(unsloth(tmp_path / f"Qwen3.5-35B-A3B-{quant}.gguf", tensors))

    assert found["mxfp4-attention"].severity == "bad"
    assert tensors[1].name in found["mxfp4-attention"].evidence
    assert "quantized_by" in found["mxfp4-attention"].evidence
    assert "MXFP4" in found["unsloth-before-fix"].evidence


def test_fix_of_an_early_file_is_the_current_file(tmp_path: Path) -> None:
    path = unsloth(tmp_path / XL, ATTENTION)

    fix = findings(path, catalog(files=[current(XL)]))["mxfp4-attention"].fix

    assert fix is not None
    assert (fix.kind, fix.repo, fix.path) == ("download_current", REPO, XL)


def test_an_early_file_is_known_by_name_alone(tmp_path: Path) -> None:
    assert "mxfp4-attention" in codes(qwen(tmp_path / XL, ATTENTION))


def test_an_early_set_is_known_by_its_folder(tmp_path: Path) -> None:
    parts = split(tmp_path / "unsloth" / "Qwen3.5-122B-A10B-GGUF" / "UD-Q4_K_XL", "Qwen3.5-122B-A10B-UD-Q4_K_XL")
    content = parts[2].read_bytes()
    at = content.index(b"blk.1.attn_q.weight") + len(b"blk.1.attn_q.weight") + 4 + 8
    parts[2].write_bytes(content[:at] + MXFP4.to_bytes(4, "little") + content[at + 4 :])
    # The second tensor's offset follows from the first one's size: 64 elements are 256 bytes in F32 and 34 in MXFP4.
    at = content.index(b"blk.1.ffn_up.weight") + len(b"blk.1.ffn_up.weight") + 4 + 8 + 4
    moved = bytearray(parts[2].read_bytes())
    moved[at : at + 8] = (64).to_bytes(8, "little")
    parts[2].write_bytes(bytes(moved))

    assert "mxfp4-attention" in codes(parts[0])


def test_a_renamed_early_file_is_known_by_its_attention_tensors(tmp_path: Path) -> None:
    assert "mxfp4-attention" in codes(unsloth(tmp_path / "model.gguf", ATTENTION))
    assert "mxfp4-attention" not in codes(unsloth(tmp_path / "other.gguf", EXPERTS))


@pytest.mark.parametrize("file_type", [38, 38 + 1024])
@pytest.mark.parametrize("name", ["Qwen3.5-35B-A3B-MXFP4_MOE.gguf", XL, "model.gguf"])
def test_intended_mxfp4_has_no_finding(tmp_path: Path, name: str, file_type: int) -> None:
    assert codes(unsloth(tmp_path / name, ATTENTION, general__file_type=file_type)) == set()


def test_repaired_file_of_the_same_name_has_no_finding(tmp_path: Path) -> None:
    assert codes(unsloth(tmp_path / XL)) == set()


def test_mxfp4_is_only_a_mistake_in_this_family_and_from_this_uploader(tmp_path: Path) -> None:
    other_family = unsloth(tmp_path / "gpt-oss-20b-UD-Q4_K_XL.gguf", EXPERTS, general__architecture="gpt-oss")
    other_maker = qwen(tmp_path / "Qwen3.5-35B-A3B-Q4_K_XL.gguf", EXPERTS, general__quantized_by="Somebody")

    assert codes(other_family) == set()
    assert codes(other_maker) == set()


def test_current_bytes_have_no_finding(tmp_path: Path) -> None:
    path = unsloth(tmp_path / XL, ATTENTION)
    sha256 = hash_file(path)

    assert codes(full(path), catalog(files=[current(XL, sha256)])) == set()
    assert codes(asked(full(path), Upstream(sha256=sha256, local_date="2026-02-25T00:00:00Z"))) == set()


def test_replaced_bytes_are_outdated_without_any_network(tmp_path: Path) -> None:
    path = qwen(tmp_path / Q4)
    known = catalog(files=[current(Q4)], superseded=[replaced(Q4, hash_file(path))])

    found = findings(full(path), known)["outdated-upstream"]

    assert codes(path, known) == set()
    assert found.severity == "warning"
    assert found.fix is not None
    assert (found.fix.repo, found.fix.path) == (REPO, Q4)
    assert "new template" in found.evidence


def test_download_record_alone_proves_a_file_outdated(tmp_path: Path) -> None:
    path = qwen(tmp_path / REPO / Q4)
    lay_record(path, OLD)

    assert "outdated-upstream" in codes(path, catalog(superseded=[replaced(Q4)]))


def test_bytes_both_replaced_and_current_are_current(tmp_path: Path) -> None:
    path = qwen(tmp_path / Q4)
    sha256 = hash_file(path)

    assert codes(full(path), catalog(files=[current(Q4, sha256)], superseded=[replaced(Q4, sha256)])) == set()


def test_shard_1_of_a_replaced_set_decides_nothing(tmp_path: Path) -> None:
    parts = split(tmp_path)
    first, second = (catalog(superseded=[replaced(part.name, hash_file(part))]) for part in parts[:2])

    assert codes(full(parts[0]), first) == set()
    assert codes(full(parts[0]), second) == {"outdated-upstream"}


def test_other_bytes_on_the_hub_make_a_file_outdated(tmp_path: Path) -> None:
    path = qwen(tmp_path / REPO / Q4)
    lay_record(path, OLD)
    there = Upstream(sha256=NEW, n_bytes=5, date="2026-05-01T00:00:00Z")

    found = findings(asked(gather(path), there))

    assert "2026-05-01" in found["outdated-upstream"].evidence
    assert "unsloth-before-fix" not in found


def test_without_a_hash_only_another_size_makes_a_file_outdated(tmp_path: Path) -> None:
    path = qwen(tmp_path / REPO / Q4)

    assert codes(asked(gather(path), Upstream(sha256=NEW, n_bytes=path.stat().st_size))) == set()
    assert codes(asked(gather(path), Upstream(sha256=NEW, n_bytes=7))) == {"outdated-upstream"}


@pytest.mark.parametrize(
    ("local_date", "is_early"),
    [
        ("2026-02-25T09:00:00Z", True),
        ("2026-02-27T17:59:59+00:00", True),
        ("2026-03-01T00:00:00Z", True),  # after the first repair, before the last: it counts as other bytes are there
        ("2026-03-05T00:00:00Z", False),
        ("2026-04-01T00:00:00Z", False),
        ("", False),
        ("yesterday", False),
    ],
)
def test_commit_date_tells_uploads_from_before_the_repair(tmp_path: Path, local_date: str, is_early: bool) -> None:
    path = unsloth(tmp_path / REPO / Q4)
    lay_record(path, OLD)

    found = codes(asked(gather(path), Upstream(sha256=NEW, n_bytes=5, local_date=local_date)))

    assert found == {"outdated-upstream"} | ({"unsloth-before-fix"} if is_early else set())


def test_between_the_repairs_a_date_alone_proves_nothing(tmp_path: Path) -> None:
    path = unsloth(tmp_path / REPO / Q4)
    lay_record(path, NEW)

    assert codes(asked(gather(path), Upstream(sha256=NEW, n_bytes=5, local_date="2026-03-01T00:00:00Z"))) == {
        "size-mismatch"
    }


@pytest.mark.parametrize("repo", ["unsloth/Qwen3.5-9B-GGUF", "unsloth/Qwen3.6-35B-A3B-GGUF", "bartowski/Qwen_X-GGUF"])
def test_dates_count_only_for_the_repositories_that_were_repaired(tmp_path: Path, repo: str) -> None:
    path = qwen(tmp_path / repo / "Q4_K_M.gguf", general__name="x", quantize__imatrix__file="x")
    lay_record(path, OLD)
    there = Upstream(sha256=NEW, n_bytes=5, local_date="2026-02-25T00:00:00Z")

    assert "unsloth-before-fix" not in {each.code for each in verify(asked(gather(path), there), load_catalog())}


def test_ud_quant_without_importance_matrix_is_a_warning(tmp_path: Path) -> None:
    found = findings(qwen(tmp_path / XL, general__quantized_by="Unsloth"))

    assert found["no-imatrix"].severity == "warning"
    assert codes(qwen(tmp_path / Q4, general__quantized_by="Unsloth")) == set()
    assert codes(qwen(tmp_path / "Somebody-UD-Q4_K_XL.gguf", general__quantized_by="Somebody")) == set()


def test_a_withdrawn_file_names_what_replaced_it(tmp_path: Path) -> None:
    name, instead = "Qwen3.5-35B-A3B-UD-Q4_K_M.gguf", "Qwen3.5-35B-A3B-UD-Q4_K_L.gguf"
    known = catalog(deletions=[WithdrawnFile(REPO, name, "2026-03-12", OTHER, instead)])

    found = findings(unsloth(tmp_path / name), known)["deleted-upstream"]

    assert found.severity == "warning"
    assert found.fix is not None
    assert found.fix.path == instead
    assert "deleted-upstream" not in codes(unsloth(tmp_path / "Qwen3.5-397B-A17B-UD-Q4_K_M.gguf"), known)


def test_file_removed_from_the_hub_is_an_info(tmp_path: Path) -> None:
    path = qwen(tmp_path / REPO / Q4)

    found = findings(asked(gather(path), Upstream(is_gone=True)))

    assert found["deleted-upstream"].severity == "info"
    assert "outdated-upstream" not in found


@pytest.mark.parametrize("quant", ["Q4_K_M", "Q5_K_M", "Q6_K", "Q8_0"])
def test_an_unsloth_file_of_another_size_than_the_current_one_is_probably_outdated(tmp_path: Path, quant: str) -> None:
    name = f"Qwen3.5-35B-A3B-{quant}.gguf"
    path = unsloth(tmp_path / name)
    size = path.stat().st_size

    found = findings(path, catalog(files=[current(name, n_bytes=size + 1)]))["outdated-upstream"]

    assert found.severity == "warning"
    assert "probably" in found.message
    assert f"{size + 1:,}" in found.message
    assert "quantized_by" in found.evidence
    assert "2026-02-27" in found.evidence
    assert found.fix is not None
    assert (found.fix.kind, found.fix.path) == ("download_current", name)


def test_the_folder_alone_names_the_uploader_of_a_file_of_another_size(tmp_path: Path) -> None:
    path = qwen(tmp_path / REPO / Q4)
    known = catalog(files=[current(Q4, n_bytes=path.stat().st_size + 1)])

    assert codes(path, known) == {"outdated-upstream"}
    assert codes(qwen(tmp_path / "bartowski" / "Qwen_Qwen3.5-35B-A3B-GGUF" / Q4), known) == set()
    assert codes(qwen(tmp_path / Q4), known) == set()
    assert codes(qwen(tmp_path / XL, quantize__imatrix__file="x"), catalog(files=[current(XL, n_bytes=1000)])) == set()
    assert codes(unsloth(tmp_path / Q4, general__quantized_by="bartowski"), known) == set()


def test_a_file_of_the_current_size_is_not_outdated(tmp_path: Path) -> None:
    path = unsloth(tmp_path / Q4)

    assert codes(path, catalog(files=[current(Q4, n_bytes=path.stat().st_size)])) == set()
    assert codes(path, catalog(files=[current(Q4)])) == set(), "a file this small is no version of it"


@pytest.mark.parametrize(("factor", "is_outdated"), [(1.004, False), (0.996, False), (1.02, True), (0.96, True)])
def test_a_rounded_size_counts_only_beyond_its_rounding(tmp_path: Path, factor: float, is_outdated: bool) -> None:
    path = unsloth(tmp_path / Q4)
    listed = CatalogFile(Q4, round(path.stat().st_size * factor), quant="Q4_K_M")

    assert ("outdated-upstream" in codes(path, catalog(files=[listed]))) is is_outdated


def test_records_and_the_hub_go_before_the_size(tmp_path: Path) -> None:
    path = unsloth(tmp_path / REPO / Q4)
    known = catalog(files=[current(Q4, n_bytes=path.stat().st_size + 1)])
    there = Upstream(sha256=NEW, n_bytes=path.stat().st_size)

    assert codes(asked(gather(path), there), known) == set()
    lay_record(path, OTHER)
    assert codes(path, known) == set()


def test_a_model_with_mtp_layers_is_not_compared_with_one_without(tmp_path: Path) -> None:
    path = unsloth(tmp_path / Q4, qwen35moe__nextn_predict_layers=1)
    known = catalog(files=[current(Q4, n_bytes=path.stat().st_size + 1)])
    model = known.models[0].id
    mtp = Repository(f"unsloth/{model}-MTP-GGUF", model, "2026-05-27", (current(Q4, OTHER),), is_mtp=True)
    both = Catalog(msgspec.structs.replace(known.contents, repositories=(*known.repositories, mtp)))

    assert codes(path, both) == set()
    assert codes(path, known) == {"outdated-upstream"}


def test_sizes_count_only_for_files_that_were_replaced(tmp_path: Path) -> None:
    path = unsloth(tmp_path / Q4)
    known = catalog(files=[current(Q4, n_bytes=path.stat().st_size + 1)])
    without = msgspec.structs.replace(known.contents, cut_offs=())

    assert codes(path, Catalog(without)) == set()
    assert codes(path, Catalog(msgspec.structs.replace(without, superseded=(replaced(Q4),)))) == {"outdated-upstream"}
