"""Where a prompt's batches end: the same places, whatever was in memory before."""

from hypothesis import given
from hypothesis import strategies as st

from qwendesk.core.messages import ImagePart
from qwendesk.engine.worker.cache import ImageItem
from qwendesk.engine.worker.layout import DecodeStep, Layout, lay_out
from qwendesk.engine.worker.prompt import Boundary, ImagePlaceholder, Prompt
from qwendesk.engine.worker.vision import ImageChunk, PreparedImage

START, USER, ASSISTANT, NEWLINE, THINK, END = 1090, 1091, 1092, 1093, 1094, 1095
TILE = ImageChunk(ImageItem("cat", n_tokens=768, n_positions=32), handle=0)


def plain(n_items: int, cuts: dict[int, bool]) -> Layout:
    return Layout(tuple(range(n_items)), {}, cuts, opens_reasoning=False)


def ends(layout: Layout, start: int, n_ubatch: int) -> list[int]:
    place, places = start, []
    for step in layout.steps(start, n_ubatch):
        place += len(step.items)
        places.append(place)
    return places


def test_batches_end_at_cuts_and_are_never_larger_than_asked() -> None:
    assert ends(plain(20, {7: True, 15: False}), 0, 4) == [4, 7, 11, 15, 19, 20]


def test_checkpoints_follow_cuts_and_the_pinned_one_is_marked() -> None:
    steps = list(plain(10, {4: True, 8: False}).steps(0, 100))
    assert [(step.save, step.pinned) for step in steps] == [(True, True), (True, False), (False, False)]


def test_only_the_last_batch_has_logits() -> None:
    assert [step.is_last for step in plain(10, {4: True}).steps(0, 3)] == [False, False, False, True]


def test_long_text_has_checkpoints_in_between() -> None:
    saved = [step.save for step in plain(3_500, {}).steps(0, 512)]
    assert [index + 1 for index, save in enumerate(saved) if save] == [2, 4, 6]
    saved = [step.save for step in plain(3_000, {}).steps(0, 512)]
    assert [index + 1 for index, save in enumerate(saved) if save] == [2, 4, 5], "and before the last batch"


@given(st.integers(1, 300), st.sets(st.integers(1, 299)), st.integers(1, 50))
def test_batches_from_any_cut_end_at_the_same_places(n_items: int, cuts: set[int], n_ubatch: int) -> None:
    layout = plain(n_items, {cut: False for cut in cuts if cut < n_items})
    whole = ends(layout, 0, n_ubatch)
    assert whole[-1] == n_items
    for cut in layout.cuts:
        assert ends(layout, cut, n_ubatch) == [place for place in whole if place > cut]


def chat_with_picture() -> Layout:
    """One turn answered, a second turn with a picture asked."""
    first = (START, USER, NEWLINE, 1, 2, START, ASSISTANT, NEWLINE, 3, 4, 5, START, USER, NEWLINE)
    last = (6, 7, START, ASSISTANT, NEWLINE, THINK, NEWLINE)
    prompt = Prompt(
        pieces=(first, ImagePlaceholder(ImagePart("cat.png", "cat")), last),
        boundaries=(
            Boundary(0, 0, "system"),
            Boundary(0, 11, "user_turn"),
            Boundary(2, 0, "image"),
            Boundary(2, 5, "reasoning"),
        ),
        opens_reasoning=True,
    )
    return lay_out(prompt, {"cat": PreparedImage(((80,), TILE, (81,)))})


def test_a_picture_is_one_item_with_its_marks_around_it() -> None:
    layout = chat_with_picture()
    assert layout.items[14:17] == (80, TILE.item, 81)
    assert layout.n_tokens == 14 + 2 + 768 + 7
    assert layout.image_tokens == 768
    (step,) = [step for step in layout.steps(0, 512) if step.image_chunk]
    assert step == DecodeStep((TILE.item,), TILE)


def test_cuts_are_at_turns_pictures_reasoning_and_earlier_answers() -> None:
    """The second turn begins right behind the first answer: too near for a checkpoint of its own."""
    assert chat_with_picture().cuts == {8: False, 17: False, 22: False}


def test_a_turn_after_a_long_answer_has_its_own_checkpoint() -> None:
    question, answer = (START, USER, NEWLINE, 1), (START, ASSISTANT, NEWLINE, *range(200))
    pieces = ((*question, *answer, *question, START, ASSISTANT, NEWLINE, THINK),)
    boundaries = (Boundary(0, 0, "system"), Boundary(0, 207, "user_turn"), Boundary(0, 214, "reasoning"))
    layout = lay_out(Prompt(pieces, boundaries, opens_reasoning=True), {})
    assert layout.cuts == {7: False, 207: False, 214: False}


def test_an_answer_after_a_tools_result_has_no_checkpoint_before_it() -> None:
    question, header, call, result = (START, USER, 1), (START, ASSISTANT, NEWLINE), (THINK, 2, END), (START, USER, 3)
    answered = (*question, *header, *call, *result, *header)
    boundaries = (Boundary(0, 0, "system"), Boundary(0, 9, "tool_turn"))
    after_result = Prompt(((*answered, THINK),), (*boundaries, Boundary(0, 15, "reasoning")), opens_reasoning=True)
    assert lay_out(after_result, {}).cuts == {6: False}, "only where the first answer began"

    next_turn = (*answered, 4, END, *question, *header, THINK)
    marked = (*boundaries, Boundary(0, 17, "user_turn"), Boundary(0, 23, "reasoning"))
    assert lay_out(Prompt((next_turn,), marked, opens_reasoning=True), {}).cuts == {6: False, 23: False}


def test_the_start_of_the_first_turn_is_pinned_when_a_system_prompt_precedes_it() -> None:
    prompt = Prompt(((START, 1, START, USER, 2),), (Boundary(0, 2, "system"),), opens_reasoning=False)
    assert lay_out(prompt, {}).cuts == {2: True, 4: False}, "and one before the last token: see below"
    assert lay_out(prompt, {}, can_cut_anywhere=True).cuts == {2: True}


def test_the_first_token_of_every_text_is_no_batch_of_its_own() -> None:
    """Gemma and Llama begin with one; a checkpoint behind it cost the time of one token in each new chat."""
    first_token = 99
    piece = (first_token, START, USER, 1, END, START, ASSISTANT)
    boundaries = (Boundary(0, 1, "system"), Boundary(0, 4, "generation"))
    prompt = Prompt((piece,), boundaries, opens_reasoning=False)
    assert lay_out(prompt, {}).cuts == {4: False}
    assert lay_out(prompt, {}, can_cut_anywhere=True).cuts == {}


def test_without_reasoning_checkpoints_precede_each_generation_prompt() -> None:
    question, header = (START, USER, *range(200)), (END, START, ASSISTANT, NEWLINE)
    piece = (*question, *header, 1, 2, END, *question, *header)
    boundaries = (Boundary(0, 0, "system"), Boundary(0, 209, "user_turn"), Boundary(0, 411, "generation"))
    prompt = Prompt((piece,), boundaries, opens_reasoning=False)
    assert lay_out(prompt, {}).cuts == {202: False, 411: False}
    assert lay_out(prompt, {}, can_cut_anywhere=True).cuts == {209: False}, "such a model can go back to any place"


def test_continued_answer_keeps_its_prompts_checkpoints() -> None:
    piece = (START, USER, 1, END, START, ASSISTANT, 2, 3)
    boundaries = (Boundary(0, 0, "system"), Boundary(0, 3, "generation"))
    prompt = Prompt((piece,), boundaries, opens_reasoning=False, begun=(2, 3))
    assert lay_out(prompt, {}).cuts == {3: False}
