"""One word, one sentence and one button for each model."""

import re

import pytest

from qwendesk.hub.finding_texts import FINDINGS
from qwendesk.hub.findings import Detail, Finding, FindingFix
from qwendesk.hub.library import Library, LibraryFile, LibraryModel
from qwendesk.models.file_checker import ModelCheck
from qwendesk.models.model_state import state_of

PATH, REPO = "/models/o/n-GGUF/m.gguf", "o/n-GGUF"
AGAIN = FindingFix("download_current", REPO, "m.gguf", n_bytes=22_226_000_000)


def model(path: str = PATH, origin="ours", **changes) -> LibraryModel:
    return LibraryModel(
        files=(LibraryFile(path, 10, 1),),
        name="m",
        origin=origin,
        place="/models",
        writable=origin in ("ours", "folder"),
        **changes,
    )


def finding(code, severity="bad", fix: FindingFix | None = AGAIN) -> Finding:
    """A finding of this severity; of a code with several cases, the first that has it."""
    case = next(case for (each, case), text in FINDINGS.items() if (each, text.severity) == (code, severity))
    names = set(re.findall(r"{(\w+)}", FINDINGS[code, case].message))
    return Finding(code=code, case=case, values=dict.fromkeys(names, "x."), details=(Detail("no-header"),), fix=fix)


def state(*findings, of: LibraryModel | None = None, others=(), checks=(), templates=(), **known):
    of = of or model()
    check = ModelCheck(path=of.path, findings=findings, **known)
    by_path = {each.path: each for each in (*checks, check)}
    return state_of(of, Library(models=(of, *others)), by_path, templates=templates)


@pytest.mark.parametrize(
    ("code", "severity", "kind", "tone"),
    [
        ("truncated", "bad", "corrupt", "bad"),
        ("hash-mismatch", "bad", "corrupt", "bad"),
        ("hash-mismatch", "warning", "not_verified", "warn"),
        ("size-mismatch", "warning", "not_verified", "warn"),
        ("missing-shard", "bad", "missing_shard", "bad"),
        ("mxfp4-attention", "bad", "outdated", "bad"),
        ("outdated-upstream", "warning", "outdated", "warn"),
        ("broken-tool-template", "warning", "broken_template", "warn"),
        ("quant-not-recommended", "info", "not_recommended", "warn"),
        ("no-mmproj", "info", "not_verified", "plain"),
        ("deleted-upstream", "info", "not_verified", "plain"),
    ],
)
def test_the_finding_decides_the_chip(code, severity, kind, tone):
    found = state(finding(code, severity))

    assert (found.kind, found.tone) == (kind, tone)
    assert found.sentence.endswith((".", "…"))


def test_model_without_findings_is_verified_only_with_known_hashes():
    assert state().kind == "not_verified"
    assert state().action == "verify"
    assert state(is_hashed=True, is_confirmed=True).kind == "verified"
    unknown = state(is_hashed=True)
    assert (unknown.kind, unknown.action) == ("not_verified", "")
    assert unknown.sentence.startswith("The file is whole. Its source is unknown")
    assert state(is_hashed=True, is_confirmed=True).sentence.startswith("The file is whole: every byte")
    assert state_of(model(), Library(), {}).kind == "checking"


def test_worst_finding_comes_first_and_others_are_notes():
    template = finding("broken-tool-template", "warning", FindingFix("use_template", "Qwen/M", "t.jinja"))
    pictures = finding("no-mmproj", "info", FindingFix("download_mmproj", REPO, "mmproj.gguf"))
    found = state(template, finding("missing-shard"), pictures, finding("no-imatrix", "warning"))

    assert found.kind == "missing_shard"
    assert [note.code for note in found.notes] == ["broken-tool-template"]


def test_several_signs_of_one_early_upload_are_one_message():
    found = state(finding("mxfp4-attention"), finding("unsloth-before-fix"), finding("no-imatrix", "warning"))

    assert (found.sentence, found.notes) == (finding("mxfp4-attention").message, ())


def test_another_apps_file_gets_a_copy_of_ours():
    found = state(finding("mxfp4-attention"), of=model("/lm/o/n-GGUF/m.gguf", "lmstudio"))

    assert found.fix is not None
    assert found.fix.label == "Download a fixed copy (20.7 GB)"
    assert found.sentence.endswith("The file of LM Studio won't be changed.")
    assert (found.fix.repo, found.fix.path) == (REPO, "m.gguf")


def test_another_apps_file_is_never_offered_for_deletion():
    delete = finding("duplicate", "info", FindingFix("delete_copy"))

    assert state(delete).notes[0].fix is not None
    assert state(delete, of=model("/lm/o/n-GGUF/m.gguf", "lmstudio")).notes[0].fix is None


def test_present_repaired_copy_is_not_downloaded_again():
    ours = model("/models/o/n-GGUF/m.gguf", repo=REPO, repo_path="m.gguf")
    old = model("/added/m.gguf", "folder")
    sound = ModelCheck(path=ours.path)

    found = state(finding("mxfp4-attention"), of=old, others=(ours,), checks=(sound,))
    assert found.fix is not None
    assert found.fix.kind == "delete"
    theirs = model("/lm/m.gguf", "lmstudio")
    assert state(finding("mxfp4-attention"), of=theirs, others=(ours,), checks=(sound,)).fix is None

    also_old = ModelCheck(path=ours.path, findings=(finding("outdated-upstream", "warning"),))
    again = state(finding("mxfp4-attention"), of=old, others=(ours,), checks=(also_old,))
    assert again.fix is not None
    assert again.fix.kind == "download_current"


def test_replaced_broken_template_is_only_a_note():
    broken = finding("broken-tool-template", "warning", FindingFix("use_template", "Qwen/M", "t.jinja"))
    assert state(broken).kind == "broken_template"

    repaired = state(broken, templates=("Qwen/M",), is_hashed=True, is_confirmed=True)

    assert repaired.kind == "verified"
    assert "Qwen/M" in repaired.notes[0].message
    assert repaired.notes[0].fix is None


def test_only_wrong_bytes_and_repaired_uploads_are_alerts():
    assert state(finding("truncated")).is_alert
    assert state(finding("outdated-upstream", "warning")).is_alert
    assert not state(finding("quant-not-recommended", "info")).is_alert
    assert not state().is_alert
