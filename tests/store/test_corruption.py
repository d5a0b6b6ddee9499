"""Whatever happens to a page of the file of chats, the next start shows every message that is left somewhere."""

import random
import shutil
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from qwendesk.store.attachments import own_files
from qwendesk.store.backups import backups
from qwendesk.store.opening import ATTACHMENTS, FILE_NAME, Store, open_store
from tests.store.chat_nodes import node
from tests.store.corruption import DAMAGES, Written, damage_file, write_chats

KINDS = tuple(DAMAGES)


class Result(msgspec.Struct, frozen=True):
    """What became of one damaged file."""

    is_told: bool
    lost: int
    touched: int


@pytest.fixture(scope="module", params=["closed", "crashed"])
def written(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Written]:
    folder = tmp_path_factory.mktemp(request.param) / "data"
    return folder, write_chats(folder, is_closed=request.param == "closed")


def everything(store: Store) -> dict[str, str]:
    return {
        each.id: each.message.text for chat in store.chats.list() for each in store.chats.load(chat.id).nodes.values()
    }


def survive(template: Path, written: Written, folder: Path, seed: int) -> Result:
    """Damage a copy of the template, start, and compare."""
    chance = random.Random(seed)
    shutil.copytree(template, folder)
    path = folder / FILE_NAME
    has_backup = chance.random() < 0.6
    if not has_backup:
        for backup in backups(path):
            backup.path.unlink()
    touched = damage_file(path, KINDS[seed % len(KINDS)], chance)

    store, report = open_store(folder)
    assert store is not None, report
    try:
        found = everything(store)
        untouched = written.texts.keys() - touched
        assert {name for name in untouched if found.get(name) != written.texts[name]} == set()
        missing = written.texts.keys() - found.keys()
        if has_backup:
            assert missing <= written.newer & touched
        extra = found.keys() - written.texts.keys()
        # A message whose id is damaged is here under another one.
        assert len(extra) <= len(touched), extra
        lost = len(missing) - len(extra)
        if lost:
            assert report is not None
            exact = f"Lost: {lost} message"
            assert exact in report.sentence or "can't tell how many" in report.sentence, (lost, report)
            assert bool(report.backup) == has_backup
        assert all(_has_picture(store, name, written) for name in written.pictures.keys() & untouched)
        kept = {each.read_bytes() for each in own_files(folder / ATTACHMENTS)}
        assert set(written.pictures.values()) <= kept
        store.chats.save_node("new", node("q-new", text="kingfisher")).result()
        assert "q-new" in [hit.node_id for hit in store.search.find("kingfisher")]
    finally:
        store.close()
    store, again = open_store(folder)
    assert store is not None
    assert again is None
    assert everything(store).keys() == found.keys() | {"q-new"}
    store.close()
    return Result(report is not None, lost, len(touched))


def _has_picture(store: Store, name: str, written: Written) -> bool:
    tree = store.attachments.with_copies(store.chats.load(f"c{name[1:].split('-', maxsplit=1)[0]}"))
    (image,) = tree.nodes[name].message.images
    return Path(image.path).read_bytes() == written.pictures[name]


@pytest.mark.parametrize("seed", range(14))
def test_every_readable_message_survives_damage(written: tuple[Path, Written], tmp_path: Path, seed: int) -> None:
    survive(*written, tmp_path / "data", seed)


@pytest.fixture(scope="module")
def tally() -> Iterator[dict[str, list[Result]]]:
    """Results by kind of damage, printed at the end."""
    results: dict[str, list[Result]] = {kind: [] for kind in KINDS}
    yield results
    for kind, found in results.items():
        if found:
            print(
                f"\n{kind}: {len(found)} files, {sum(each.is_told for each in found)} recovered, "
                f"{sum(each.touched for each in found)} messages touched, {sum(each.lost for each in found)} lost",
                end="",
            )


@pytest.mark.soak
@pytest.mark.parametrize("part", range(10))
def test_200_random_corruptions_lose_no_readable_message(
    written: tuple[Path, Written], tmp_path: Path, tally: dict[str, list[Result]], part: int
) -> None:
    for count in range(10):
        seed = random.SystemRandom().randrange(1 << 30)
        print(f"part {part}, file {count}: seed {seed}")
        folder = tmp_path / str(seed)
        tally[KINDS[seed % len(KINDS)]].append(survive(*written, folder, seed))
        shutil.rmtree(folder)
