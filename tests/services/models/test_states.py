"""One word, one sentence and one button for each model."""

import pytest

from qwendesk.hub.findings import Finding, Fix
from qwendesk.hub.library import Library, LibraryFile, LibraryModel
from qwendesk.services.models.judging import ModelCheck
from qwendesk.services.models.states import state_of

PATH, REPO = "/models/o/n-GGUF/m.gguf", "o/n-GGUF"
AGAIN = Fix("download_current", "Download the present file (20.7 GB)", REPO, "m.gguf")


def model(path: str = PATH, origin="ours", **changes) -> LibraryModel:
    return LibraryModel(
        files=(LibraryFile(path, 10, 1),),
        name="m",
        origin=origin,
        place="/models",
        writable=origin in ("ours", "folder"),
        **changes,
    )


def finding(code, severity="bad", fix: Fix | None = AGAIN) -> Finding:
    return Finding(code=code, severity=severity, message=f"It is {code}.", evidence="seen", fix=fix)


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


def test_nothing_found_is_verified_only_when_the_bytes_are_known():
    assert state().kind == "not_verified"
    assert state().action == "verify"
    assert state(is_hashed=True, is_confirmed=True).kind == "verified"
    unknown = state(is_hashed=True)
    assert (unknown.kind, unknown.action) == ("not_verified", "")
    assert state_of(model(), Library(), {}).kind == "checking"


def test_the_worst_comes_first_and_the_rest_is_noted():
    template = finding("broken-tool-template", "warning", Fix("fetch_template", "Use it", "Qwen/M", "t.jinja"))
    pictures = finding("no-mmproj", "info", Fix("fetch_mmproj", "Download", REPO, "mmproj.gguf"))
    found = state(template, finding("missing-shard"), pictures, finding("no-imatrix", "warning"))

    assert found.kind == "missing_shard"
    assert [note.code for note in found.notes] == ["broken-tool-template"]


def test_several_signs_of_one_early_upload_make_one_sentence():
    found = state(finding("mxfp4-attention"), finding("unsloth-before-fix"), finding("no-imatrix", "warning"))

    assert (found.sentence, found.notes) == ("It is mxfp4-attention.", ())


def test_another_apps_file_gets_a_copy_of_ours():
    found = state(finding("mxfp4-attention"), of=model("/lm/o/n-GGUF/m.gguf", "lmstudio"))

    assert found.fix is not None
    assert found.fix.label == "Download a fixed copy (20.7 GB); LM Studio's stays"
    assert (found.fix.repo, found.fix.path) == (REPO, "m.gguf")


def test_another_apps_file_is_never_offered_for_deletion():
    delete = finding("duplicate", "info", Fix("delete", "Delete this copy"))

    assert state(delete).notes[0].fix is not None
    assert state(delete, of=model("/lm/o/n-GGUF/m.gguf", "lmstudio")).notes[0].fix is None


def test_a_repaired_copy_that_is_here_is_not_downloaded_again():
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


def test_a_broken_template_that_is_replaced_is_only_noted():
    broken = finding("broken-tool-template", "warning", Fix("fetch_template", "Use it", "Qwen/M", "t.jinja"))
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
