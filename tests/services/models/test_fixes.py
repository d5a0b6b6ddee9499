"""What each fix does: to which folder it downloads, what it asks about, which template a model is loaded with."""

import asyncio

import pytest

from qwendesk.core.errors import QwenDeskError
from qwendesk.hub.findings import Fix
from qwendesk.hub.network import HubTrouble, Network
from qwendesk.hub.remote import Hub
from qwendesk.services.models.fixes import FixDone, FixesService, FixStarted, FixToAgree, FixToChoose, question_of
from qwendesk.services.models.loading import load_options
from qwendesk.services.models.templates import TemplatesService
from tests.hub.conftest import fake_hub
from tests.hub.verified import BROKEN_TEMPLATE, FIXED_TEMPLATE, mmproj, unsloth
from tests.services.models.library import make_shelf

__all__ = ["fake_hub"]
REPO, NAME, BASE = "unsloth/Qwen3.5-35B-A3B-GGUF", "Qwen3.5-35B-A3B-Q4_K_M.gguf", "Qwen/Qwen3.5-35B-A3B"
TEMPLATE = "chat_template.jinja"


class Queue:
    """Notes what it is asked for."""

    def __init__(self):
        self.asked = []

    async def add(self, repo, path, *, with_mmproj=True, models_folder=None):
        self.asked.append((repo, path, with_mmproj, models_folder))
        return "7"


@pytest.fixture
def shelf(tmp_path, monkeypatch):
    async def make():
        return make_shelf(tmp_path, monkeypatch)

    return asyncio.run(make())


def fixes(shelf, templates=None) -> tuple[FixesService, Queue]:
    queue = Queue()
    return FixesService(shelf.models, templates or TemplatesService(), queue), queue


async def found(shelf, path):
    await shelf.models.refresh()
    return shelf.models.find(str(path))


@pytest.mark.asyncio
async def test_a_file_of_ours_is_replaced_in_its_folder(shelf):
    service, queue = fixes(shelf)
    path = unsloth(shelf.ours / REPO / NAME)
    mmproj(path.with_name("mmproj-F16.gguf"))

    outcome = await service.apply(await found(shelf, path), Fix("download_current", "Download", REPO, NAME))

    assert isinstance(outcome, FixStarted)
    assert queue.asked == [(REPO, NAME, False, shelf.ours)]


@pytest.mark.asyncio
async def test_another_apps_file_gets_a_whole_copy_in_our_folder(shelf):
    service, queue = fixes(shelf)
    path = unsloth(shelf.lm_studio / REPO / NAME)
    before = path.read_bytes()

    outcome = await service.apply(await found(shelf, path), Fix("download_again", "Download", REPO, NAME))

    assert isinstance(outcome, FixStarted)
    assert "stays" in outcome.sentence
    assert queue.asked == [(REPO, NAME, True, shelf.ours)]
    assert path.read_bytes() == before


@pytest.mark.asyncio
async def test_a_missing_picture_file_is_fetched_alone(shelf):
    service, queue = fixes(shelf)
    model = await found(shelf, unsloth(shelf.ours / REPO / NAME))

    await service.apply(model, Fix("fetch_mmproj", "Download", REPO, "mmproj-F16.gguf"))

    assert queue.asked == [(REPO, "mmproj-F16.gguf", False, shelf.ours)]


@pytest.mark.asyncio
async def test_what_only_a_person_can_choose_becomes_a_search(shelf):
    service, queue = fixes(shelf)
    model = await found(shelf, unsloth(shelf.ours / "x" / "y-GGUF" / "renamed.gguf"))

    for fix in (Fix("choose_other", "Look"), Fix("fetch_mmproj", "Find"), Fix("download_again", "Download")):
        assert await service.apply(model, fix) == FixToChoose("Qwen3.5-35B-A3B")
    assert await service.apply(model, Fix("choose_other", "Look", "a/b")) == FixToChoose("a/b")
    assert queue.asked == []


@pytest.mark.asyncio
async def test_a_deletion_is_asked_about_with_its_bytes(shelf):
    service, _ = fixes(shelf)
    path = unsloth(shelf.ours / REPO / NAME)
    outcome = await service.apply(await found(shelf, path), Fix("delete", "Delete this copy"))

    assert isinstance(outcome, FixToAgree)
    title, sentence = question_of(outcome.deletion)
    assert title == "Delete Qwen3.5-35B-A3B-Q4_K_M?"
    assert NAME in sentence
    assert "KB" in sentence or "bytes" in sentence
    assert path.exists()

    theirs = await found(shelf, unsloth(shelf.lm_studio / "o" / "n" / "theirs.gguf"))
    with pytest.raises(QwenDeskError, match="LM Studio"):
        await service.apply(theirs, Fix("delete", "Delete this copy"))


@pytest.mark.asyncio
async def test_the_base_models_template_is_kept_by_commit_and_loaded(shelf, fake_hub):
    fake_hub.add(BASE, TEMPLATE, FIXED_TEMPLATE.encode())
    fake_hub.plain.add(TEMPLATE)
    templates = TemplatesService(lambda: Hub(Network(endpoint=fake_hub.endpoint)))
    service, _ = fixes(shelf, templates)
    path = unsloth(shelf.ours / REPO / NAME, tokenizer__chat_template=BROKEN_TEMPLATE)
    pictures = mmproj(path.with_name("mmproj-F16.gguf"))
    healthy = unsloth(shelf.ours / REPO / "Qwen3.5-35B-A3B-Q5_K_M.gguf")
    checks = shelf.checks()
    await shelf.looked(checks)
    catalog = await checks.catalog()
    model = shelf.models.find(str(path))
    before = load_options(model, templates, catalog)
    assert (before.model, before.mmproj, before.chat_template_file) == (str(path), str(pictures), "")
    broken = shelf.state(checks, path, templates)
    assert broken.kind == "broken_template"
    assert broken.fix is not None

    assert isinstance(await service.apply(model, broken.fix), FixDone)

    kept = templates.path(BASE)
    assert kept is not None
    assert "c0ffee" in str(kept)
    assert kept.read_text(encoding="utf-8") == FIXED_TEMPLATE
    assert load_options(model, templates, catalog).chat_template_file == str(kept)
    assert load_options(shelf.models.find(str(healthy)), templates, catalog).chat_template_file == ""
    assert shelf.state(checks, path, templates).kind == "not_verified"
    assert TemplatesService().path(BASE) == kept
    await checks.close()
    await shelf.models.close()


@pytest.mark.asyncio
async def test_a_template_that_is_no_better_is_refused(shelf, fake_hub):
    fake_hub.plain.add(TEMPLATE)
    fake_hub.add(BASE, TEMPLATE, BROKEN_TEMPLATE.encode())
    templates = TemplatesService(lambda: Hub(Network(endpoint=fake_hub.endpoint)))

    with pytest.raises(QwenDeskError, match="broken in the same way"):
        await templates.fetch(BASE, TEMPLATE)
    fake_hub.add(BASE, TEMPLATE, b"\xff\xfe\xff")
    with pytest.raises(QwenDeskError, match="not text"):
        await templates.fetch(BASE, TEMPLATE)
    with pytest.raises(HubTrouble):
        await templates.fetch("Qwen/nothing", TEMPLATE)

    assert templates.repos == frozenset()
    assert templates.path(BASE) is None
