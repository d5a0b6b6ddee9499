"""The Hub of our own, for the tests that download."""

from collections.abc import Iterator

import pytest

from tests.hub.hub_server import FakeHub, running_hub


@pytest.fixture
def fake_hub() -> Iterator[FakeHub]:
    from huggingface_hub.utils import close_session

    with running_hub() as hub:
        yield hub
        close_session()
