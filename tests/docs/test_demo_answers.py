"""What the demo model says about the app is so: its answers name labels and shortcuts of the window."""

import re

from tests.docs.window import is_label, unknown_shortcuts
from tools.demo_model.topics import read_knowledge

TOPICS = read_knowledge().topics
NO_LABELS = {"bold"}
"""Topics whose bold words are only bold."""


def test_bold_words_of_answers_are_labels_of_the_app() -> None:
    for name, topic in TOPICS.items():
        for bold in re.findall(r"\*\*([^*]+)\*\*", topic.answer):
            assert name in NO_LABELS or is_label(bold), f"{name}: the app does not say “{bold}”"


def test_shortcuts_in_answers_exist_in_the_window() -> None:
    unknown = {name: unknown_shortcuts(topic.answer) for name, topic in TOPICS.items()}

    assert not {name: keys for name, keys in unknown.items() if keys}
