"""The Jinja environment of chat templates: it has what Hugging Face templates expect, and limits memory and time.

Templates come with models from the internet. Jinja's sandbox keeps them away from the app's objects, but lets them fill
the memory with one expression or run forever. Every way to do so that is cheap to check is limited here; if a template
hangs nevertheless, the client kills the worker.
"""

import datetime
from collections.abc import Callable, Iterable
from typing import Any, NoReturn, cast

import jinja2.compiler
import jinja2.ext
import jinja2.parser
import jinja2.sandbox
from jinja2 import nodes
from jinja2.runtime import Context

from qwendesk.core.errors import BadRequest
from qwendesk.core.translation import mark
from qwendesk.engine.worker.template_bounds import (
    MeteredEnvironment,
    bounded_filters,
    check_operator,
    check_text_method,
    largest_number,
)
from qwendesk.engine.worker.template_limits import Meter, TemplateSandboxLimits


class GenerationTag(jinja2.ext.Extension):
    """The tag `{% generation %}`, which marks the model's output for training. Here it only renders its content."""

    tags = {"generation"}  # noqa: RUF012 (Jinja declares it so)

    def parse(self, parser: jinja2.parser.Parser) -> nodes.Node:
        """Return the content in a scope of its own, like the tag of Hugging Face."""
        line = next(parser.stream).lineno
        return nodes.Scope(parser.parse_statements(("name:endgeneration",), drop_needle=True)).set_lineno(line)


class BoundedGenerator(jinja2.compiler.CodeGenerator):
    """Jinja's compiler, with the operator `~` passed to the environment for a check, like the other operators."""

    def visit_Concat(self, node: nodes.Concat, frame: jinja2.compiler.Frame) -> None:  # noqa: N802 (Jinja's name)
        """Write the Python code of a chain of `~` operators."""
        self.write("environment.join_values((")
        for value in node.nodes:
            self.visit(value, frame)
            self.write(", ")
        self.write("))")


class TemplateEnvironment(MeteredEnvironment):
    """Jinja as chat templates expect it. It serves one rendering at a time; set `meter` before each."""

    intercepted_binops = frozenset(["+", "*", "**", "%"])
    code_generator_class = BoundedGenerator

    def __init__(self, limits: TemplateSandboxLimits) -> None:
        self.meter = Meter(limits)
        super().__init__(
            trim_blocks=True,
            lstrip_blocks=True,
            extensions=["jinja2.ext.loopcontrols", GenerationTag],
            finalize=self._check_shown,
        )
        self.filters.update(bounded_filters())
        self.globals.update(raise_exception=_raise_exception, strftime_now=_strftime_now)
        del self.globals["lipsum"]  # creates text of any length, and no chat template needs it

    def tick(self) -> None:
        """Check the elapsed time. Compiled templates call this in each iteration of a loop and each call of a macro."""
        self.meter.tick()

    def join_values(self, values: tuple[Any, ...]) -> str:
        """Join `values`, for the operator `~` of compiled templates."""
        self.meter.allow_chars(sum(map(self.meter.shown_chars, values)))
        return "".join(map(str, values))

    def concat(self, pieces: Iterable[str]) -> str:
        """Join the output of a macro, for compiled templates."""
        listed = list(pieces)
        self.meter.allow_chars(sum(map(len, listed)))
        return "".join(listed)

    def call_binop(self, context: Context, operator: str, left: Any, right: Any) -> Any:
        """Check and apply an intercepted operator, for compiled templates."""
        check_operator(self.meter, operator, left, right)
        return super().call_binop(context, operator, left, right)

    def call(__self, __context: Context, __obj: Any, *args: Any, **kwargs: Any) -> Any:  # noqa: N805 (as in Jinja)
        """Check and make a call, for compiled templates."""
        owner = getattr(__obj, "__self__", None)
        if isinstance(owner, str):
            args = check_text_method(__self.meter, owner, __obj.__name__, args, kwargs)
        return super().call(__context, __obj, *args, **kwargs)

    def is_safe_attribute(self, obj: Any, attr: str, value: Any) -> bool:
        """Forbid `encode` and `to_bytes` too: bytes would evade the limits on text, and templates do not need them."""
        return attr not in ("encode", "to_bytes") and super().is_safe_attribute(obj, attr, value)

    def wrap_str_format(self, value: Any) -> Callable[..., str] | None:
        """Return `str.format` or `str.format_map` with a check of every field; None for any other `value`."""
        if super().wrap_str_format(value) is None:
            return None
        form, takes_mapping = str(value.__self__), value.__name__ == "format_map"

        def bounded_format(*args: Any, **kwargs: Any) -> str:
            formatter = _BoundedFormatter(self)
            return formatter.vformat(form, (), args[0]) if takes_mapping else formatter.vformat(form, args, kwargs)

        return bounded_format

    def _parse(self, source: str, name: str | None, filename: str | None) -> nodes.Template:
        tree = super()._parse(source, name, filename)
        for node in tree.find_all((nodes.For, nodes.Macro, nodes.CallBlock)):
            call = nodes.Call(nodes.EnvironmentAttribute("tick"), [], [], None, None)
            body = cast(nodes.For | nodes.Macro | nodes.CallBlock, node).body
            body.insert(0, nodes.ExprStmt(call).set_lineno(node.lineno).set_environment(self))
        return tree

    def _check_shown(self, value: Any) -> Any:
        if not isinstance(value, str):
            self.meter.allow_chars(self.meter.shown_chars(value))
        return value


class _BoundedFormatter(jinja2.sandbox.SandboxedFormatter):
    def __init__(self, environment: TemplateEnvironment) -> None:
        super().__init__(environment)
        self._meter = environment.meter

    def format_field(self, value: Any, format_spec: str) -> Any:
        self._meter.allow_chars(self._meter.shown_chars(value) + largest_number(format_spec))
        return super().format_field(value, format_spec)

    def convert_field(self, value: Any, conversion: Any) -> Any:
        self._meter.allow_chars(self._meter.shown_chars(value))
        return super().convert_field(value, conversion)


def _raise_exception(message: object = "") -> NoReturn:
    text = str(message).strip()[:2000]
    raise BadRequest(mark("The chat template refuses this chat"), text or mark("It gives no reason."))


def _strftime_now(form: str) -> str:
    if len(form) > 200:
        raise ValueError("the date format is too long")
    return datetime.datetime.now().astimezone().strftime(form)
