"""ToolService: which tools a chat has, and running a call: checked, allowed by the user, limited and recorded."""

import asyncio
import hashlib
import json
import logging
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from qwendesk.core import paths
from qwendesk.core.chats import ChatSettings
from qwendesk.core.errors import QwenDeskError
from qwendesk.core.files import write_whole
from qwendesk.core.json_decoding import decode_json
from qwendesk.core.json_file import JsonFile
from qwendesk.core.messages import CallRecord, Consent, ImagePart, ToolCall
from qwendesk.core.observed import Observed
from qwendesk.core.paths import cache_folder
from qwendesk.core.tool_context import CallContext, CallProgress, ConsentRequest, Decision, ToolChoice, ToolLook
from qwendesk.core.translation import tr
from qwendesk.decoding.images import decode_image
from qwendesk.toolbox.shown_text import with_codes
from qwendesk.toolbox.tool import Arguments, Tool, ToolError, ToolImage, ToolResult


class Grant(msgspec.Struct, frozen=True):
    """A consent that lasts: for one tool as it was then, in one chat or in one folder."""

    tool: str
    """`fingerprint` of the tool: when it changes, the consent ends."""
    chat_id: str = ""
    folder: str = ""
    name: str = ""
    """The tool's name, for showing the consent."""


def fingerprint(tool: Tool) -> str:
    """Return a hash of all that the model is told about a tool, and of who runs it."""
    told = json.dumps(
        [tool.provider, tool.definition] if tool.provider else tool.definition, sort_keys=True, ensure_ascii=False
    )
    return hashlib.sha256(told.encode()).hexdigest()


def allowed_by(tool: Tool, context: CallContext, grants: Sequence[Grant]) -> Consent:
    """Return why a call of `tool` runs without asking; "" if it asks.

    What has no effect, and what only reads in folders that the user picked for this chat, runs. All else asks, unless
    the user has allowed it for longer; and it asks each time once the model has read anything that the user did not
    type, whatever was allowed before. Some tools ask each time in every chat.
    """
    if tool.effect in ("nothing", "reads"):
        return "unasked"
    covering = next((grant for grant in grants if _covers(grant, tool, context)), None)
    if covering is None or context.is_tainted or tool.asks_each_time:
        return ""
    return "chat" if covering.chat_id else "always"


def choices(tool: Tool, context: CallContext) -> tuple[Decision, ...]:
    """Return what the user may decide about a call that asks."""
    if context.is_tainted or tool.asks_each_time:
        return ("once", "refuse")
    lasting: tuple[Decision, ...] = ("once", "chat", "always", "refuse")
    is_in_folder = tool.needs_folder and len(context.settings.tool_folders) == 1
    return lasting if is_in_folder and not context.is_incognito else ("once", "chat", "refuse")


def grant_for(decision: Decision, tool: Tool, context: CallContext) -> Grant | None:
    """Return the consent that a decision leaves; None if it counts for one call only."""
    if decision == "chat":
        return Grant(fingerprint(tool), chat_id=context.chat_id, name=tool.name)
    if decision == "always":
        return Grant(fingerprint(tool), folder=context.settings.tool_folders[0], name=tool.name)
    return None


def _covers(grant: Grant, tool: Tool, context: CallContext) -> bool:
    if grant.tool != fingerprint(tool):
        return False
    if grant.chat_id:
        return grant.chat_id == context.chat_id
    return context.settings.tool_folders == (grant.folder,)


_logger = logging.getLogger(__name__)

# How long a tool may run.
LIMIT_S = 60.0
# Characters of what the user sees before consent. A longer call is refused: nobody could check it.
_MOST_SHOWN = 20_000
# Of a definition, about.
_CHARACTERS_PER_TOKEN = 4
_TOO_LONG = "This call is too long for the user to check it. Make it shorter, or do it in several calls."
_REFUSED = "The user did not allow this call. Do not try it again unless they ask for it."


class Grants(msgspec.Struct, frozen=True):
    """The lasting consents of the user, as they are saved."""

    always: tuple[Grant, ...] = ()
    allowed: dict[str, str] = {}
    """Fingerprints by name of the tools of others when the user last allowed a call."""


def consents_file() -> JsonFile[Grants]:
    """Return the file of the user's lasting consents."""
    return JsonFile(paths.config_folder() / "tool_consents.json", Grants, Grants)


class ToolService:
    """Methods are called on the event loop's thread."""

    def __init__(
        self,
        tools: Sequence[Tool],
        file: JsonFile[Grants] | None = None,
        *,
        clock: Callable[[], float] = time.monotonic,
        limit_s: float = LIMIT_S,
    ) -> None:
        """Without a `file`, what is always allowed is forgotten at the end of the app."""
        self._own = tuple(tools)
        self.added: Observed[tuple[Tool, ...]] = Observed(())
        """Those from elsewhere, such as MCP servers, which come and go; see `set_added`."""
        self.tools = {tool.name: tool for tool in tools}
        """All tools there are, by name, in the order in which they are shown."""
        self.waiting: Observed[ConsentRequest | None] = Observed(None)
        """The call that waits for the user's decision."""
        self.progress: Observed[CallProgress | None] = Observed(None)
        """The running call's last progress message."""
        self._file, self._clock, self._limit_s = file, clock, limit_s
        saved = Grants() if file is None else file.load().value
        self._saved, self._allowed = saved, saved.allowed
        self.grants = Observed(saved.always)
        """The consents that last, as they were given. Those for a chat end with the app."""
        self.obstacles: Observed[Mapping[str, str]] = Observed({})
        """Why tools can't be used on this PC, by name; "" for those that were tried and can."""
        self._obstacles_found = asyncio.Lock()
        self._decision: asyncio.Future[Decision] | None = None

    def set_added(self, tools: Sequence[Tool]) -> None:
        """Replace the tools from elsewhere. One with the name of a tool of the app is left out."""
        own = {tool.name: tool for tool in self._own}
        added = {tool.name: tool for tool in tools if tool.name not in own}
        self.tools = own | added
        self.added.set(tuple(added.values()))

    def definitions(self, settings: ChatSettings) -> tuple[str, ...]:
        """Return the tools that are on in a chat, as JSON. Always in the same order, so that the prompt stays.

        Those that read in folders are off while the chat has none, and all are while answers have a prescribed form.
        """
        if settings.json_schema.strip() or settings.overrides.get("grammar", "").strip():
            return ()
        return tuple(_definition(tool) for tool in self.tools.values() if self._is_on(tool, settings))

    async def find_obstacles(self) -> None:
        """Try the tools that may be impossible on this PC, unless they were possible before."""
        async with self._obstacles_found:
            for tool in self.tools.values():
                if tool.find_obstacle is not None and self.obstacles.value.get(tool.name) != "":
                    found = await tool.find_obstacle()
                    self.obstacles.set({**self.obstacles.value, tool.name: found})

    @property
    def choices(self) -> tuple[ToolChoice, ...]:
        """All tools as the user chooses them: those of a group are one choice."""
        groups: dict[str, list[Tool]] = {}
        for tool in self.tools.values():
            groups.setdefault(tool.switch or tool.group or tool.title, []).append(tool)
        return tuple(self._choice(group[0].group or group[0].title, group) for group in groups.values())

    @property
    def looks(self) -> dict[str, ToolLook]:
        """How calls look to the user, by the tools' names."""
        return {
            name: ToolLook(tr(tool.title), tool.icon, tool.changes_files, tool.shows_code)
            for name, tool in self.tools.items()
        }

    def taints(self, tool: str) -> bool:
        """Return whether a result of this tool may hold text that the user did not type."""
        found = self.tools.get(tool)
        return found is None or not found.is_trusted

    def reads_descriptions(self, settings: ChatSettings) -> bool:
        """Return whether the prompt of a chat tells the model what others wrote about their tools."""
        return any(tool.is_described_by_others and self._is_on(tool, settings) for tool in self.tools.values())

    def decide(self, request: ConsentRequest, decision: Decision) -> None:
        """Answer the request that waits. Ignore an answer to another one, or one that it does not offer."""
        is_asked = self._decision is not None and not self._decision.done()
        if is_asked and request is self.waiting.value and decision in request.choices:
            assert self._decision is not None
            self._decision.set_result(decision)

    async def take_back(self, grant: Grant) -> None:
        """End a consent: the next call asks again."""
        self.grants.set(tuple(each for each in self.grants.value if each != grant))
        await self._save_grants()

    async def run(self, call: ToolCall, context: CallContext) -> CallRecord:
        """Run a call, after the user's consent where it needs that. A failure is in the record's `error`."""
        record, elapsed_s, limit_s = CallRecord(call, is_done=True), 0.0, self._limit_s
        try:
            tool = await self._tool(call.name, context)
            limit_s = tool.limit_s or self._limit_s
            arguments = _arguments(call, tool)
            if self.reads_descriptions(context.settings):
                context = msgspec.structs.replace(context, is_tainted=True)
            consent = allowed_by(tool, context, self.grants.value)
            if not consent:
                consent, seen = await self._ask(tool, call, arguments, context)
                context = msgspec.structs.replace(context, confirmed=seen)
            record = msgspec.structs.replace(record, consent=consent)
            if consent == "refused":
                return msgspec.structs.replace(record, error=_REFUSED)
            began = self._clock()
            context = msgspec.structs.replace(context, report_progress=self._progress_of(call, context.chat_id))
            try:
                async with asyncio.timeout(limit_s):
                    result = await tool.run(arguments, context)
                result = result if isinstance(result, ToolResult) else ToolResult(result)
                text, images = await keep_images(result, context)
            finally:
                self.progress.set(None)
                elapsed_s = self._clock() - began
        except ToolError as error:
            return msgspec.structs.replace(record, error=_limited(str(error), context), elapsed_s=elapsed_s)
        except TimeoutError:
            error_text = f"The tool took longer than {limit_s:g} s and was stopped."
            return msgspec.structs.replace(record, error=error_text, elapsed_s=elapsed_s)
        except Exception as error:  # a tool is code of others too: one that fails must not end the answer
            _logger.exception("The tool %s failed", call.name)
            error_text = _limited(f"The tool failed: {error}", context)
            return msgspec.structs.replace(record, error=error_text, elapsed_s=elapsed_s)
        return msgspec.structs.replace(record, result=_limited(text, context), images=images, elapsed_s=elapsed_s)

    async def _tool(self, name: str, context: CallContext) -> Tool:
        if name in context.settings.tools and name in self.tools and self.tools[name].find_obstacle is not None:
            await self.find_obstacles()
        if name not in self.tools or not self._is_on(self.tools[name], context.settings):
            known = ", ".join(each for each, tool in self.tools.items() if self._is_on(tool, context.settings))
            raise ToolError(f"There is no tool {name}. You can call: {known}.")
        return self.tools[name]

    async def _ask(self, tool: Tool, call: ToolCall, arguments: Arguments, context: CallContext) -> tuple[Consent, str]:
        """Wait for the user's decision, and return it with all that they were asked about."""
        whole = _as_json(arguments) if tool.preview is None else await tool.preview(arguments, context)
        shown = with_codes(whole)
        if len(shown) > _MOST_SHOWN:
            raise ToolError(_TOO_LONG)
        sentence = tr("{0} asks for your consent.", tr(tool.title))
        if tool.is_described_by_others and self._allowed.get(tool.name, fingerprint(tool)) != fingerprint(tool):
            warning = tr(
                "This tool has changed since you last allowed it: it is described in another way, takes other "
                "arguments, or comes from elsewhere."
            )
            shown = f"{warning}\n\n{shown}"
        self._decision = asyncio.get_running_loop().create_future()
        self.waiting.set(ConsentRequest(context.chat_id, call, sentence, shown, choices(tool, context)))
        try:
            decision = await self._decision
        finally:
            self._decision = None
            self.waiting.set(None)
        grant = grant_for(decision, tool, context)
        if grant is not None:
            self.grants.set((*self.grants.value, grant))
        if tool.is_described_by_others and decision != "refuse":
            self._allowed = {**self._allowed, tool.name: fingerprint(tool)}
        await self._save_grants()
        return ("refused" if decision == "refuse" else decision), whole

    def _progress_of(self, call: ToolCall, chat_id: str) -> Callable[[str], None]:
        return lambda text: self.progress.set(CallProgress(chat_id, call, text))

    def _is_on(self, tool: Tool, settings: ChatSettings) -> bool:
        has_place = bool(settings.tool_folders) or not tool.needs_folder
        return (tool.switch or tool.name) in settings.tools and has_place and not self.obstacles.value.get(tool.name)

    def _choice(self, title: str, group: Sequence[Tool]) -> ToolChoice:
        first = group[0]
        is_untried = first.find_obstacle is not None and first.name not in self.obstacles.value
        return ToolChoice(
            title=tr(title),
            promise=tr(first.promise),
            names=tuple(dict.fromkeys(tool.switch or tool.name for tool in group)),
            n_tokens=sum(len(_definition(tool)) for tool in group) // _CHARACTERS_PER_TOKEN,
            icon=first.icon,
            needs_folder=first.needs_folder,
            obstacle=tr("Being tried on this PC…") if is_untried else self.obstacles.value.get(first.name, ""),
        )

    async def _save_grants(self) -> None:
        saved = Grants(tuple(grant for grant in self.grants.value if not grant.chat_id), self._allowed)
        if self._file is not None and saved != self._saved:
            self._saved = saved
            await asyncio.to_thread(self._file.try_write, saved)


def _definition(tool: Tool) -> str:
    return json.dumps(tool.definition, ensure_ascii=False)


def _arguments(call: ToolCall, tool: Tool) -> dict[str, Any]:
    """Return the arguments, checked against the schema. Raise ToolError."""
    # Imported when a tool is called for the first time: it takes a tenth of a second.
    from jsonschema import Draft202012Validator  # noqa: PLC0415

    try:
        arguments = decode_json(call.arguments_json)
    except msgspec.DecodeError as damage:
        raise ToolError(f"The arguments can't be read as JSON: {damage}") from damage
    for error in Draft202012Validator(dict(tool.parameters)).iter_errors(arguments):
        where = ".".join(map(str, error.absolute_path))
        raise ToolError(f"{where}: {error.message}" if where else f"{error.message}")
    return dict(arguments)


def _as_json(arguments: Arguments) -> str:
    """Return the arguments as they were understood, each on a line of its own."""
    return json.dumps(arguments, ensure_ascii=False, indent=2)


def _limited(text: str, context: CallContext) -> str:
    """Return a result that fits into the context, without characters that no text holds."""
    text, most = text.encode("utf-8", "replace").decode("utf-8"), context.most_characters
    return text if len(text) <= most else f"{text[:most]}\n(cut off: {len(text):,} characters in all)"


_SUFFIXES = {
    "image/png": ".png", "image/jpeg": ".jpg", "image/webp": ".webp", "image/avif": ".avif", "image/gif": ".gif",
    "image/tiff": ".tiff",
}  # fmt: skip
# Pixels in which a picture is sent to the model: about 1,000 tokens.
_LONGEST_SIDE = 1280
# Pixels in which a picture is decoded to see whether that is possible.
_TRIED_SIDE = 16
_UNSEEN = "(The result has {0} more that you can't see: they are damaged, or this model can't see pictures.)"


async def keep_images(result: ToolResult, context: CallContext) -> tuple[str, tuple[ImagePart, ...]]:
    """Return the text of a result, and its pictures as parts of a message. Nothing of an incognito chat is written.

    Pictures that can't be decoded would spoil every later question, so they are left out, and the text says so.
    """
    if not result.images:
        return result.text, ()
    usable = result.images if context.can_see else ()
    kept = await asyncio.to_thread(lambda: [_kept(image, context) for image in usable])
    parts = tuple(part for part in kept if part is not None)
    n_unseen = len(result.images) - len(parts)
    if not n_unseen:
        return result.text, parts
    what = "1 picture" if n_unseen == 1 else f"{n_unseen} pictures"
    return f"{result.text}\n{_UNSEEN.format(what)}".lstrip(), parts


def _kept(image: ToolImage, context: CallContext) -> ImagePart | None:
    """Return a part with the picture in a file of the cache, or in memory; None if it can't be used. Blocks."""
    sha256 = hashlib.sha256(image.data).hexdigest()
    name = f"{sha256[:32]}{_SUFFIXES.get(image.mime, '.png')}"
    try:
        if context.is_incognito:
            decode_image(Path(name), image.data, longest_side=_TRIED_SIDE)
            return ImagePart(f"(in memory)/{name}", sha256, _LONGEST_SIDE, data=image.data)
        path = cache_folder() / "tool-images" / name
        write_whole(path, image.data)
        decode_image(path, longest_side=_TRIED_SIDE)
    except (QwenDeskError, OSError):
        return None
    return ImagePart(str(path), sha256, _LONGEST_SIDE)
