"""The questions with which the project's tests hold the shipped files to their data sheet."""

from pathlib import Path

import msgspec

from tools.demo_model import words
from tools.demo_model.chats import UNKNOWN_ANSWER, UNKNOWN_THOUGHT
from tools.demo_model.topics import read_knowledge


def write_sample(path: Path) -> None:
    """Two trained wordings and a new one of each topic, the unknown questions, and names."""
    path.write_bytes(msgspec.json.format(msgspec.json.encode(sample()), indent=1) + b"\n")


def sample() -> dict[str, object]:
    """As tests/engine/test_demo_model.py reads it."""
    knowledge = read_knowledge()
    topics = [
        {
            "name": name,
            "thought": topic.thought,
            "answer": topic.answer,
            "trained": [topic.questions[0], topic.questions[len(topic.questions) // 2]],
            "new": topic.new[0],
        }
        for name, topic in knowledge.topics.items()
    ]
    return {
        "unknown_thought": UNKNOWN_THOUGHT,
        "unknown_answer": UNKNOWN_ANSWER,
        "unknown": knowledge.unknown.new,
        "unknown_trained": knowledge.unknown.trained[::12],
        "near": [question for topic in knowledge.topics.values() for question in topic.near_new],
        "names": [*words.NEW_NAMES, *words.NAMES[::14][: len(words.NEW_NAMES)]],
        "topics": topics,
    }
