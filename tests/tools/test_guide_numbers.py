"""Numbers that a tool writes into the guide's sentences."""

import pytest

from tools.guide_numbers import Phrase

PHRASE = Phrase("which-model", "the file has {} GB, {} in 4 bits", "die Datei hat {} GB, {} in 4 Bit", ("82.6", "1.5"))


def test_a_changed_fact_changes_the_sentence_in_both_languages() -> None:
    english = PHRASE.write_into("Here the file has 100 GB, 2 in 4 bits. It has 100 GB.", german=False)
    assert english == "Here the file has 82.6 GB, 1.5 in 4 bits. It has 100 GB."
    assert PHRASE.write_into("Hier: die Datei hat 88,7 GB, 2 in 4 Bit.", german=True).startswith(
        "Hier: die Datei hat 82,6 GB, 1,5 in 4 Bit."
    )


def test_a_sentence_that_somebody_reworded_is_named() -> None:
    with pytest.raises(ValueError, match=r"which-model\.md has 0 times: the file has \{\} GB"):
        PHRASE.write_into("The file is 100 GB large.", german=False)
