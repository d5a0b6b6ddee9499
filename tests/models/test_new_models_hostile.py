"""Lists, words and headers of a hostile or broken Hub: the search for new models finds nothing worse than nothing."""

import threading

import msgspec
import pytest

from qwendesk.core.presets import family_of_file
from qwendesk.core.units import GIB
from qwendesk.hub.network import Network
from qwendesk.hub.remote import Hub
from qwendesk.models.new_models import NewLookUp, files_note, look_up_new, make_new_offers, why_not_loaded
from tests.gguf_files import header_of
from tests.hub.hub_server import FakeHub, Hollow
from tests.hub.test_hub_hostile import answer, endless
from tests.models.new_hub import BASE, LIKE_38, NAME, NEW_SIZE, REPO, TAGS, add_qwen4, publish, tensors_of, values_of
from tests.models.test_new_models import A_PC, CATALOG, found, hub, look_up
from tools.gguf_writer import Tensor, header_bytes

__all__ = ["hub"]

EVIL = "\u202eexe.\x1b[31m<img src=x onerror=alert(1)>\n" * 2000
HOSTILE_LISTS: dict[str, object] = {
    "names that are no names": [{"id": name} for name in ("", "a", "unsloth/", "../../etc", "unsloth/a b", EVIL)],
    "a name that is a number": [{"id": 5}],
    "entries that are texts": ["a", "b"],
    "an object": {"error": "no"},
    "a page": b"<html>Please log in</html>",
    "nothing": None,
    "odd tags": [{"id": REPO, "tags": [5, None]}],
    "tags that are a text": [{"id": REPO, "tags": "gguf"}],
    "no dates": [{"id": REPO, "tags": TAGS}],
    "a date that is a list": [{"id": REPO, "createdAt": [1], "tags": TAGS}],
    "ten thousand entries": [{"id": f"unsloth/Qwen4-{number}-GGUF", "tags": TAGS} for number in range(10_000)],
    "nested without end": b"[" * 200_000,
}


@pytest.mark.parametrize("name", HOSTILE_LISTS)
def test_hostile_list_finds_nothing_and_raises_nothing(hub: FakeHub, name: str) -> None:
    hub.instead["/api/models"] = answer(HOSTILE_LISTS[name])
    assert look_up(hub).models == ()


def test_list_without_an_end_is_given_up(hub: FakeHub) -> None:
    hub.instead["/api/models"] = endless(b" " * 65536)
    assert look_up(hub).models == ()


def test_hostile_words_of_a_repository_are_left_out_or_shortened(hub: FakeHub) -> None:
    add_qwen4(hub, architecture="qwen4" + EVIL[:60])
    hub.about[REPO]["tags"] = ["gguf", f"license:{EVIL}", f"base_model:{EVIL}", "base_model:Qwen/../../x", *TAGS[2:]]
    hub.add(REPO, f"{EVIL[:80].replace('/', '')}-Q2_K.gguf", b"<html>")
    model = found(hub)
    assert (model.licence, model.base) == ("", BASE)
    assert all(item.path.isprintable() for item in model.items)
    for sentence in (why_not_loaded(model), files_note(model)):
        assert sentence.isprintable()
        assert len(sentence) < 400


@pytest.mark.parametrize(
    "content",
    [b"", b"GGUF", b"<html>no</html>", header_of({"general.architecture": "qwen35", "qwen35.block_count": 2**31})],
    ids=["empty", "cut", "page", "too many layers"],
)
def test_broken_header_is_told_in_a_sentence(hub: FakeHub, content: bytes) -> None:
    publish(hub)
    hub.add(REPO, f"{NAME}-Q4_K_M.gguf", content)
    model = found(hub)
    assert why_not_loaded(model)
    assert make_new_offers([model], CATALOG, A_PC)[0].item is None


def test_numbers_without_measure_in_a_header_are_planned_or_refused(hub: FakeHub) -> None:
    values = values_of(NEW_SIZE, "q4_k_m", "", "") | {
        "qwen35.context_length": 2**32 - 1,
        "qwen35.embedding_length": 2**32 - 1,
        "qwen35.ssm.conv_kernel": 2**32 - 1,
        "qwen35.attention.head_count_kv": 1,
    }
    publish(hub)
    content = header_bytes(values, tensors_of(NEW_SIZE, "q4_k_m"))
    hub.add(REPO, f"{NAME}-Q4_K_M.gguf", Hollow(content, 2**50))
    for offer in make_new_offers(look_up(hub).models, CATALOG, A_PC):
        assert offer.item is None or (offer.item.fit is not None and not offer.item.fit.fits)


def test_store_that_cannot_be_reached_leaves_the_model_without_a_header(hub: FakeHub) -> None:
    add_qwen4(hub)
    hub.store = "http://127.0.0.1:9"
    model = found(hub)
    assert "couldn't be read" in why_not_loaded(model)


def test_name_of_a_tensor_is_shown_without_control_characters(hub: FakeHub) -> None:
    header = header_bytes(values_of(NEW_SIZE, "q4_k_m", "", ""), [Tensor("\x1b[31m\u202ew", (64,), 42, ())])
    known, unknown = ((number).to_bytes(4, "little") + bytes(8) for number in (42, 43))
    publish(hub)
    hub.add(REPO, f"{NAME}-Q2_0.gguf", Hollow(header.replace(known, unknown), 10_000))
    sentence = why_not_loaded(found(hub))
    assert "type 43" in sentence
    assert sentence.isprintable()


def test_long_texts_of_a_header_are_not_saved(hub: FakeHub) -> None:
    long = "Qwen4 " * 150_000
    values = values_of(NEW_SIZE, "q4_k_m", "", LIKE_38) | {"general.name": long, "general.quantized_by": long}
    publish(hub)
    content = header_bytes(values | {"tokenizer.chat_template": LIKE_38 + long}, tensors_of(NEW_SIZE, "q4_k_m"))
    hub.add(REPO, f"{NAME}-Q4_K_M.gguf", Hollow(content, 20 * GIB))
    model = found(hub)
    assert len(msgspec.json.encode(model)) < 300_000
    assert model.facts is not None
    assert family_of_file(model.facts) == ("qwen3.8", True)


def test_stop_ends_the_reading_of_a_header(hub: FakeHub) -> None:
    add_qwen4(hub)
    stop = threading.Event()
    hub.on_sent = lambda _total: stop.set()
    done = look_up_new(CATALOG, (), Hub(Network(hub.endpoint)), stop, gap_s=0)
    assert done == NewLookUp(())
