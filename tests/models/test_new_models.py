"""New models on a made-up Hub, each as reports of other programs tell that such finds went wrong."""

import json
import threading
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from qwendesk.core import paths
from qwendesk.core.devices import DeviceInfo
from qwendesk.core.engine_knowledge import EngineKnowledge, SeenRelease, read_knowledge
from qwendesk.core.presets import family_of_file
from qwendesk.core.units import GIB
from qwendesk.hub.catalog import Catalog, load_catalog
from qwendesk.hub.network import Network
from qwendesk.hub.remote import Hub
from qwendesk.models.fit import Pc
from qwendesk.models.new_models import (
    MAX_MODELS,
    MAX_READ,
    NewLookUp,
    NewModel,
    files_note,
    look_up_new,
    make_new_offers,
    owners_of,
    still_new,
    why_not_loaded,
)
from qwendesk.models.view.offer_texts import no_fit_text
from tests.fakes.engine_folders import make_engine
from tests.fakes.next_engine import ARCHITECTURE, TYPE, next_model
from tests.hub.hub_server import FakeHub, Hollow, running_hub
from tests.hub.test_hub_hostile import answer
from tests.models.new_hub import (
    BASE,
    NAME,
    NEW_SIZE,
    REPO,
    add_qwen4,
    add_with_table,
    hollow,
    publish,
    values_of,
)
from tools.gguf_writer import Tensor, header_bytes

CATALOG = load_catalog()
CARD = DeviceInfo("CUDA0", "NVIDIA GeForce RTX 3090", "gpu", "CUDA", 24 * GIB, 24 * GIB)
A_PC = Pc(gpus=(CARD,), ram_bytes=64 * GIB, drive="ssd")


@pytest.fixture
def hub() -> Iterator[FakeHub]:
    from huggingface_hub.utils import close_session

    with running_hub() as hub:
        yield hub
        close_session()


def look_up(hub: FakeHub, known: tuple[NewModel, ...] = (), catalog: Catalog = CATALOG) -> NewLookUp:
    return look_up_new(catalog, known, Hub(Network(hub.endpoint)), threading.Event(), gap_s=0)


def found(hub: FakeHub) -> NewModel:
    """Return the only model that is found."""
    done = look_up(hub)
    assert done.problem == ""
    (model,) = done.models
    return model


def headers_read(hub: FakeHub) -> list[str]:
    return sorted({path.partition("?")[0].removeprefix("store/") for path in hub.requests("GET", "store")})


def test_every_uploader_of_the_catalog_and_qwen_are_asked_once_for_one_page(hub: FakeHub) -> None:
    """The Hub's lists have pages (huggingface_hub#4257), and it limits how often one may ask."""
    assert look_up(hub) == NewLookUp(())
    assert [*owners_of(CATALOG)][-1] == "Qwen"
    assert {each.uploader for each in CATALOG.repositories} < set(owners_of(CATALOG))
    asked = hub.requests("GET")
    assert len(asked) == len(owners_of(CATALOG))
    assert all("filter=gguf" in path and "sort=createdAt" in path and "limit=100" in path for path in asked)


def test_known_architecture_with_new_dimensions_is_read_planned_and_treated_as_the_family_that_it_is_like(
    hub: FakeHub,
) -> None:
    add_qwen4(hub)
    model = found(hub)
    assert (model.name, model.repo, model.card, model.licence, model.created) == (
        NAME,
        REPO,
        BASE,
        "apache-2.0",
        "2026-11-20",
    )
    assert model.facts is not None
    assert (model.facts.architecture, model.facts.block_count) == ("qwen35", NEW_SIZE.block_count)
    assert why_not_loaded(model) == ""
    assert headers_read(hub) == [f"{REPO}/{NAME}-Q4_K_M.gguf"], "one header is enough, and not the projector's"
    (offer,) = make_new_offers([model], CATALOG, A_PC)
    assert offer.item is not None
    assert offer.item.fit is not None
    assert (offer.item.quant, offer.item.fit.kind, offer.item.fit.with_pictures) == ("Q4_K_M", "vram", True)
    assert offer.known == ""
    assert family_of_file(model.facts) == ("qwen3.8", True)


def test_unknown_architecture_needs_a_newer_engine(hub: FakeHub) -> None:
    """LM Studio had no word of it for three weeks, and showed an error about a drafter (lmstudio-bug-tracker#2345)."""
    add_qwen4(hub, architecture="qwen4")
    model = found(hub)
    assert model.facts is not None
    assert model.facts.block_count == NEW_SIZE.block_count
    sentence = why_not_loaded(model)
    assert "newer engine" in sentence
    assert "qwen4" in sentence
    (offer,) = make_new_offers([model], CATALOG, A_PC)
    assert offer.item is None


def test_new_tensor_type_needs_a_newer_engine_and_is_read_again_once_one_is_here(
    hub: FakeHub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(paths, "engine_places", lambda: (tmp_path / "app", tmp_path / "own"))
    publish(hub)
    hub.add(REPO, f"{NAME}-Q8_0.gguf", next_model())
    model = found(hub)

    def offer(engines: EngineKnowledge) -> tuple[str, bool]:
        (each,) = make_new_offers([model], CATALOG, A_PC, engines=engines)
        return each.why_not, each.needs_engine

    newest = EngineKnowledge(newest=SeenRelease("b99999", ("qwen4",), TYPE + 1))
    older = EngineKnowledge(newest=SeenRelease("b99998", (), TYPE))
    here = EngineKnowledge(n_types=TYPE + 1)
    assert "has type 43, which is newer than this engine" in offer(EngineKnowledge())[0]
    assert "which is newer than this engine" in offer(older)[0]
    assert "which needs a newer engine: b99999 has it" in offer(newest)[0]
    assert all(offer(each)[1] for each in (EngineKnowledge(), older, newest))
    assert offer(here) == (
        "An engine on this PC knows its tensor type 43: check for updates to see whether it fits.", False,
    )  # fmt: skip
    n_read = len(hub.requests("GET", "store"))
    assert look_up(hub, (model,)).models == (model,)
    assert len(hub.requests("GET", "store")) == n_read, "no engine here knows more than before"
    make_engine(
        tmp_path / "own", "b99999-cpu", release="b99999", package_version="", n_types=TYPE + 1,
        architectures=(ARCHITECTURE,),
    )  # fmt: skip
    (again,) = look_up(hub, (model,)).models
    assert again.facts is not None
    assert why_not_loaded(again, read_knowledge()) == ""
    assert ARCHITECTURE in why_not_loaded(again)


def test_table_is_found_in_its_shard_and_stays_on_the_drive(hub: FakeHub) -> None:
    add_with_table(hub)
    hub.repos[REPO] = dict(reversed(hub.repos[REPO].items()))  # nothing says in which order a Hub lists files
    model = found(hub)
    (item,) = model.items
    whole = sum(map(len, hub.repos[REPO].values()))
    assert (item.n_bytes, item.n_shards) == (whole, 3), "not the 10 MB of the first shard (mesh-llm#377)"
    assert why_not_loaded(model) == ""
    (offer,) = make_new_offers([model], CATALOG, msgspec.structs.replace(A_PC, ram_bytes=32 * GIB))
    assert offer.item is not None
    assert offer.item.fit is not None
    assert offer.item.fit.fits
    assert offer.item.fit.lazy_bytes > 10 * GIB


def test_upload_that_still_runs_is_no_model_yet(hub: FakeHub) -> None:
    """The first of several shards was downloaded alone elsewhere (eullm#394)."""
    add_with_table(hub)
    hub.repos[REPO].pop(f"Q4_K_M/{NAME}-Q4_K_M-00003-of-00003.gguf")
    assert look_up(hub).models == ()
    publish(hub, "Qwen/Qwen4-9B-GGUF")
    assert look_up(hub).models == ()


def test_files_with_mtp_in_their_names_are_the_model_not_the_projector(hub: FakeHub) -> None:
    """The Hub's own index takes the projector's architecture for the model's there (huggingface.js#2400)."""
    repo = f"ggml-org/{NAME}-MTP-GGUF"
    publish(hub, repo, gguf={"architecture": "clip", "total": 460_000_000})
    hub.add(repo, "mmproj-BF16.gguf", Hollow(header_bytes({"general.architecture": "clip"}), 900))
    hub.add(repo, f"{NAME}-MTP-IQ2_M.gguf", hollow(NEW_SIZE, "q4_k_m"))
    model = found(hub)
    assert model.facts is not None
    assert (model.name, model.facts.architecture) == (NAME, "qwen35")


def test_other_uploaders_and_the_mtp_twin_are_one_model(hub: FakeHub) -> None:
    for repo in (f"unsloth/{NAME}-MTP-GGUF", REPO, f"bartowski/Qwen_{NAME}-GGUF", f"Qwen/{NAME}-GGUF"):
        add_qwen4(hub, repo)
    model = found(hub)
    assert model.repo == REPO
    assert model.others == (f"bartowski/Qwen_{NAME}-GGUF", f"Qwen/{NAME}-GGUF")
    assert len(headers_read(hub)) == 1


PRISM_TYPE = 142


def prism_file() -> bytes:
    tensor = Tensor("output.weight", (1024, 4), 12, ())
    header = header_bytes(values_of(NEW_SIZE, "q4_k_m", "", ""), [tensor])
    kind = (12).to_bytes(4, "little") + bytes(8)
    return Hollow(header.replace(kind, PRISM_TYPE.to_bytes(4, "little") + bytes(8)), len(header) + 10_000)


def test_type_of_another_program_names_it(hub: FakeHub) -> None:
    """Elsewhere such a file is an overflow, or damaged (ollama#18521)."""
    publish(hub)
    hub.add(REPO, "Ternary-Qwen4-27B-PTQ1_0.gguf", prism_file())
    model = found(hub)
    assert model.facts is None
    assert "PrismML" in why_not_loaded(model)
    assert "newer" not in why_not_loaded(model)
    assert make_new_offers([model], CATALOG, A_PC)[0].item is None


def test_files_for_another_program_beside_others_are_noted_and_not_offered(hub: FakeHub) -> None:
    add_qwen4(hub, quants=("q8_0",))
    hub.add(REPO, f"{NAME}-PTQ1_0.gguf", prism_file())
    hub.add(REPO, f"{NAME}-Q2_K.gguf", prism_file())
    model = found(hub)
    assert why_not_loaded(model) == ""
    assert f"{REPO}/{NAME}-PTQ1_0.gguf" not in headers_read(hub), "its name says that it's for another program"
    assert files_note(model).startswith("2 of its files are made for PrismML")
    (offer,) = make_new_offers([model], CATALOG, A_PC)
    assert offer.item is not None
    assert offer.item.quant == "Q8_0"


def test_rate_limit_ends_the_look_up_and_keeps_what_was_known(hub: FakeHub) -> None:
    """Too many requests (lmstudio-bug-tracker#1771)."""
    add_qwen4(hub)
    known = look_up(hub).models
    hub.instead["/api/models"] = answer(b"", 429)
    before = len(hub.seen)
    done = look_up(hub, known)
    assert done.models == known
    assert done.problem == "127.0.0.1 limits how often you can ask. Try again later."
    assert len(hub.seen) == before + 1
    del hub.instead["/api/models"]
    hub.instead[f"/api/models/{REPO}/revision/main"] = answer(b"", 429)
    done = look_up(hub)
    assert (done.models, bool(done.problem)) == ((), True)


def test_gated_repository_is_shown_with_what_it_asks(hub: FakeHub) -> None:
    """Elsewhere it was a bare error 401 (lmstudio-bug-tracker#31)."""
    add_qwen4(hub)
    hub.about[REPO]["gated"] = "manual"
    hub.gated.add(REPO)
    model = found(hub)
    assert (model.is_gated, model.facts) == (True, None)
    assert "accept terms" in why_not_loaded(model)
    assert no_fit_text(model) == "Not checked yet", "with the terms accepted, it may well be loaded"


def test_repository_that_vanishes_between_the_list_and_its_files_stops_nothing(hub: FakeHub) -> None:
    """One that was gone blocked a whole list elsewhere (CrispASR#331)."""
    add_qwen4(hub)
    publish(hub, "Qwen/Qwen4-9B-GGUF", createdAt="2026-11-22T08:00:00.000Z")
    hub.instead["/api/models/Qwen/Qwen4-9B-GGUF/revision/main"] = answer(b"", 404, X_Error_Code="RepoNotFound")
    assert found(hub).repo == REPO


def test_model_whose_repository_is_gone_is_forgotten(hub: FakeHub) -> None:
    add_qwen4(hub)
    known = look_up(hub).models
    del hub.repos[REPO]
    assert look_up(hub, known) == NewLookUp(())


def test_nothing_is_read_again_unless_the_repository_changes(hub: FakeHub) -> None:
    add_qwen4(hub)
    known = look_up(hub).models
    n_files = len(hub.requests("POST"))
    assert look_up(hub, known).models == known
    assert len(hub.requests("POST")) == n_files
    hub.about[REPO]["lastModified"] = "2026-11-25T08:00:00.000Z"
    hub.add(REPO, f"{NAME}-F16.gguf", hollow(NEW_SIZE, "f16"))
    (model,) = look_up(hub, known).models
    assert [item.quant for item in model.items] == ["Q4_K_M", "Q8_0", "F16"]


def test_what_an_older_version_could_not_use_is_read_again(hub: FakeHub) -> None:
    publish(hub)
    hub.add(REPO, f"{NAME}-PTQ1_0.gguf", prism_file())
    (model,) = look_up(hub).models
    n_files = len(hub.requests("POST"))
    assert look_up(hub, (model,)).models == (model,)
    assert len(hub.requests("POST")) == n_files
    look_up(hub, (msgspec.structs.replace(model, read_by="0.0.1"),))
    assert len(hub.requests("POST")) == n_files + 1


def test_number_of_repositories_that_are_read_is_limited(hub: FakeHub) -> None:
    for number in range(60):
        add_qwen4(hub, f"unsloth/Qwen4-{number + 1}B-GGUF", quants=("q4_k_m",))
    first = look_up(hub).models
    assert len(first) == len(headers_read(hub)) == MAX_READ
    second = look_up(hub, first).models
    assert len(second) == len(headers_read(hub)) == MAX_MODELS
    assert look_up(hub, second).models == second


@pytest.mark.parametrize(
    ("repo", "about"),
    [
        ("unsloth/Qwen2.5-7B-GGUF", {"createdAt": "2025-02-01T00:00:00.000Z"}),
        ("unsloth/Qwen2.5-7B-GGUF", {"createdAt": "2026-09-01T00:00:00.000Z", "lastModified": "2026-10-01T00:00:00Z"}),
        ("unsloth/gemma-5-27b-GGUF", {"tags": ["gguf", "base_model:google/gemma-5-27b"]}),
        ("unsloth/gemma-5-27b-GGUF", {"tags": ["gguf"]}),
        ("bartowski/Dark-Qwen4-27B-GGUF", {"tags": ["gguf", "base_model:someone/Dark-Qwen4-27B"]}),
        ("bartowski/Qwen4-27B-heretic-GGUF", {}),
        ("unsloth/Qwen4-27B-DFlash-GGUF", {}),
        ("unsloth/Qwen4-27B-Base-GGUF", {}),
        ("unsloth/Qwen4-Embedding-GGUF", {}),
        ("someone/Qwen4-27B-GGUF", {}),
        ("unsloth/Qwen3.8-27B-GGUF", {}),
    ],
    ids=["old", "unchanged", "other maker", "other name", "of others", "changed behaviour", "draft", "base model",
         "no chat", "other uploader", "in the catalog"],
)  # fmt: skip
def test_these_are_no_new_models(hub: FakeHub, repo: str, about: dict[str, object]) -> None:
    add_qwen4(hub, repo)
    hub.about[repo] |= about
    assert look_up(hub).models == ()
    assert hub.requests("POST") == []


def test_repository_that_was_hidden_until_the_release_is_new(hub: FakeHub) -> None:
    add_qwen4(hub)
    hub.about[REPO]["createdAt"] = "2026-09-22T00:00:00.000Z"
    assert found(hub).repo == REPO


def test_uploader_with_other_names_is_asked_without_the_word_and_known_by_the_base_model(hub: FakeHub) -> None:
    repository = msgspec.structs.replace(CATALOG.repositories[0], repo="prism-ml/Ternary-Bonsai-2-27B-gguf")
    repositories = (*CATALOG.repositories, repository)
    catalog = Catalog(msgspec.structs.replace(CATALOG.contents, repositories=repositories))
    assert owners_of(catalog)["prism-ml"] == ""
    publish(hub, "prism-ml/Ternary-Bonsai-4-27B-gguf")
    hub.add("prism-ml/Ternary-Bonsai-4-27B-gguf", "Ternary-Bonsai-4-27B-Q4_K_M.gguf", hollow(NEW_SIZE, "q4_k_m"))
    add_qwen4(hub, "prism-ml/Other-8B-gguf")
    hub.about["prism-ml/Other-8B-gguf"]["tags"] = ["gguf"]
    add_qwen4(hub, "Qwen/QwQ-4-GGUF")
    hub.about["Qwen/QwQ-4-GGUF"]["tags"] = ["gguf"]
    assert {model.name for model in look_up(hub, catalog=catalog).models} == {"Ternary-Bonsai-4-27B", "QwQ-4"}


def test_other_files_of_a_known_model_are_told_apart_and_come_last(hub: FakeHub) -> None:
    repo = "unsloth/Qwen3.8-27B-GSQ-RCO-GGUF"
    add_qwen4(hub, repo)
    hub.about[repo]["createdAt"] = "2026-11-22T00:00:00.000Z"
    add_qwen4(hub)
    offers = make_new_offers(look_up(hub).models, CATALOG, A_PC)
    assert [(offer.model.repo, offer.known) for offer in offers] == [(REPO, ""), (repo, "Qwen3.8-27B")]


def test_catalog_of_a_newer_release_takes_over(hub: FakeHub) -> None:
    add_qwen4(hub)
    known = look_up(hub).models
    assert still_new(known, CATALOG) == known
    newer = Catalog(msgspec.structs.replace(CATALOG.contents, date="2026-12-01"))
    assert still_new(known, newer) == ()
    repository = msgspec.structs.replace(CATALOG.repositories[0], repo=REPO)
    has_it = Catalog(msgspec.structs.replace(CATALOG.contents, repositories=(repository,)))
    assert still_new(known, has_it) == ()


def test_models_survive_a_restart(hub: FakeHub) -> None:
    add_qwen4(hub)
    publish(hub, f"bartowski/{NAME}-Ternary-GGUF")
    hub.add(f"bartowski/{NAME}-Ternary-GGUF", "a-PTQ1_0.gguf", prism_file())
    models = look_up(hub).models
    assert len(models) == 2
    saved = msgspec.json.encode(models)
    assert msgspec.json.decode(saved, type=tuple[NewModel, ...]) == models
    assert len(saved) < 200_000
    json.loads(saved)
