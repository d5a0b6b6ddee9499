"""What prompt lookup proposes, and when the gate lets it."""

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from qwendesk.engine.worker.cache import ImageItem, Item
from qwendesk.engine.worker.drafts import DraftGate, LookupDrafter


def test_it_proposes_what_followed_the_last_time() -> None:
    drafter = LookupDrafter([1, 2, 3, 10, 11, 12, 1, 2, 3, 20, 21, 1, 2])
    drafter.add(3)
    assert drafter.propose(3) == [20, 21, 1]
    drafter.add(10)
    assert drafter.propose(3) == [11, 12, 1], "2, 3, 10 occurred at the beginning"
    drafter.add(99)
    assert drafter.propose(3) == ()


def test_it_proposes_nothing_for_a_new_text() -> None:
    assert LookupDrafter([]).propose(3) == ()
    assert LookupDrafter([1, 2]).propose(3) == ()
    assert LookupDrafter([1, 2, 3]).propose(3) == ()
    assert LookupDrafter(range(100)).propose(3) == ()


def test_no_draft_goes_beyond_a_picture() -> None:
    image = ImageItem("a", 10, 4)
    assert LookupDrafter([1, 2, 3, 4, image, 5, 1, 2, 3]).propose(4) == [4]
    assert LookupDrafter([image, 2, 3, 4, 5, image, 2, 3]).propose(4) in ([4, 5], [])


@given(st.lists(st.one_of(st.integers(0, 3), st.just(ImageItem("a", 3, 2))), max_size=60), st.integers(1, 6), st.data())
def test_it_agrees_with_a_search_through_the_whole_text(items: list[Item], most: int, data: st.DataObject) -> None:
    cut = data.draw(st.integers(0, len(items)))
    drafter = LookupDrafter(items[:cut])
    for item in items[cut:]:
        if isinstance(item, int):
            drafter.add(item)
    text = [*items[:cut], *(item for item in items[cut:] if isinstance(item, int))]
    proposed = list(drafter.propose(most))
    assert proposed == searched(text, most) or not all(isinstance(item, int) for item in text[-3:])


def searched(text: Sequence[Item], most: int) -> list[Item]:
    for start in range(len(text) - 4, -1, -1):
        if text[start : start + 3] == text[-3:]:
            found = text[start + 3 : start + 3 + most]
            images = [index for index, item in enumerate(found) if not isinstance(item, int)]
            return list(found[: images[0]] if images else found)
    return []


def gate_after(*, plain_s: float, drafted_s: float, gained: int, steps: int = 30) -> DraftGate:
    gate = DraftGate()
    for _ in range(steps):
        gate.note(drafted=0, gained=1, seconds=plain_s)
    for _ in range(steps):
        gate.note(drafted=3, gained=gained, seconds=drafted_s)
    return gate


def test_the_gate_opens_only_after_plain_steps_were_measured() -> None:
    gate = DraftGate()
    assert not gate.is_open
    for _ in range(10):
        gate.note(drafted=0, gained=1, seconds=0.01)
    assert gate.is_open
    assert gate.speedup == 1.0


def test_the_gate_stays_open_while_drafts_pay_off() -> None:
    gate = gate_after(plain_s=0.010, drafted_s=0.015, gained=3)
    assert gate.is_open
    assert 1.99 < gate.speedup < 2.01


def test_the_gate_closes_below_break_even_and_tries_again_later() -> None:
    gate = gate_after(plain_s=0.010, drafted_s=0.030, gained=2)
    assert not gate.is_open
    for _ in range(200):
        gate.note(drafted=0, gained=1, seconds=0.01)
    assert gate.is_open
    for _ in range(6):
        gate.note(drafted=3, gained=1, seconds=0.03)
    assert not gate.is_open


def test_a_slower_pc_is_noticed() -> None:
    """Decoding without drafts became three times slower, as when another program runs: drafts pay off now."""
    gate = gate_after(plain_s=0.010, drafted_s=0.025, gained=2)
    assert not gate.is_open
    for _ in range(200):
        gate.note(drafted=0, gained=1, seconds=0.03)
    for _ in range(30):
        gate.note(drafted=3, gained=2, seconds=0.03)
    assert gate.is_open


def test_the_speedup_of_all_steps_is_known_after_enough_of_them() -> None:
    gate = DraftGate()
    assert gate.measured_speedup == 0.0
    for _ in range(60):
        gate.note(drafted=0, gained=1, seconds=0.01)
    for _ in range(20):
        gate.note(drafted=3, gained=3, seconds=0.015)
    assert gate.measured_speedup == 0.0, "too few"
    for _ in range(40):
        gate.note(drafted=3, gained=3, seconds=0.015)
    assert 1.99 < gate.measured_speedup < 2.01
