"""The texts of findings: for each code its severity, chip and message, the texts of its details, and labels of fixes.

The window and the command line both use them. {name} stands for the value of that name, which belongs to a finding or a
detail. `shown_value` formats the values. After a change of an English text, `python -m tools.i18n update de` marks its
German one for translation. The file has over 500 lines so that all these texts are in one place.
"""

import types
from collections.abc import Mapping
from typing import Literal

import msgspec

from qwendesk.core.model_facts import BASE_MODEL, NO_TEMPLATE
from qwendesk.core.number_format import show_count, show_date
from qwendesk.core.translation import join_list, mark, tr
from qwendesk.core.units import show_bytes

FindingCode = Literal[
    "not-gguf",
    "lfs-pointer",
    "html-instead-of-model",
    "truncated",
    "size-mismatch",
    "hash-mismatch",
    "missing-shard",
    "shard-mismatch",
    "too-small-mmproj",
    "mmproj-mismatch",
    "no-mmproj",
    "unsupported-arch",
    "draft-file",
    "ollama-blob",
    "outdated-upstream",
    "unsloth-before-fix",
    "mxfp4-attention",
    "broken-tool-template",
    "no-template",
    "no-imatrix",
    "quant-not-recommended",
    "deleted-upstream",
    "duplicate",
]
# bad: bytes are wrong or missing, or known to give wrong answers. warning: sound, but outdated or not usable as
# expected. info: good to know.
Severity = Literal["info", "warning", "bad"]
Chip = Literal[
    "checking", "verified", "not_verified", "outdated", "corrupt", "missing_shard", "broken_template", "not_recommended"
]
Value = str | int | tuple[str, ...]


class FindingText(msgspec.Struct, frozen=True):
    """The severity, chip and message of a finding."""

    severity: Severity
    chip: Chip | None
    """None if the finding is only a note below the state of the file."""
    message: str


_EARLY_UNSLOTH = mark(
    "This is an early upload with an old chat template and importance matrix. Unsloth has replaced it."
)

CHIPS: Mapping[Chip, str] = types.MappingProxyType(
    {
        "checking": mark("Checking…"),
        "verified": mark("Verified"),
        "not_verified": mark("Not verified"),
        "outdated": mark("Outdated"),
        "corrupt": mark("Corrupt"),
        "missing_shard": mark("Missing shard"),
        "broken_template": mark("Broken template"),
        "not_recommended": mark("Not recommended"),
    }
)

# By code and case; the case is "" if a code has only one.
FINDINGS: Mapping[tuple[FindingCode, str], FindingText] = types.MappingProxyType(
    {
        ("not-gguf", "damaged"): FindingText("bad", "corrupt", mark("{name} is damaged. {reason} Download it again.")),
        ("not-gguf", "unreadable"): FindingText("bad", "corrupt", "{reason}"),
        ("not-gguf", "safetensors"): FindingText(
            "bad",
            "corrupt",
            mark("{name} is a safetensors file. QwenDesk runs GGUF files: find a repository with GGUF in its name."),
        ),
        ("not-gguf", "archive"): FindingText(
            "bad", "corrupt", mark("{name} is an archive or a PyTorch file. Unpack it, or find the GGUF version.")
        ),
        ("not-gguf", "old-ggml"): FindingText(
            "bad", "corrupt", mark("{name} is in an old GGML format that no current engine reads. Find a GGUF version.")
        ),
        ("not-gguf", "other"): FindingText(
            "bad",
            "corrupt",
            mark("{name} is named like a model but isn't one. Download it again or choose another."),
        ),
        ("lfs-pointer", ""): FindingText(
            "bad",
            "corrupt",
            mark("{name} is only a Git LFS pointer ({size}), not the model itself. Download it again."),
        ),
        ("html-instead-of-model", ""): FindingText(
            "bad",
            "corrupt",
            mark("{name} is a web page, probably an error message saved under this name. Download it again."),
        ),
        ("truncated", "header"): FindingText(
            "bad", "corrupt", mark("{name} is incomplete. It ends inside its header. Download it again.")
        ),
        ("truncated", "tensors"): FindingText(
            "bad",
            "corrupt",
            mark("{name} is incomplete. The last {missing_size} of {whole_size} are missing. Download it again."),
        ),
        ("truncated", "empty"): FindingText(
            "bad", "corrupt", mark("{name} is empty. Its download failed. Download it again.")
        ),
        ("size-mismatch", "recorded"): FindingText(
            "bad", "corrupt", mark("{name} has {n_bytes} bytes, but this version of it has {expected}.")
        ),
        ("size-mismatch", "longer"): FindingText(
            "warning",
            "not_verified",
            mark("{name} is {size} longer than its header says. Its download may have been joined wrongly: verify it."),
        ),
        ("hash-mismatch", "recorded"): FindingText(
            "bad", "corrupt", mark("{name} isn't what was downloaded. It was damaged, or changed since.")
        ),
        ("hash-mismatch", "current"): FindingText(
            "warning",
            "not_verified",
            mark(
                "{name} has the size of the current file but different bytes. It's damaged, or another upload of the "
                "same size."
            ),
        ),
        ("missing-shard", ""): FindingText(
            "bad", "missing_shard", mark("The model is incomplete. Missing shards ({count} of {total}): {names}.")
        ),
        ("missing-shard", "renamed"): FindingText(
            "bad",
            "missing_shard",
            mark("{name} is shard {number} of {total}, but its name doesn't say so. The engine can't find the others."),
        ),
        ("shard-mismatch", ""): FindingText(
            "bad",
            "corrupt",
            mark("The shards don't belong together. They come from different models, quants or uploads."),
        ),
        ("too-small-mmproj", ""): FindingText(
            "bad",
            "corrupt",
            mark("{name} has only {size}. A vision file has hundreds of MB, so models can't see with this one."),
        ),
        ("mmproj-mismatch", "other-kind"): FindingText(
            "warning",
            "not_recommended",
            mark("{name} isn't a vision file (mmproj). Its architecture is {architecture}."),
        ),
        ("mmproj-mismatch", "width"): FindingText(
            "warning",
            "not_recommended",
            mark(
                "{name} belongs to another model: its pictures have a width of {width}, but {model} needs {needed}. "
                "Use the vision file from the model's repository."
            ),
        ),
        ("mmproj-mismatch", "model-size"): FindingText(
            "warning",
            "not_recommended",
            mark("{name} belongs to a model of another size than those in its folder."),
        ),
        ("no-mmproj", ""): FindingText(
            "info", None, mark("This model can read pictures, but its vision file (mmproj) isn't here.")
        ),
        ("unsupported-arch", "big-endian"): FindingText(
            "warning",
            "not_recommended",
            mark("{name} is big-endian, so it was made for another kind of CPU. Find the usual version."),
        ),
        ("unsupported-arch", "old-version"): FindingText(
            "warning",
            "not_recommended",
            mark("{name} has GGUF version {version}, which is too old. Find a newer version of the model."),
        ),
        ("unsupported-arch", "new-version"): FindingText(
            "warning",
            "not_recommended",
            mark("{name} has GGUF version {version}, which this QwenDesk can't read. Update QwenDesk."),
        ),
        ("unsupported-arch", "tensor-type"): FindingText(
            "warning",
            "not_recommended",
            mark(
                "The tensor {tensor} of {name} has type {tensor_type}, which is newer than this engine. Check for a "
                "newer one on the Engine page, or choose another quant."
            ),
        ),
        ("unsupported-arch", "newer-type"): FindingText(
            "warning",
            "not_recommended",
            mark(
                "The tensor {tensor} of {name} has type {tensor_type}, which needs a newer engine: {engine} has it. "
                "Get it on the Engine page."
            ),
        ),
        ("unsupported-arch", "removed-type"): FindingText(
            "warning",
            "not_recommended",
            mark("{name} has tensors of type {tensor_type}, which llama.cpp no longer reads. Choose another quant."),
        ),
        ("unsupported-arch", "fork-type"): FindingText(
            "warning",
            "not_recommended",
            mark(
                "{name} has tensors of type {tensor_type}, which llama.cpp doesn't know. {program} loads it. For "
                "QwenDesk, choose another quant."
            ),
        ),
        ("unsupported-arch", "unknown-fork"): FindingText(
            "warning",
            "not_recommended",
            mark(
                "{name} has tensors of type {tensor_type}, a number that llama.cpp doesn't use. Its model card names "
                "the program that loads it. For QwenDesk, choose another quant."
            ),
        ),
        ("unsupported-arch", "rotated"): FindingText(
            "warning",
            "not_recommended",
            mark(
                "The weights of {name} are rotated, and with llama.cpp its answers would be nonsense. {program} loads "
                "it. For QwenDesk, choose another quant."
            ),
        ),
        ("unsupported-arch", "architecture"): FindingText(
            "warning",
            "not_recommended",
            mark(
                'The engine doesn\'t know the architecture "{architecture}". A newer one may: check for it on the '
                "Engine page."
            ),
        ),
        ("unsupported-arch", "newer-engine"): FindingText(
            "warning",
            "not_recommended",
            mark('The architecture "{architecture}" needs a newer engine: {engine} has it. Get it on the Engine page.'),
        ),
        ("unsupported-arch", "no-engine"): FindingText(
            "warning",
            "not_recommended",
            mark(
                'No engine knows the architecture "{architecture}" yet. The newest one at the last check was {engine}: '
                "check again later on the Engine page."
            ),
        ),
        ("draft-file", ""): FindingText(
            "info", None, mark("This is a draft model for speculative decoding, not a model to chat with.")
        ),
        ("draft-file", "head"): FindingText(
            "info", None, mark("This is a draft head (MTP). The model beside it is loaded with it, to answer faster.")
        ),
        ("draft-file", "lone-head"): FindingText(
            "info",
            None,
            mark("This is a draft head (MTP), not a model to chat with. Move it to the folder of its model."),
        ),
        ("ollama-blob", ""): FindingText(
            "warning",
            "not_recommended",
            mark("Ollama's own Qwen3.5 files only load in Ollama. This one isn't damaged."),
        ),
        ("outdated-upstream", ""): FindingText(
            "warning", "outdated", mark("The uploader has replaced {name} since this copy was made.")
        ),
        ("outdated-upstream", "size"): FindingText(
            "warning",
            "outdated",
            mark(
                "{name} is probably an older upload: it has {n_bytes} bytes, and the uploader's current file has "
                "{expected}."
            ),
        ),
        ("outdated-upstream", "rounded-size"): FindingText(
            "warning",
            "outdated",
            mark(
                "{name} is probably an older upload: it has {size}, and the uploader's current file about "
                "{expected_size}."
            ),
        ),
        ("unsloth-before-fix", "tensors"): FindingText("bad", "outdated", _EARLY_UNSLOTH),
        ("unsloth-before-fix", "date"): FindingText("warning", "outdated", _EARLY_UNSLOTH),
        ("mxfp4-attention", ""): FindingText(
            "bad",
            "outdated",
            mark("Part of this file is in MXFP4 by mistake, which garbles answers. Unsloth has replaced it."),
        ),
        ("broken-tool-template", ""): FindingText(
            "warning",
            "broken_template",
            mark("The chat template fails in chats with tool calls. QwenDesk works around it; other programs may not."),
        ),
        ("broken-tool-template", "replaced"): FindingText(
            "info", None, mark("The file's own chat template is broken. QwenDesk uses the one of {repo}.")
        ),
        ("no-template", ""): FindingText("info", None, NO_TEMPLATE),
        ("no-template", "base"): FindingText("info", None, BASE_MODEL),
        ("no-imatrix", ""): FindingText(
            "warning",
            "outdated",
            mark(
                "Unsloth makes its UD quants with an importance matrix, but this file names none. It's an early "
                "upload, or was changed."
            ),
        ),
        ("quant-not-recommended", ""): FindingText("info", "not_recommended", "{catalog_text}"),
        ("deleted-upstream", "replaced"): FindingText(
            "warning", "outdated", mark("The uploader withdrew this file. {replacement} replaces it.")
        ),
        ("deleted-upstream", "gone"): FindingText(
            "info",
            None,
            mark("The repository no longer has this file. You can use this copy, but not download it again."),
        ),
        ("duplicate", ""): FindingText(
            "info", None, mark("There is another copy of this file: {names}. You can delete one.")
        ),
    }
)

DetailCode = Literal[
    "size",
    "sha256",
    "header-error",
    "starts-like-lfs",
    "starts-like-html",
    "first-bytes",
    "no-tensors",
    "no-header",
    "shards-found",
    "split-count",
    "shard-count",
    "shard-number",
    "tensor-count",
    "repeated-tensors",
    "layer-count",
    "architecture",
    "draft-name",
    "ollama-manifest",
    "vision-tensor",
    "template",
    "no-template",
    "mmproj-width",
    "model-width",
    "mmproj-name",
    "mmproj-count",
    "catalog-note",
    "replaced",
    "replacement",
    "reason",
    "changed-on-hub",
    "current-size",
    "mxfp4-tensors",
    "file-type",
    "no-imatrix",
    "unsloth-repo",
    "unsloth-quantizer",
    "unsloth-imatrix",
    "unsloth-name",
    "uploader-folder",
    "commit-date",
    "first-repair",
    "last-repair",
    "gone-in-catalog",
    "gone-on-hub",
]
DETAILS: Mapping[DetailCode, str] = types.MappingProxyType(
    {
        "size": mark("Size ({source}): {n_bytes} bytes"),
        "sha256": mark("SHA-256 ({source}): {sha256}"),
        "header-error": "{title}",
        "starts-like-lfs": mark("The file begins like a Git LFS pointer"),
        "starts-like-html": mark("The file begins like a web page"),
        "first-bytes": mark("The file begins with {hex}"),
        "no-tensors": mark("The header lists no tensors"),
        "no-header": mark("The header can't be read"),
        "shards-found": mark("Shards in the folder: {count} of {total}"),
        "split-count": mark("Header: split.count is {total}, but the file name has no -0000N-of-0000M"),
        "shard-count": mark("{name}: {total} shards by its name, {stated} by its header"),
        "shard-number": mark("{name}: its header says it is shard {number}"),
        "tensor-count": mark("Tensors: {count} in all shards, {stated} by the first header"),
        "repeated-tensors": mark("Tensors that are in two shards: {count}"),
        "layer-count": mark("Layers with tensors: {count} of {stated}"),
        "architecture": mark("Header: general.architecture is {architecture}"),
        "draft-name": mark("The name has {prefix}"),
        "ollama-manifest": mark("Named by Ollama's manifest {manifest}"),
        "vision-tensor": mark("The model contains {tensor}, a tensor of a vision projector"),
        "template": mark("Chat template: takes a tool call's arguments as pairs without checking that they are"),
        "no-template": mark("The header has no chat template"),
        "mmproj-width": mark("{name}: width {width}"),
        "model-width": mark("{name} needs width {width}"),
        "mmproj-name": mark("Header: general.name is {model_name}"),
        "mmproj-count": mark("Vision files in the folder: {count}, none for this model"),
        "catalog-note": mark("Catalog of {date}: {quant} of {model}"),
        "replaced": mark("The catalog lists these bytes, offered on {date}, as replaced"),
        "replacement": mark("SHA-256 of the replacement: {sha256} (seen on {date})"),
        "reason": "{catalog_text}",
        "changed-on-hub": mark("Changed on Hugging Face on {date}"),
        "current-size": mark("Size of the current file by the catalog, {date}: {n_bytes} bytes"),
        "mxfp4-tensors": mark("Tensors in MXFP4: {count}, such as {tensor}"),
        "file-type": mark("File type {file_type} isn't MXFP4_MOE"),
        "no-imatrix": mark("Header: no quantize.imatrix.file"),
        "unsloth-repo": mark("It comes from {repo}"),
        "unsloth-quantizer": mark("Header: general.quantized_by is Unsloth"),
        "unsloth-imatrix": mark("Header: quantize.imatrix.file is {file}"),
        "unsloth-name": mark('The name has "UD-", Unsloth\'s mark'),
        "uploader-folder": mark("Its folder has the name of {repo}"),
        "commit-date": mark("Its commit {commit} is from {time} UTC"),
        "first-repair": mark("The first repaired files are from after {time}"),
        "last-repair": mark("The last repaired files are from after {time}"),
        "gone-in-catalog": mark("Catalog: {path} was gone from {repo} on {date}"),
        "gone-on-hub": mark("Hugging Face: {repo} no longer has {path}"),
    }
)

# Where a size or a hash comes from.
DetailSource = Literal[
    "file", "header", "catalog", "hub", "download record", "folder name", "cache entry", "cache blob", "ollama blob"
]
SOURCES: Mapping[DetailSource, str] = types.MappingProxyType(
    {
        "file": mark("this file"),
        "header": mark("its header"),
        "catalog": mark("catalog"),
        "hub": mark("Hugging Face"),
        "download record": mark("record of its download"),
        "folder name": mark("folder name"),
        "cache entry": mark("place in the Hugging Face cache"),
        "cache blob": mark("name in the Hugging Face cache"),
        "ollama blob": mark("name in Ollama's folder"),
    }
)

FixKind = Literal["download_again", "download_current", "fetch_mmproj", "fetch_template", "delete", "choose_other"]
FixCode = Literal[
    "download_again",
    "download_current",
    "download_replacement",
    "download_copy",
    "download_mmproj",
    "find_mmproj",
    "find_matching_mmproj",
    "use_template",
    "delete_copy",
    "find_on_hub",
    "find_quant",
    "find_file",
    "find_model",
    "find_loadable",
]


class FixText(msgspec.Struct, frozen=True):
    kind: FixKind
    """Effect of the fix."""
    label: str
    label_with_size: str = ""
    """Used instead of `label` if the size of the download is known."""


FIXES: Mapping[FixCode, FixText] = types.MappingProxyType(
    {
        "download_again": FixText("download_again", mark("Download again"), mark("Download again ({size})")),
        "download_current": FixText(
            "download_current", mark("Download the current file"), mark("Download the current file ({size})")
        ),
        "download_replacement": FixText("download_current", mark("Download {name}")),
        "download_copy": FixText(
            "download_current", mark("Download a fixed copy"), mark("Download a fixed copy ({size})")
        ),
        "download_mmproj": FixText("fetch_mmproj", mark("Download its vision file")),
        "find_mmproj": FixText("fetch_mmproj", mark("Find its vision file")),
        "find_matching_mmproj": FixText("fetch_mmproj", mark("Find one that fits")),
        "use_template": FixText("fetch_template", mark("Use the template of {repo}")),
        "delete_copy": FixText("delete", mark("Delete this copy")),
        "find_on_hub": FixText("choose_other", mark("Find it on Hugging Face")),
        "find_quant": FixText("choose_other", mark("Find {name}")),
        "find_file": FixText("choose_other", mark("Choose another file")),
        "find_model": FixText("choose_other", mark("Choose another model")),
        "find_loadable": FixText("choose_other", mark("Find a file that loads here")),
    }
)

_MAX_NAMES = 3


def fill(text: str, values: Mapping[str, Value]) -> str:
    """Return `text` translated, with each {name} replaced by the value of that name."""
    return tr(text).format_map({name: shown_value(name, value) for name, value in values.items()})


def shown_value(name: str, value: Value) -> str:
    """Return a value formatted in the user's language, depending on its name.

    Names that end in size: bytes, shown as "20.5 GB". date: ISO 8601. source: a DetailSource. catalog_text: a text of
    the catalog.
    """
    if isinstance(value, tuple):
        names = join_list(value[:_MAX_NAMES])
        return names if len(value) <= _MAX_NAMES else tr("{0} and {1} more", names, show_count(len(value) - _MAX_NAMES))
    if isinstance(value, int):
        return show_bytes(value) if name.endswith("size") else show_count(value)
    if name == "source":
        return next((tr(text) for source, text in SOURCES.items() if source == value), value)
    if name == "catalog_text":
        return tr(value)
    return (show_date(value) if name == "date" else value) or tr("unknown")
