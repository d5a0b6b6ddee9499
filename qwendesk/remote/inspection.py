"""Finds out what a server is, which models it has, and what a model on it can do."""

import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final

import msgspec

from qwendesk.core.generation_options import REASONING_EFFORTS
from qwendesk.core.translation import join_list, mark, tr
from qwendesk.engine.protocol import TemplateAbilities
from qwendesk.remote.connection import Connection
from qwendesk.remote.dialects import ServerKind
from qwendesk.remote.errors import ServerError, not_understood

# Returns the prompt of messages with these template variables, as text or tokens; None if it can't be rendered.
Render = Callable[[Sequence[Mapping[str, Any]], Mapping[str, Any]], Awaitable[Any]]

_QUESTION: Final = ({"role": "user", "content": "Hello"},)
_CHAT: Final = (
    {"role": "user", "content": "Hello"},
    {"role": "assistant", "content": "Hi", "reasoning_content": "A greeting.", "reasoning": "A greeting."},
    {"role": "user", "content": "Bye"},
)


async def probe_template(render: Render, *, tools: bool) -> TemplateAbilities | None:
    """Return what the template takes; None if the server renders nothing. `tools` is what is known otherwise."""
    plain = await render(_QUESTION, {})
    if plain is None:
        return None
    thinking = await render(_QUESTION, {"enable_thinking": True})
    direct = await render(_QUESTION, {"enable_thinking": False})
    can_think = thinking is not None and direct is not None and thinking != direct
    efforts = await _efforts(render, thinking) if can_think else {}
    kept = await render(_CHAT, {"preserve_thinking": True})
    dropped = await render(_CHAT, {"preserve_thinking": False})
    return TemplateAbilities(
        source="model",
        enable_thinking=can_think,
        preserve_thinking=kept is not None and kept != dropped,
        preserves_by_default=kept is not None and kept != dropped and await render(_CHAT, {}) == kept,
        tools=tools,
        call_dialect="json" if tools else "",
        reasoning_efforts=tuple(efforts),
        default_effort=next((effort for effort, prompt in efforts.items() if prompt == thinking), ""),
    )


async def _efforts(render: Render, default: Any) -> dict[str, Any]:
    """Return the prompts of the efforts that each give another one; empty if the template takes none.

    A template that takes an effort refuses or ignores what it doesn't know.
    """
    prompts: dict[str, Any] = {}
    for effort in REASONING_EFFORTS:
        prompt = await render(_QUESTION, {"enable_thinking": True, "reasoning_effort": effort})
        if prompt is not None and prompt not in prompts.values():
            prompts[effort] = prompt
    return prompts if len(prompts) > 1 and default is not None else {}


_QWEN: Final = re.compile(r"qwen-?3\.([5-9])", re.IGNORECASE)
_EXPERTS: Final = re.compile(r"-a\d+b", re.IGNORECASE)
_LOOKS_AT_PICTURES: Final = re.compile(r"qwen-?3\.[5-9]|[-_]vl\b|qwen-?vl", re.IGNORECASE)
_NUM_CTX: Final = re.compile(r"^num_ctx[ \t]+(\d{1,9})$", re.MULTILINE)
# Of a server; nobody chooses among more.
_MOST_MODELS: Final = 1000
_LONGEST_NAME: Final = 300
_LARGEST: Final = 10**15
# Whom the models belong to, by the programs that say so in /v1/models.
_OWNERS: Final[Mapping[str, ServerKind]] = MappingProxyType(
    {"freetoken": "freetoken", "lemonade": "lemonade", "koboldcpp": "koboldcpp", "docker": "docker", "exo": "exo"}
)
# Of Qwen3.8-Flash-Next, Strata's only model: as its template names them, the last one is the default.
_STRATA_EFFORTS: Final = ("low", "medium", "xhigh")
_UNSWITCHABLE: Final = mark("The server has no switch for this model's thinking that QwenDesk knows.")


class ModelOnServer(msgspec.Struct, frozen=True, kw_only=True):
    """A model of a server. Facts that the server doesn't say are None, 0 or empty."""

    name: str
    n_ctx: int = 0
    """The context that the server gives it, in tokens."""
    n_ctx_train: int = 0
    n_params: int = 0
    weights_bytes: int = 0
    architecture: str = ""
    can_see: bool | None = None
    template: TemplateAbilities = TemplateAbilities(
        source="model", enable_thinking=False, preserve_thinking=False, tools=True, call_dialect="json"
    )
    is_loaded: bool = True
    is_chat: bool = True
    """False for models that only embed."""


async def find_kind(connection: Connection) -> ServerKind:
    """Return what answers at the address. Raises ServerError if nothing does, or if it refuses the key.

    Several programs also speak the API of llama-server, Ollama or vLLM, so what names itself comes first.
    """
    listed = await connection.find("/v1/models") or {}
    owners = {str(row.get("owned_by")).lower() for row in _dicts(listed.get("data"))}
    named = next((kind for owner, kind in _OWNERS.items() if owner in owners), None)
    if named is not None:
        return named
    props = await connection.find("/props")
    if props is not None and "qwendesk" in str(props.get("build_info", "")).lower():
        return "qwendesk"
    if props is not None and "default_generation_settings" in props:
        return "strata" if await _is_strata(connection, props) else "llama-server"
    lm_studio = await connection.find("/api/v1/models") or {}
    if any("key" in each for each in _dicts(lm_studio.get("models"))):
        return "lmstudio"
    lm_studio = await connection.find("/api/v0/models") or {}
    if any("max_context_length" in each for each in _dicts(lm_studio.get("data"))):
        return "lmstudio"
    if "all_models_loaded" in (await connection.find("/api/v1/health") or {}):
        return "lemonade"  # without a model, which would name it
    ollama = await connection.find("/api/version") or {}
    if isinstance(ollama.get("version"), str):
        return "ollama"
    sglang = await connection.find("/get_server_info") or await connection.find("/server_info") or {}
    if "model_path" in sglang:
        return "sglang"
    vllm = await connection.find("/version") or {}
    if isinstance(vllm.get("version"), str):
        return "vllm"
    # Jan has this without its key, and its list of models names nobody.
    described = (await connection.find("/openapi.json") or {}).get("info")
    return "jan" if isinstance(described, dict) and str(described.get("title")).startswith("Jan ") else "other"


async def _is_strata(connection: Connection, props: Mapping[str, Any]) -> bool:
    """Return whether a server with llama-server's properties is Strata. It leaves out an unknown version."""
    if str(props.get("build_info", "")).lower().startswith("strata") or any("strata" in key.lower() for key in props):
        return True
    return str((await connection.find("/health") or {}).get("service", "")).strip().lower() == "strata"


async def list_models(connection: Connection, kind: ServerKind) -> tuple[ModelOnServer, ...]:
    """Return the models that can chat. Raises ServerError."""
    if kind == "lmstudio":
        native = await _lm_studio_models(connection)
        if native:
            return tuple(each for each in native if each.is_chat)
    listed = await connection.get("/v1/models")
    rows = _dicts(listed.get("data")) if isinstance(listed, dict) else []
    if not rows and not (isinstance(listed, dict) and "data" in listed):
        raise not_understood(connection.server.title)
    return tuple(_listed(row) for row in rows if _is_name(row.get("id")))


async def inspect_model(connection: Connection, kind: ServerKind, name: str) -> ModelOnServer:
    """Return what can be found out about one model; with "" about the only one, or the only one that is loaded.

    Raises ServerError, also if there is no such model.
    """
    model = _chosen(connection.server.title, await list_models(connection, kind), name)
    if kind in ("llama-server", "qwendesk", "strata"):
        return await _inspect_by_props(connection, kind, model)
    if kind == "vllm":
        return await _inspect_vllm(connection, model)
    if kind == "ollama":
        return await _inspect_ollama(connection, model)
    if kind == "sglang":
        return await _inspect_sglang(connection, model)
    if kind == "freetoken":
        template = _template(thinking=bool(model.architecture), tools=True, note=tr(_UNSWITCHABLE))
        return msgspec.structs.replace(model, template=template)
    return model


def _chosen(server: str, models: Sequence[ModelOnServer], name: str) -> ModelOnServer:
    known = join_list(each.name for each in models[:8]) or tr("none")
    if not name:
        loaded = [each for each in models if each.is_loaded]
        for few in (models, loaded):
            if len(few) == 1:
                return few[0]
        raise ServerError(tr("Which model?"), tr("{0} has several models. Name one of them: {1}.", server, known))
    # Ollama leaves out the tag "latest".
    found = next((each for wanted in (name, f"{name}:latest") for each in models if each.name == wanted), None)
    if found is None:
        sentence = tr("{0} has no model “{1}”. Its models: {2}.", server, name, known)
        raise ServerError(tr("Model not found"), sentence)
    return found


def architecture_of(name: str) -> str:
    """Return the architecture that a name says, as in a GGUF header; "" if it isn't Qwen3.5 or newer."""
    if not _QWEN.search(name):
        return ""
    return "qwen35moe" if _EXPERTS.search(name) else "qwen35"


def _listed(row: Mapping[str, Any]) -> ModelOnServer:
    """Return a model of /v1/models: vLLM adds its context, llama-server what the file says."""
    meta = row.get("meta") if isinstance(row.get("meta"), dict) else {}
    assert isinstance(meta, dict)
    name = str(row["id"])
    return ModelOnServer(
        name=name,
        n_ctx=_number(row.get("max_model_len")) or _number(meta.get("n_ctx")),
        n_ctx_train=_number(meta.get("n_ctx_train")),
        n_params=_number(meta.get("n_params")),
        weights_bytes=_number(meta.get("size")),
        architecture=architecture_of(name),
        template=_template(thinking=False, tools=True, note=tr(_UNSWITCHABLE)),
    )


async def _inspect_by_props(connection: Connection, kind: ServerKind, model: ModelOnServer) -> ModelOnServer:
    props = await connection.find("/props") or {}
    settings, modalities = props.get("default_generation_settings"), props.get("modalities")
    caps = props.get("chat_template_caps")
    source = str(props.get("chat_template", ""))
    tools = (
        bool(caps.get("supports_tools")) if isinstance(caps, dict) and "supports_tools" in caps else "tool" in source
    )

    async def render(messages: Sequence[Mapping[str, Any]], variables: Mapping[str, Any]) -> Any:
        body = {"messages": [*messages], "chat_template_kwargs": {**variables}}
        return (await connection.find("/apply-template", body) or {}).get("prompt")

    is_known = isinstance(modalities, dict) and not props.get("is_sleeping")
    can_see = bool(modalities.get("vision")) if is_known and isinstance(modalities, dict) else None
    names = f"{model.name} {props.get('model_path', '')}"
    # QwenDesk renders nothing for others, but leaves out what its model can't do.
    own = _template(thinking=True, tools=True, note="") if kind in ("qwendesk", "strata") else None
    if own is not None and kind == "strata":
        own = msgspec.structs.replace(own, reasoning_efforts=_STRATA_EFFORTS, default_effort=_STRATA_EFFORTS[-1])
    return msgspec.structs.replace(
        model,
        n_ctx=_number(settings.get("n_ctx")) if isinstance(settings, dict) else model.n_ctx,
        can_see=can_see,
        architecture=architecture_of(names) or ("qwen35" if "qwendesk-demo" in names.lower() else ""),
        template=own or await _probed(render, tools=tools),
    )


async def _inspect_vllm(connection: Connection, model: ModelOnServer) -> ModelOnServer:
    async def render(messages: Sequence[Mapping[str, Any]], variables: Mapping[str, Any]) -> Any:
        body = {"model": model.name, "messages": [*messages], "chat_template_kwargs": {**variables}}
        return (await connection.find("/tokenize", body) or {}).get("tokens")

    template = await _probed(render, tools=True)
    return msgspec.structs.replace(model, can_see=_may_see(model.name), template=template)


async def _inspect_ollama(connection: Connection, model: ModelOnServer) -> ModelOnServer:
    shown = await connection.find("/api/show", {"model": model.name}) or {}
    facts = shown.get("model_info") if isinstance(shown.get("model_info"), dict) else {}
    assert isinstance(facts, dict)
    abilities = shown.get("capabilities")
    knows = isinstance(abilities, list)
    can = set(map(_word, abilities[:_MOST_MODELS])) if isinstance(abilities, list) else set()
    architecture = _word(facts.get("general.architecture"))
    running = await connection.find("/api/ps") or {}
    current = next((each for each in _dicts(running.get("models")) if each.get("model") == model.name), {})
    chosen = _NUM_CTX.search(str(shown.get("parameters", "")))
    return msgspec.structs.replace(
        model,
        n_ctx=_number(current.get("context_length")) or (int(chosen[1]) if chosen else 0),
        n_ctx_train=_number(facts.get(f"{architecture}.context_length")),
        n_params=_number(facts.get("general.parameter_count")),
        architecture=architecture or model.architecture,
        can_see="vision" in can if knows else None,
        is_loaded=bool(current),
        template=_template(
            thinking="thinking" in can, tools="tools" in can or not knows, note=tr("Ollama says that it can't think.")
        ),
    )


async def _inspect_sglang(connection: Connection, model: ModelOnServer) -> ModelOnServer:
    facts = await connection.find("/get_server_info") or await connection.find("/server_info") or {}
    return msgspec.structs.replace(
        model,
        n_ctx=_number(facts.get("context_length")) or model.n_ctx,
        can_see=_may_see(model.name),
        template=_template(
            thinking=bool(model.architecture) or bool(facts.get("reasoning_parser")),
            tools=bool(facts.get("tool_call_parser")) or "tool_call_parser" not in facts,
            note=tr(_UNSWITCHABLE),
        ),
    )


async def _lm_studio_models(connection: Connection) -> tuple[ModelOnServer, ...]:
    """Return the models by LM Studio's own API: version 1 since 0.4.0, before that version 0."""
    found = await connection.find("/api/v1/models") or {}
    rows = [row for row in _dicts(found.get("models")) if _is_name(row.get("key"))]
    if rows:
        return tuple(map(_lm_studio_model, rows))
    older = await connection.find("/api/v0/models") or {}
    return tuple(
        ModelOnServer(
            name=row["id"],
            n_ctx=_number(row.get("loaded_context_length")),
            n_ctx_train=_number(row.get("max_context_length")),
            architecture=_word(row.get("arch")),
            can_see=row.get("type") == "vlm",
            is_loaded=row.get("state") == "loaded",
            is_chat=row.get("type") != "embeddings",
            template=_template(thinking=False, tools=True, note=tr("This needs LM Studio 0.4 or newer.")),
        )
        for row in _dicts(older.get("data"))
        if _is_name(row.get("id"))
    )


def _lm_studio_model(row: Mapping[str, Any]) -> ModelOnServer:
    loaded = _dicts(row.get("loaded_instances"))
    config = loaded[0].get("config") if loaded else None
    can = row.get("capabilities")
    abilities: Mapping[str, Any] = can if isinstance(can, dict) else {}
    reasoning = abilities.get("reasoning")
    allowed = reasoning.get("allowed_options") if isinstance(reasoning, dict) else None
    return ModelOnServer(
        name=str(row["key"]),
        n_ctx=_number(config.get("context_length")) if isinstance(config, dict) else 0,
        n_ctx_train=_number(row.get("max_context_length")),
        weights_bytes=_number(row.get("size_bytes")),
        architecture=_word(row.get("architecture")),
        can_see=bool(abilities["vision"]) if "vision" in abilities else None,
        is_loaded=bool(loaded),
        is_chat=row.get("type") != "embedding",
        template=_template(
            thinking=isinstance(allowed, list) and "off" in allowed,
            tools=True,
            note=tr("LM Studio says that this model's thinking can't be switched."),
        ),
    )


async def loaded_at(connection: Connection, kind: ServerKind) -> tuple[tuple[str, int], ...]:
    """Return what an Ollama or LM Studio has loaded, as its API names it, each with its bytes. Raises ServerError.

    Those of Ollama are in video memory, or all if none are there. LM Studio tells the size of the file.
    """
    if kind == "ollama":
        rows = _dicts((await connection.find("/api/ps") or {}).get("models"))
        sizes = ((row.get("model"), _number(row.get("size_vram")) or _number(row.get("size"))) for row in rows)
    else:
        rows = _dicts((await connection.find("/api/v1/models") or {}).get("models"))
        sizes = (
            (instance.get("id"), _number(row.get("size_bytes")))
            for row in rows
            for instance in _dicts(row.get("loaded_instances"))
        )
    return tuple((name, n_bytes) for name, n_bytes in sizes if isinstance(name, str) and _is_name(name))


async def _probed(render: Render, *, tools: bool) -> TemplateAbilities:
    probed = await probe_template(render, tools=tools)
    return probed if probed is not None else _template(thinking=False, tools=tools, note=tr(_UNSWITCHABLE))


def _template(*, thinking: bool, tools: bool, note: str) -> TemplateAbilities:
    return TemplateAbilities(
        source="model",
        enable_thinking=thinking,
        preserve_thinking=False,
        tools=tools,
        call_dialect="json" if tools else "",
        note="" if thinking else note,
    )


def _may_see(name: str) -> bool:
    """Return whether a model of this name has vision, where the server doesn't say."""
    return bool(_LOOKS_AT_PICTURES.search(name))


def _dicts(value: Any) -> list[dict[str, Any]]:
    return [each for each in value[:_MOST_MODELS] if isinstance(each, dict)] if isinstance(value, list) else []


def _is_name(value: Any) -> bool:
    """Return whether a value can be the name of a model, which is shown, saved and sent back."""
    return isinstance(value, str) and 0 < len(value) <= _LONGEST_NAME and value.isprintable()


def _word(value: Any) -> str:
    return value if _is_name(value) else ""


def _number(value: Any) -> int:
    """Return a size or count as it may be stored and shown; 0 for what is none."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= _LARGEST
    return int(value) if is_number else 0
