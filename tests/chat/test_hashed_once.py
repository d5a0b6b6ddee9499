"""An attached image is hashed once, from the moment it is attached until its chat is opened and answered again."""

import hashlib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from PIL import Image

from qwendesk.chat.chat_list import ChatListService, ChatOpened
from qwendesk.chat.chat_saver import StoreChatSaver
from qwendesk.chat.context_fill import ContextGauge
from qwendesk.chat.drafts import Drafts
from qwendesk.chat.image_parts import image_part
from qwendesk.chat.service import ChatService
from qwendesk.core import paths
from qwendesk.core.messages import ImagePart
from qwendesk.core.options import LoadOptions
from qwendesk.engine.protocol import Generate, Measure
from qwendesk.engine.worker import vision
from tests.service_desk import Desk


def photo(path: Path) -> Path:
    Image.linear_gradient("L").convert("RGB").save(path)
    return path


class HashCounter:
    """Counts how often the SHA-256 of each content is computed."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._sha256, self._file_digest = hashlib.sha256, hashlib.file_digest
        self.digests: list[str] = []
        counter = self

        class Counted:
            def __init__(self, data: bytes = b"") -> None:
                self._digest = counter._sha256(data)

            def update(self, data: bytes) -> None:
                self._digest.update(data)

            def hexdigest(self) -> str:
                counter.digests.append(self._digest.hexdigest())
                return self._digest.hexdigest()

        def file_digest(file: Any, name: str) -> Any:
            digest = counter._file_digest(file, name)
            counter.digests.append(digest.hexdigest())
            return digest

        monkeypatch.setattr(hashlib, "sha256", Counted)
        monkeypatch.setattr(hashlib, "file_digest", file_digest)

    def of(self, content: bytes) -> int:
        return self.digests.count(self._sha256(content).hexdigest())


@pytest.fixture
def hashes(monkeypatch: pytest.MonkeyPatch) -> HashCounter:
    return HashCounter(monkeypatch)


class Kit:
    """The chat and the list of chats on one store and a fake engine."""

    def __init__(self, desk: Desk, folder: Path) -> None:
        self.folder = folder
        self.client = desk.client
        self.saver = StoreChatSaver()
        self.chat = ChatService(desk.client, desk.engine, self.saver)
        self.gauge = ContextGauge(desk.client, desk.engine, self.chat)
        self.chat_list = ChatListService(self.saver, Drafts(), self.chat.chat_id)

    async def close(self) -> None:
        await self.chat.stop()
        await self.chat_list.close()


@pytest_asyncio.fixture
async def kit(desk: Desk, tmp_path: Path) -> AsyncIterator[Kit]:
    await desk.engine.load(LoadOptions(model="/models/Qwen3.5-9B-Q4_K_M.gguf"))
    kit = Kit(desk, tmp_path / "data")
    await kit.chat_list.start(kit.folder)
    yield kit
    await kit.close()


def sent_images(kit: Kit) -> list[ImagePart]:
    """The images of all requests to the engine, those that were only measured included."""
    requests = [each for each in kit.client.requests if isinstance(each, Generate | Measure)]
    measured = [image for each in requests if isinstance(each, Measure) for image in each.pictures]
    return measured + [image for each in requests for message in each.messages for image in message.images]


def read_as_the_worker_does(images: list[ImagePart]) -> None:
    for image in images:
        vision.picture_size(image)
        vision.read_picture(image)


async def test_file_is_hashed_only_when_it_is_attached(
    desk: Desk, kit: Kit, tmp_path: Path, hashes: HashCounter
) -> None:
    file = photo(tmp_path / "photo.png")
    content = file.read_bytes()

    image = image_part(file)
    await kit.gauge.count_picture(image)
    await kit.gauge.count_request("What is this?", [image])
    await kit.chat.send("What is this?", [image])
    await kit.chat.send("And the colour?")
    await kit.saver.wait_for_copies()
    await kit.chat_list.wait_for_writes()
    read_as_the_worker_does(sent_images(kit))
    assert hashes.of(content) == 1

    opened: list[Any] = []
    kit.chat_list.subscribe(opened.append)
    await desk.until(lambda: kit.chat.chat_id in kit.chat_list.chats.summaries)
    await kit.chat_list.open(kit.chat.chat_id)
    (event,) = [each for each in opened if isinstance(each, ChatOpened)]
    kit.chat.open(event.chat_id, event.tree, event.settings)
    kit.client.requests.clear()
    await kit.chat.send("And now?")
    (copy,) = sent_images(kit)
    assert Path(copy.path).is_relative_to(kit.folder)
    read_as_the_worker_does([copy])
    assert hashes.of(content) == 1


async def test_scaled_copy_is_hashed_once(kit: Kit, tmp_path: Path, hashes: HashCounter) -> None:
    folder = paths.cache_folder() / "scaled"
    of_other_tests = set(folder.glob("*"))
    file = photo(tmp_path / "photo.png")
    image = image_part(file, longest_side=64)
    await kit.gauge.count_picture(image)
    await kit.chat.send("What is this?", [image])
    await kit.chat.send("And the colour?")
    read_as_the_worker_does(sent_images(kit))
    (copy,) = set(folder.iterdir()) - of_other_tests
    with Image.open(copy) as image_file:
        assert max(image_file.size) == 64
    assert (hashes.of(file.read_bytes()), hashes.of(copy.read_bytes())) == (1, 1)


async def test_incognito_image_is_hashed_once(kit: Kit, tmp_path: Path, hashes: HashCounter) -> None:
    kit.chat_list.new(incognito=True)
    kit.chat.new_chat(kit.chat_list.current_id)
    content = photo(tmp_path / "photo.png").read_bytes()
    image = kit.chat.incognito_images.add(content, "pasted.png")
    await kit.gauge.count_picture(image)
    await kit.chat.send("What is this?", [image])
    await kit.chat.send("And the colour?")
    sent = sent_images(kit)
    assert {each.data for each in sent} == {content}
    read_as_the_worker_does(sent)
    assert hashes.of(content) == 1


async def test_file_changed_before_sending_is_hashed_again(kit: Kit, tmp_path: Path) -> None:
    file = photo(tmp_path / "photo.png")
    image = image_part(file)
    Image.new("RGB", (32, 32), "red").save(file)
    turn = await kit.chat.send("What is this?", [image])
    (now,) = turn.question.images
    assert now.sha256 == image_part(file).sha256 != image.sha256
