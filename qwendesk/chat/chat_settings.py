"""Rules for a chat's own settings: which values are valid, its style, and what a new chat inherits. Pure functions."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeVar, cast, get_args

import msgspec

from qwendesk.core.chats import ChatSettings
from qwendesk.core.errors import BadRequest, QwenDeskError
from qwendesk.core.generation_options import ChatFormat, GenerationOptions
from qwendesk.core.presets import Style
from qwendesk.core.settings import apply_assignments, parse, table
from qwendesk.core.translation import tr

_BUDGET = "thinking_budget"
_EFFORT = "reasoning_effort"
_FORMAT = "chat_format"
# Options that are never part of a preset: they depend on the chat's subject, or are set by the Thinking button.
_CHAT_ONLY = ("json_schema", "grammar", "enable_thinking", _BUDGET, _FORMAT)

# Settings and options whose text the model reads.
_READ_AS_TEXT = frozenset(("system_prompt", "thinking_close"))

# Options that a preset may contain.
PRESET_KEYS = tuple(key for key in table(GenerationOptions) if key not in _CHAT_ONLY)


def check_settings(settings: ChatSettings) -> None:
    """Raise BadOption or BadRequest if these settings can't be used for a request."""
    options = apply_assignments(GenerationOptions(), {**settings.preset_values, **settings.overrides})
    schema = settings.json_schema.strip() or options.json_schema.strip()
    check_schema(schema)
    if options.grammar.strip():
        # Imported only now, like the schema's checks below: few chats have a grammar.
        from qwendesk.core.grammar_bounds import check_grammar_bounds  # noqa: PLC0415

        in_users_language(check_grammar_bounds, options.grammar)
    if schema and options.grammar.strip():
        sentence = tr("An answer can follow either a JSON schema or a grammar. Remove one of them first.")
        raise BadRequest(tr("Schema and grammar are both set"), sentence)


def usable_settings(settings: ChatSettings) -> ChatSettings:
    """Return `settings` without invalid values, which may come from a newer version or an edited file."""
    if _is_usable(settings):
        return settings
    for name in ("overrides", "preset_values"):
        given = getattr(settings, name).items()
        kept = {key: text for key, text in given if _is_usable(ChatSettings(overrides={key: text}))}
        settings = msgspec.structs.replace(settings, **{name: kept})
    if not _is_usable(msgspec.structs.replace(settings, overrides={}, preset_values={})):
        settings = msgspec.structs.replace(settings, json_schema="")
    if not _is_usable(settings):
        rest = {key: text for key, text in settings.overrides.items() if key != "grammar"}
        settings = msgspec.structs.replace(settings, overrides=rest, preset_values={})
    return settings


def inherited_settings(settings: ChatSettings) -> ChatSettings:
    """Return the settings that a new chat inherits from the chat before it: only the chosen preset.

    Everything else was set for that chat alone. A custom style without a preset consists of overrides, so it is not
    inherited either.
    """
    if not settings.preset_name and settings.preset == "custom":
        return ChatSettings()
    inherited = ChatSettings(
        preset=settings.preset, preset_name=settings.preset_name, preset_values=settings.preset_values
    )  # fmt: skip
    is_foreign = settings.has_foreign_text or settings.is_imported
    return with_foreign_values(inherited, inherited.preset_values) if is_foreign else inherited


def with_foreign_values(settings: ChatSettings, keys: Iterable[str]) -> ChatSettings:
    """Return `settings`, into which the values of these keys came from elsewhere.

    Those that the model reads as text taint the chat (docs/adr/018-consent.md).
    """
    is_read = not _READ_AS_TEXT.isdisjoint(keys)
    return msgspec.structs.replace(settings, has_foreign_text=True) if is_read else settings


def settings_of_new_chat(inherited: ChatSettings, *, thinks: bool) -> ChatSettings:
    """Return the settings of a new chat: the inherited ones, with thinking as the user wants it in new chats."""
    return inherited if thinks else msgspec.structs.replace(inherited, thinking=False)


def style_of(settings: ChatSettings) -> Style:
    """Return the chat's style; "general" if none is set, or if only a newer version knows it."""
    return cast(Style, settings.preset) if settings.preset in get_args(Style) else "general"


def with_style(settings: ChatSettings, style: str) -> ChatSettings:
    """Return `settings` with a built-in style in place of any preset and of the sampling overrides."""
    overrides = chat_only_overrides(settings)
    return msgspec.structs.replace(settings, preset=style, preset_name="", preset_values={}, overrides=overrides)


def with_sampling(settings: ChatSettings, base: GenerationOptions, values: Mapping[str, str]) -> ChatSettings:
    """Return `settings` with sampling values on top of `base`, the options without overrides.

    The user's own preset stays chosen, and only values that differ from it become overrides. Raises BadOption.
    """
    rows = table(GenerationOptions)
    overrides = {**settings.overrides, **values}
    if settings.preset_name:
        overrides = {key: text for key, text in overrides.items() if parse(rows[key], text) != getattr(base, key)}
    elif settings.preset != "custom":
        overrides = {"min_p": str(base.min_p), "repeat_penalty": str(base.repeat_penalty), **overrides}
    return msgspec.structs.replace(settings, preset="custom", overrides=overrides)


def chat_only_overrides(settings: ChatSettings) -> dict[str, str]:
    """Return the overrides of options that are never part of a preset."""
    return {key: text for key, text in settings.overrides.items() if key not in PRESET_KEYS}


def is_preset_changed(settings: ChatSettings) -> bool:
    """Return whether an override changes a value of the preset."""
    return any(key in PRESET_KEYS for key in settings.overrides)


def thinking_budget(settings: ChatSettings) -> int:
    """Return the number of thinking tokens after which the model must answer; -1 for no limit."""
    return int(settings.overrides.get(_BUDGET, "-1"))


def with_thinking_budget(settings: ChatSettings, tokens: int) -> ChatSettings:
    """Return `settings` with this thinking budget in tokens; -1 for no limit."""
    overrides = {key: text for key, text in settings.overrides.items() if key != _BUDGET}
    if tokens >= 0:
        overrides[_BUDGET] = str(tokens)
    return msgspec.structs.replace(settings, overrides=overrides)


def reasoning_effort(settings: ChatSettings) -> str:
    """Return the reasoning effort of the chat; "auto" for the chat template's default."""
    return settings.overrides.get(_EFFORT, "auto")


def with_reasoning_effort(settings: ChatSettings, effort: str) -> ChatSettings:
    """Return `settings` with this reasoning effort; "auto" for the chat template's default."""
    overrides = {key: text for key, text in settings.overrides.items() if key != _EFFORT}
    if effort != "auto":
        overrides[_EFFORT] = effort
    return msgspec.structs.replace(settings, overrides=overrides)


def with_next_format(settings: ChatSettings, formats: Sequence[ChatFormat]) -> ChatSettings:
    """Return `settings` with the built-in template that follows the chat's own among those that suit the model."""
    chosen = settings.overrides.get(_FORMAT, "")
    index = formats.index(chosen) if chosen in formats else 0
    overrides = {**settings.overrides, _FORMAT: formats[(index + 1) % len(formats)]}
    return msgspec.structs.replace(settings, overrides=overrides)


def _is_usable(settings: ChatSettings) -> bool:
    try:
        check_settings(settings)
    except QwenDeskError:
        return False
    return True


T = TypeVar("T")

# Finds the part of a schema that a reference names; None if there is none.
_Find = Callable[[Any], Any]
_TYPES = ("object", "array", "string", "number", "integer", "boolean", "null")


def check_schema(text: str) -> None:
    """Raise BadRequest for an invalid schema, with a sentence that says what is wrong and where.

    The engine may still refuse an unknown keyword.
    """
    if not text.strip():
        return
    from qwendesk.core.grammar_bounds import check_schema_bounds  # noqa: PLC0415
    from qwendesk.core.json_schema import SchemaReferences  # noqa: PLC0415

    schema = in_users_language(check_schema_bounds, text)
    if not isinstance(schema, dict):
        raise _refusal(tr("A schema is an object in braces, such as {0}.", '{"type": "object"}'))
    _check(schema, SchemaReferences(schema).find, "#")


def in_users_language(check: Callable[[str], T], text: str) -> T:
    """Return what a check of `core` returns. It words errors for the engine's process, which knows no language."""
    try:
        return check(text)
    except BadRequest as error:
        raise BadRequest(tr(error.title), tr(error.source, *error.values)) from error


def _check(schema: Any, find: _Find, place: str) -> None:
    if isinstance(schema, bool):
        return
    if not isinstance(schema, dict):
        raise _refusal(tr("{0} must be an object in braces.", place))
    kinds = schema.get("type", [])
    for kind in kinds if isinstance(kinds, list) else [kinds]:
        if kind not in _TYPES:
            raise _refusal(tr('{0} can\'t be "{1}". Use one of {2}.', f"{place}/type", kind, ", ".join(_TYPES)))
    if "$ref" in schema:
        _check_reference(schema["$ref"], find, place)
    if "enum" in schema and not (isinstance(schema["enum"], list) and schema["enum"]):
        raise _refusal(tr("{0} must be a list with at least one value.", f"{place}/enum"))
    for key in ("properties", "$defs", "definitions"):
        parts = schema.get(key, {})
        if not isinstance(parts, dict):
            raise _refusal(tr("{0} must be an object in braces.", f"{place}/{key}"))
        for name, part in parts.items():
            _check(part, find, f"{place}/{key}/{name}")
    for key in ("anyOf", "oneOf", "allOf"):
        parts = schema.get(key, [])
        if not isinstance(parts, list):
            raise _refusal(tr("{0} must be a list.", f"{place}/{key}"))
        for number, part in enumerate(parts):
            _check(part, find, f"{place}/{key}/{number}")
    if isinstance(schema.get("items"), dict):
        _check(schema["items"], find, f"{place}/items")


def _check_reference(reference: Any, find: _Find, place: str) -> None:
    if find(reference) is not None:
        return
    if not isinstance(reference, str) or not reference.startswith("#"):
        raise _refusal(
            tr(
                "{0} refers to another document, which QwenDesk doesn't fetch. Copy that part into the schema.",
                f"{place}/$ref",
            )
        )
    raise _refusal(tr('{0} refers to "{1}", which isn\'t in the schema.', f"{place}/$ref", reference))


def _refusal(why: str) -> BadRequest:
    return BadRequest(tr("The JSON schema can't be used"), tr("The JSON schema can't be used. {0}", why))
