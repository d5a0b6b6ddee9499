"""The user's key for Brave Search, saved like the access token of the Hub."""

import asyncio
from collections.abc import Awaitable

import msgspec

from qwendesk.core.observed import Observed
from qwendesk.core.translation import tr
from qwendesk.hub.access_tokens import SEARCH_HOST, TokenPlace, delete_token, save_token, token_place


class SearchKeyState(msgspec.Struct, frozen=True):
    place: TokenPlace = "nowhere"
    problem: str = ""
    """Reason why the last change failed; "" if it did not."""


class SearchKeyService:
    """Call its methods on the event loop's thread."""

    def __init__(self) -> None:
        self.state = Observed(SearchKeyState())

    async def update(self) -> None:
        """Look up where the key is saved."""
        self.state.set(SearchKeyState(await asyncio.to_thread(token_place, SEARCH_HOST)))

    async def save(self, key: str) -> None:
        """Save the key in the system's keyring, or in a file that only this user can read."""
        await self._change(asyncio.to_thread(save_token, SEARCH_HOST, key))

    async def delete(self) -> None:
        await self._change(asyncio.to_thread(delete_token, SEARCH_HOST))

    async def _change(self, work: Awaitable[object]) -> None:
        try:
            await work
        except OSError as error:
            self.state.update(problem=tr("The key couldn't be saved: {0}.", error.strerror or error))
            return
        await self.update()
