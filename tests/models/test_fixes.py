"""What each fix does: to which folder it downloads, what it asks about, which template a model is loaded with."""

import asyncio

import pytest

from qwendesk.core.errors import QwenDeskError
from qwendesk.hub.findings import FindingFix
from qwendesk.hub.network import HubError, Network
from qwendesk.hub.remote import Hub
from qwendesk.models.fixes import FixDone, FixesService, FixStarted, FixToAgree
from qwendesk.models.load_options import load_options
from qwendesk.models.templates import TemplatesService
from tests.hub.conftest import fake_hub
from tests.hub.verified import BROKEN_TEMPLATE, FIXED_TEMPLATE, mmproj, unsloth
from tests.models.library import make_model_home

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
def model_home(tmp_path, monkeypatch):
    async def make():
        return make_model_home(tmp_path, monkeypatch)

    return asyncio.run(make())


def fixes(model_home, templates=None) -> tuple[FixesService, Queue]:
    queue = Queue()
    return FixesService(model_home.models, templates or TemplatesService(), queue), queue


async def found(model_home, path):
    await model_home.models.refresh()
    return model_home.models.find(str(path))


async def test_own_file_is_replaced_in_its_folder(model_home):
    service, queue = fixes(model_home)
    path = unsloth(model_home.ours / REPO / NAME)
    mmproj(path.with_name("mmproj-F16.gguf"))

    outcome = await service.apply(await found(model_home, path), FindingFix("download_current", REPO, NAME))

    assert isinstance(outcome, FixStarted)
    assert queue.asked == [(REPO, NAME, False, model_home.ours)]


async def test_fix_for_a_file_of_another_app_downloads_a_copy(model_home):
    service, queue = fixes(model_home)
    path = unsloth(model_home.lm_studio / REPO / NAME)
    before = path.read_bytes()

    outcome = await service.apply(await found(model_home, path), FindingFix("download_again", REPO, NAME))

    assert isinstance(outcome, FixStarted)
    assert "The original is kept" in outcome.sentence
    assert queue.asked == [(REPO, NAME, True, model_home.ours)]
    assert path.read_bytes() == before


async def test_missing_mmproj_is_downloaded_alone(model_home):
    service, queue = fixes(model_home)
    model = await found(model_home, unsloth(model_home.ours / REPO / NAME))

    await service.apply(model, FindingFix("download_mmproj", REPO, "mmproj-F16.gguf"))

    assert queue.asked == [(REPO, "mmproj-F16.gguf", False, model_home.ours)]


async def test_deletion_must_be_confirmed(model_home):
    service, _ = fixes(model_home)
    path = unsloth(model_home.ours / REPO / NAME)
    outcome = await service.apply(await found(model_home, path), FindingFix("delete_copy"))

    assert isinstance(outcome, FixToAgree)
    assert [file.path for file in outcome.deletion.files] == [str(path)]
    assert outcome.deletion.n_bytes == path.stat().st_size
    assert path.exists()

    theirs = await found(model_home, unsloth(model_home.lm_studio / "o" / "n" / "theirs.gguf"))
    with pytest.raises(QwenDeskError, match="LM Studio"):
        await service.apply(theirs, FindingFix("delete_copy"))


async def test_template_of_the_base_model_is_saved_by_commit_and_loaded(model_home, fake_hub):
    fake_hub.add(BASE, TEMPLATE, FIXED_TEMPLATE.encode())
    fake_hub.plain.add(TEMPLATE)
    templates = TemplatesService(lambda: Hub(Network(endpoint=fake_hub.endpoint)))
    service, _ = fixes(model_home, templates)
    path = unsloth(model_home.ours / REPO / NAME, tokenizer__chat_template=BROKEN_TEMPLATE)
    pictures = mmproj(path.with_name("mmproj-F16.gguf"))
    healthy = unsloth(model_home.ours / REPO / "Qwen3.5-35B-A3B-Q5_K_M.gguf")
    checks = model_home.checks()
    await model_home.wait_for_checks(checks)
    catalog = await model_home.catalog.load()
    model = model_home.models.find(str(path))
    before = load_options(model, templates, catalog)
    assert (before.model, before.mmproj, before.chat_template_file) == (str(path), str(pictures), "")
    broken = model_home.state(checks, path, templates)
    assert broken.kind == "broken_template"
    assert broken.fix is not None

    assert isinstance(await service.apply(model, broken.fix), FixDone)

    kept = templates.path(BASE)
    assert kept is not None
    assert "c0ffee" in str(kept)
    assert kept.read_text(encoding="utf-8") == FIXED_TEMPLATE
    assert load_options(model, templates, catalog).chat_template_file == str(kept)
    assert load_options(model_home.models.find(str(healthy)), templates, catalog).chat_template_file == ""
    assert model_home.state(checks, path, templates).kind == "not_verified"
    assert TemplatesService().path(BASE) == kept
    await checks.close()


async def test_template_that_is_also_broken_is_refused(model_home, fake_hub):
    fake_hub.plain.add(TEMPLATE)
    fake_hub.add(BASE, TEMPLATE, BROKEN_TEMPLATE.encode())
    templates = TemplatesService(lambda: Hub(Network(endpoint=fake_hub.endpoint)))

    with pytest.raises(QwenDeskError, match="is broken too"):
        await templates.install(BASE, TEMPLATE)
    fake_hub.add(BASE, TEMPLATE, b"\xff\xfe\xff")
    with pytest.raises(QwenDeskError, match="isn't text"):
        await templates.install(BASE, TEMPLATE)
    with pytest.raises(HubError):
        await templates.install("Qwen/nothing", TEMPLATE)

    assert templates.repos.value == frozenset()
    assert templates.path(BASE) is None
