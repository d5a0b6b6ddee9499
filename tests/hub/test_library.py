"""What the library finds in real folders, laid out as each app lays them out."""

import hashlib
import io
import json
import os
import sys
from pathlib import Path

import pytest

from qwendesk.hub.evidence import model_files
from qwendesk.hub.header_cache import HeaderCache
from qwendesk.hub.library import Library, LibraryModel, scan
from qwendesk.hub.library_places import Origin, SearchFolder
from tests.gguf_files import header_of, mmproj_values, model_values, tensor, write_model
from tests.links import skip_without_links
from tools.gguf_writer import write_gguf

COMMIT, OLDER = "c" * 40, "b" * 40


@pytest.fixture
def look(tmp_path):
    """Scans one place of the given kind in the test's folder."""

    def scan_as(origin: Origin, *others: SearchFolder) -> Library:
        return scan(
            [SearchFolder(origin, tmp_path), *others], HeaderCache(tmp_path.parent / f"{tmp_path.name}-headers")
        )

    yield scan_as
    (tmp_path.parent / f"{tmp_path.name}-headers").unlink(missing_ok=True)


def model(path: Path, name: str = "Made up", **changes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    return write_model(path, model_values(general__name=name, **changes), [tensor("token_embd.weight", 64)])


def mmproj(path: Path, name: str = "", width: int = 64) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    return write_model(path, mmproj_values(width, general__name=name))


def whole(values: dict, tensors: tuple = (tensor("token_embd.weight", 64),)) -> bytes:
    """The bytes of a file with something in it."""
    file = io.BytesIO()
    write_gguf(file, values, tensors)
    return file.getvalue()


def split(folder: Path, *numbers: int, count: int = 3, name: str = "Big-Q4_K_M") -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for number in numbers:
        path = folder / f"{name}-{number:05}-of-{count:05}.gguf"
        values = model_values(split__count=count, split__no=number - 1)
        write_model(path, values if number == 1 else {"split.count": count, "split.no": number - 1})


def only(library: Library) -> LibraryModel:
    (found,) = library.models
    return found


def picture_file(found: LibraryModel) -> str:
    return Path(found.mmproj.path).name if found.mmproj else ""


def test_models_of_our_folder(tmp_path, look):
    path = model(tmp_path / "unsloth" / "Qwen3.5-2B-GGUF" / "Qwen3.5-2B-Q4_K_M.gguf")
    mmproj(path.with_name("mmproj-F16.gguf"))
    found = only(look("ours"))
    assert (found.name, found.path, found.n_bytes) == ("Qwen3.5-2B-Q4_K_M", str(path), path.stat().st_size)
    assert (found.repo, found.repo_path) == ("unsloth/Qwen3.5-2B-GGUF", "Qwen3.5-2B-Q4_K_M.gguf")
    assert found.facts is not None
    assert found.facts.quant == "Q4_K_M"
    assert picture_file(found) == "mmproj-F16.gguf"
    assert found.writable
    assert found.problem == ""


def test_models_of_lm_studio(tmp_path, look):
    path = model(tmp_path / "bartowski" / "Qwen3.5-2B" / "a.gguf")
    found = only(look("lmstudio"))
    assert (found.path, found.origin, found.repo) == (str(path), "lmstudio", "bartowski/Qwen3.5-2B")
    assert not found.writable


def test_models_of_jan(tmp_path, look):
    path = model(tmp_path / "unsloth" / "Qwen3.5-2B-Q4" / "model.gguf")
    mmproj(path.with_name("mmproj.gguf"))
    path.with_name("model.yml").write_text("name: Qwen")
    found = only(look("jan"))
    assert (found.name, picture_file(found), found.writable) == ("Qwen3.5-2B-Q4", "mmproj.gguf", False)


def test_llama_cpps_flat_cache_keeps_repositories_apart(tmp_path, look):
    model(tmp_path / "ggml-org_Qwen3.5-A-GGUF_Qwen3.5-A-Q4_K_M.gguf", "A")
    mmproj(tmp_path / "ggml-org_Other-GGUF_mmproj-F16.gguf")
    mmproj(tmp_path / "ggml-org_Qwen3.5-A-GGUF_mmproj-Q8_0.gguf")
    (tmp_path / "manifest=ggml-org=Qwen3.5-A-GGUF=latest.json").write_text("{}")
    found = only(look("llama.cpp"))
    assert (found.repo, found.repo_path) == ("ggml-org/Qwen3.5-A-GGUF", "Qwen3.5-A-Q4_K_M.gguf")
    assert picture_file(found) == "ggml-org_Qwen3.5-A-GGUF_mmproj-Q8_0.gguf"


def hub_file(root: Path, repo: str, commit: str, path: str, content: bytes) -> Path:
    """One file in the Hub library's cache: a link to a blob named by its hash."""
    folder = root / f"models--{repo.replace('/', '--')}"
    blob = folder / "blobs" / hashlib.sha256(content).hexdigest()
    blob.parent.mkdir(parents=True, exist_ok=True)
    blob.write_bytes(content)
    link = folder / "snapshots" / commit / path
    link.parent.mkdir(parents=True, exist_ok=True)
    link.symlink_to(os.path.relpath(blob, link.parent))
    (folder / "refs").mkdir(exist_ok=True)
    (folder / "refs" / "main").write_text(COMMIT)
    return link


def test_models_of_the_hugging_face_cache(tmp_path, look):
    skip_without_links(tmp_path)
    same = whole(model_values(general__name="Same"))
    hub_file(tmp_path, "unsloth/Qwen-GGUF", OLDER, "same.gguf", same)
    current = hub_file(tmp_path, "unsloth/Qwen-GGUF", COMMIT, "same.gguf", same)
    replaced = hub_file(tmp_path, "unsloth/Qwen-GGUF", OLDER, "old.gguf", whole(model_values(general__name="Old")))
    hub_file(tmp_path, "unsloth/Qwen-GGUF", COMMIT, "mmproj-F16.gguf", whole(mmproj_values(64)))
    unfinished = current.with_name("unfinished.gguf")
    unfinished.symlink_to("nowhere")
    library = look("huggingface")
    assert [found.path for found in library.models] == [str(replaced), str(current)]
    assert {(found.repo, found.writable) for found in library.models} == {("unsloth/Qwen-GGUF", False)}
    assert picture_file(library.models[1]) == "mmproj-F16.gguf"


def test_a_split_set_in_a_folder_of_its_repository_finds_the_mmproj_above(tmp_path, look):
    skip_without_links(tmp_path)
    for number in (1, 2):
        values = model_values(split__count=2) if number == 1 else {"split.count": 2}
        hub_file(tmp_path, "u/Big-GGUF", COMMIT, f"BF16/Big-BF16-0000{number}-of-00002.gguf", whole(values))
    hub_file(tmp_path, "u/Big-GGUF", COMMIT, "mmproj-F16.gguf", whole(mmproj_values(64)))
    found = only(look("huggingface"))
    assert len(found.files) == 2
    assert picture_file(found) == "mmproj-F16.gguf"


def ollama_model(root: Path, name: str, values: dict, pictures: dict | None = None, tensors: tuple = ()) -> Path:
    """A manifest (`host/namespace/model/tag`) and its blobs."""
    layers = [{"mediaType": "application/vnd.ollama.image.template", "digest": f"sha256:{'0' * 64}", "size": 1}]
    blobs = []
    contents = {"model": whole(values, (*tensors, tensor("token_embd.weight", 64)))}
    if pictures:
        contents["projector"] = whole(pictures)
    for kind, content in contents.items():
        number = hashlib.sha256(content).hexdigest()
        blobs.append(root / "blobs" / f"sha256-{number}")
        blobs[-1].parent.mkdir(parents=True, exist_ok=True)
        blobs[-1].write_bytes(content)
        layers.append({"mediaType": f"application/vnd.ollama.image.{kind}", "digest": f"sha256:{number}"})
    manifest = root / "manifests" / name
    manifest.parent.mkdir(parents=True, exist_ok=True)
    manifest.write_text(json.dumps({"schemaVersion": 2, "layers": layers}))
    return blobs[0]


def test_models_of_ollama(tmp_path, look):
    repo = "hf.co/unsloth/Qwen3.5-2B-GGUF"
    blob = ollama_model(tmp_path, f"{repo}/Q4_K_M", model_values(), mmproj_values(64))
    other = ollama_model(tmp_path, "registry.ollama.ai/ann/mine/latest", model_values(general__name="Mine"))
    library = look("ollama")
    mine, hub = library.models
    assert (hub.name, hub.path, hub.repo) == (f"{repo}:Q4_K_M", str(blob), "unsloth/Qwen3.5-2B-GGUF")
    assert hub.mmproj is not None
    assert hub.mmproj.path == library.mmprojs[0].path
    assert (mine.name, mine.path) == ("ann/mine:latest", str(other))
    assert mine.mmproj is None, "another model's picture file lies in the same folder"
    assert not any(found.problem or found.writable for found in library.models)
    named_in = {str(tmp_path / "manifests" / repo), str(tmp_path / "manifests" / "registry.ollama.ai" / "ann" / "mine")}
    assert named_in <= set(library.folders), "a new tag comes into one of these"


def test_every_folder_read_is_listed_once(tmp_path, look):
    model(tmp_path / "owner" / "repo" / "a.gguf")
    (tmp_path / "empty").mkdir()
    folders = look("ours", SearchFolder("folder", tmp_path / "owner")).folders
    assert sorted(folders) == sorted(str(tmp_path / each) for each in ("", "empty", "owner", "owner/repo"))


def test_qwen_of_ollama_library_has_a_problem(tmp_path, look):
    ollama_model(tmp_path, "registry.ollama.ai/library/qwen3.5/35b", model_values())
    ollama_model(
        tmp_path,
        "registry.ollama.ai/library/mine/latest",
        model_values(general__name="In one"),
        tensors=(tensor("v.blk.0.attn_q.weight", 64),),
    )
    in_one, own = look("ollama").models
    assert own.name == "qwen3.5:35b"
    for found in (in_one, own):
        assert "only loads in Ollama" in found.problem
        assert "Download the GGUF file" in found.problem


@pytest.mark.parametrize(
    "manifest",
    ["", "{", "[]", '{"layers": 3}', '{"layers": [{"mediaType": "application/vnd.ollama.image.model"}]}',
     '{"layers": [{"mediaType": "application/vnd.ollama.image.model", "digest": "sha256:../../secret"}]}'],
)  # fmt: skip
def test_malformed_manifests_are_ignored(tmp_path, look, manifest):
    good = ollama_model(tmp_path, "hf.co/a/b/latest", model_values())
    (tmp_path / "manifests" / "hf.co" / "a" / "b" / "broken").write_text(manifest)
    assert only(look("ollama")).path == str(good)


def test_a_split_set_is_one_model(tmp_path, look):
    split(tmp_path, 1, 2, 3)
    found = only(look("folder"))
    assert [Path(file.path).name for file in found.files] == [f"Big-Q4_K_M-0000{n}-of-00003.gguf" for n in (1, 2, 3)]
    assert found.n_bytes == sum(path.stat().st_size for path in tmp_path.iterdir())
    assert found.facts is not None
    assert found.facts.file_bytes == found.n_bytes
    assert (found.name, found.problem, found.missing) == ("Big-Q4_K_M", "", ())


@pytest.mark.parametrize(("present", "missing"), [((1, 3), (2,)), ((2, 3), (1,)), ((1,), (2, 3))])
def test_missing_shards_are_named(tmp_path, look, present, missing):
    split(tmp_path, *present)
    found = only(look("folder"))
    assert found.missing == tuple(f"Big-Q4_K_M-0000{number}-of-00003.gguf" for number in missing)
    assert f"({len(missing)} of 3)" in found.problem
    assert found.missing[0] in found.problem


def test_split_sets_of_the_same_name_in_two_folders_stay_apart(tmp_path, look):
    split(tmp_path / "a", 1, 2, 3)
    split(tmp_path / "b", 1)
    assert [len(found.missing) for found in look("folder").models] == [0, 2]


def test_mmprojs_and_draft_models_are_not_models(tmp_path, look):
    model(tmp_path / "mtp-Qwen3.5-2B.gguf")
    model(tmp_path / "adapter.gguf", general__type="adapter")
    model(tmp_path / "Qwen3.5-2B-imatrix.gguf")
    model(tmp_path / "speculator.gguf", general__architecture="dflash")
    mmproj(tmp_path / "Qwen-vision.gguf")
    (tmp_path / "mmproj-F16.gguf").write_bytes(b"version https://git-lfs.github.com/spec/v1\n")
    library = look("folder")
    assert library.models == ()
    assert [found.name for found in library.others] == [
        "adapter", "mtp-Qwen3.5-2B", "Qwen3.5-2B-imatrix", "speculator"
    ]  # fmt: skip
    assert [bool(found.problem) for found in library.mmprojs] == [True, False]


def test_a_broken_file_is_shown_with_the_reason(tmp_path, look):
    (tmp_path / "cut.gguf").write_bytes(header_of(model_values())[:100])
    found = only(look("ours"))
    assert found.facts is None
    assert "cut.gguf is incomplete" in found.problem


def test_file_in_an_added_folder_of_another_app_belongs_to_that_app(tmp_path, look):
    model(tmp_path / "o" / "r" / "a.gguf")
    assert only(look("lmstudio", SearchFolder("folder", tmp_path))).origin == "lmstudio"


def test_layouts_are_recognised_in_added_folders(tmp_path, look):
    ollama_model(tmp_path / "from-ollama", "hf.co/a/b/latest", model_values())
    assert only(look("folder")).name == "hf.co/a/b:latest"


def test_circular_links_are_followed_once(tmp_path, look):
    skip_without_links(tmp_path)
    model(tmp_path / "a" / "m.gguf")
    (tmp_path / "a" / "again").symlink_to(tmp_path)
    (tmp_path / "second.gguf").symlink_to(tmp_path / "a" / "m.gguf")
    assert len(look("folder").models) == 1


def test_hidden_and_unrelated_files_are_ignored(tmp_path, look):
    for hidden in (".trash", "$RECYCLE.BIN", "System Volume Information"):
        model(tmp_path / hidden / "m.gguf")
    model(tmp_path / "m.gguf").rename(tmp_path / "m.gguf.part")
    (tmp_path / "readme.txt").write_text("x")
    (tmp_path / "folder.gguf").mkdir()
    assert look("folder").everything == ()
    assert model_files(tmp_path) == []


def test_missing_place_is_empty(tmp_path):
    assert scan([SearchFolder("ours", tmp_path / "gone")], HeaderCache(tmp_path / "headers")) == Library()


@pytest.mark.skipif(sys.platform == "win32" or getattr(os, "geteuid", int)() == 0, reason="nothing is forbidden here")
def test_unreadable_folder_is_named(tmp_path, look):
    closed = tmp_path / "closed"
    closed.mkdir(mode=0)
    assert look("folder").unreadable == (str(closed),)
    closed.chmod(0o700)


def test_scan_writes_nothing(tmp_path, look):
    model(tmp_path / "o" / "r" / "a.gguf")
    split(tmp_path / "o" / "s", 1)
    before = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")}
    look("lmstudio")
    assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")} == before


def test_header_of_an_unchanged_file_is_read_once(tmp_path, monkeypatch):
    from qwendesk.hub import header_cache

    opened: list[str] = []
    read = header_cache.read_file_facts
    monkeypatch.setattr(header_cache, "read_file_facts", lambda path: (opened.append(path.name), read(path))[1])
    first, second = model(tmp_path / "m" / "a.gguf"), model(tmp_path / "m" / "b.gguf")
    (tmp_path / "m" / "c.gguf").write_bytes(b"no model")
    place, file = SearchFolder("ours", tmp_path / "m"), tmp_path / "headers"
    library = scan([place], HeaderCache(file))
    assert sorted(opened) == ["a.gguf", "b.gguf", "c.gguf"]

    opened.clear()
    headers = HeaderCache(file)
    assert scan([place], headers) == library
    assert opened == ["c.gguf"], "what is wrong with a file is not remembered for the next run"

    opened.clear()
    assert scan([place], headers) == library
    assert opened == []

    os.utime(first, ns=(1, 1))
    model(second, "Another name, another size")
    scan([place], headers)
    assert opened == ["a.gguf", "b.gguf"]


@pytest.mark.parametrize("content", [b"", b"\xc1", b"\x82\xa6format\xa1x\xa7headers\x80"])
def test_header_cache_that_is_damaged_or_of_another_release_is_rebuilt(tmp_path, content):
    file = tmp_path / "headers"
    file.write_bytes(content)
    model(tmp_path / "m" / "a.gguf")
    assert only(scan([SearchFolder("ours", tmp_path / "m")], HeaderCache(file))).facts is not None
    assert file.read_bytes() != content


def test_500_cached_models_are_listed_without_reading_files(tmp_path, monkeypatch):
    from qwendesk.hub import header_cache

    for number in range(250):
        folder = tmp_path / "m" / "owner" / f"Model{number}-GGUF"
        model(folder / f"Model{number}-Q4_K_M.gguf", f"Model {number}")
        mmproj(folder / "mmproj-F16.gguf", f"Model {number}")
    scan([SearchFolder("ours", tmp_path / "m")], HeaderCache(tmp_path / "headers"))
    monkeypatch.setattr(header_cache, "read_file_facts", lambda path: pytest.fail(f"{path} was read again"))
    library = scan([SearchFolder("ours", tmp_path / "m")], HeaderCache(tmp_path / "headers"))
    assert len(library.models) == 250
    assert all(Path(found.path).parent == Path(found.mmproj.path).parent for found in library.models)
