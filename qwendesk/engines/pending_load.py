"""The pending load options of one model as the window shows them: what the user wants, and what comes of it."""

import msgspec

from qwendesk.core.devices import DeviceInfo, GpuLink
from qwendesk.core.generation_options import GenerationOptions
from qwendesk.core.option_rules import Conflict
from qwendesk.core.options import LoadOptions
from qwendesk.core.plan import Plan, SpeedEstimate
from qwendesk.hardware.expert_layers import count_cpu_expert_layers


class OptionLimits(msgspec.Struct, frozen=True):
    """Limits of the options, from the model's header."""

    n_ctx: int
    """Trained context length in tokens."""
    longest_ctx: int
    """The longest context in tokens, with YaRN where it is known to work with the model."""
    n_layers: int
    has_experts: bool
    n_heads: int = 0
    """Attention heads; 0 if unknown."""
    n_kv_heads: int = 0
    has_sliding_window: bool = False
    has_lazy_table: bool = False
    """The file has a table that may be read row by row."""
    can_quantise_cache: bool = True
    """The length of its heads allows every type of the KV cache."""


class PendingLoad(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that the inspector shows about loading. Every field is empty while there is no model."""

    requested: LoadOptions | None = None
    changed: frozenset[str] = frozenset()
    """Keys of the options whose values differ from the defaults."""
    limits: OptionLimits | None = None
    plan: Plan | None = None
    """The plan for `requested`, or the previous one until a new one is made; None if the files can't be read."""
    planned_for: LoadOptions | None = None
    """The options that `plan` was made for."""
    conflicts: tuple[Conflict, ...] = ()
    refusal: str = ""
    """Reason why `requested` can't be loaded; "" if it can."""
    devices: tuple[DeviceInfo, ...] = ()
    """The engine's devices; () while they are unknown."""
    links: tuple[GpuLink, ...] = ()
    """Links of the graphics cards, as far as the probes have told."""
    is_loaded: bool = False
    """The model of `requested` is loaded, perhaps with other options."""
    other_loaded: str = ""
    """Path of the loaded model if it isn't that of `requested`."""
    needs_reload: bool = False
    """The model is loaded with options other than `requested`."""
    is_loading: bool = False
    """The model of `requested` is being loaded, or unloaded to be loaded again."""
    is_waiting: bool = False
    """A reload is waiting for the end of the current answer."""
    is_asking: bool = False
    """An engine dry run for exact numbers is in progress."""
    profiles: tuple[str, ...] = ()
    problem: str = ""
    """A sentence that tells what could not be saved, exported or imported."""
    served_by: str = ""
    """The server of the loaded model, which decides how it loads; "" if the model is on this PC."""
    base_repo: str = ""
    presets: tuple[GenerationOptions, GenerationOptions] = (GenerationOptions(), GenerationOptions())
    """The general presets of the model's family, without thinking and with."""
    measured_tok_s: float | None = None
    """The speed that was measured on this PC with the options of `plan`; None if they never ran."""
    expected: SpeedEstimate | None = None
    """The speed to expect by what was measured with other options; None if nothing was, or with these."""
    loaded_tok_s: float | None = None
    """The speed that was measured with the options of the loaded model; None before the first answer."""
    last_load_s: float = 0.0
    """How long loading the loaded model took; 0 if none is loaded."""

    @property
    def has_gpu(self) -> bool:
        """Return whether the engine can use a GPU; True while its devices are unknown."""
        return not self.devices or any(device.kind in {"gpu", "igpu"} for device in self.devices)

    @property
    def decided(self) -> LoadOptions | None:
        """The options without "auto", as the plan decided them; None until there is a plan for `requested`."""
        return self.plan.options if self.plan is not None and self.planned_for == self.requested else None

    def answer_options(self, of_chat: GenerationOptions) -> GenerationOptions:
        """Return the options for commands: those of the open chat if its model is loaded, else the model's preset."""
        return of_chat if self.is_loaded else self.presets[of_chat.enable_thinking]

    @property
    def cpu_expert_layers(self) -> int:
        """Layers whose experts the plan keeps in RAM, whether by n_cpu_moe or by a placement pattern."""
        return count_cpu_expert_layers(self.plan.options) if self.plan is not None else 0
