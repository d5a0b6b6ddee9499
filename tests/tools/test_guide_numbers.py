"""Numbers that a tool writes into the guide's sentences."""

import pytest

from tools.guide_numbers import Phrase

PHRASE = Phrase(
    "which-model",
    "the file has {} GB, {} in 4 bits",
    "die Datei hat {} GB, {} in 4 Bit",
    ("82.6", "1.5"),
    "文件有 {} GB，4 位时 {}",
)


def test_a_changed_fact_changes_the_sentence_in_every_language() -> None:
    english = PHRASE.write_into("Here the file has 100 GB, 2 in 4 bits. It has 100 GB.", "en")
    assert english == "Here the file has 82.6 GB, 1.5 in 4 bits. It has 100 GB."
    assert PHRASE.write_into("Hier: die Datei hat 88,7 GB, 2 in 4 Bit.", "de").startswith(
        "Hier: die Datei hat 82,6 GB, 1,5 in 4 Bit."
    )
    assert PHRASE.write_into("这个文件有 1 GB，4 位时 2。", "zh_Hans") == "这个文件有 82.6 GB，4 位时 1.5。"


def test_a_sentence_that_somebody_reworded_is_named() -> None:
    with pytest.raises(ValueError, match=r"which-model\.md has 0 times: the file has \{\} GB"):
        PHRASE.write_into("The file is 100 GB large.", "en")
