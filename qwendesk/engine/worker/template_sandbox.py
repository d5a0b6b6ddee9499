"""The Jinja environment of chat templates: it has what Hugging Face templates expect, and limits memory and time.

Templates come with models from the internet. Jinja's sandbox keeps them away from the app's objects, but lets them fill
the memory with one expression or run forever. Every way to do so that is cheap to check is limited here; if a template
hangs nevertheless, the client kills the worker.
"""

import datetime
import functools
import json
import operator
import re
import time
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any, NoReturn, cast

import jinja2.compiler
import jinja2.ext
import jinja2.parser
import jinja2.sandbox
import msgspec
from jinja2 import filters, nodes, pass_environment
from jinja2.runtime import Context

from qwendesk.core.errors import BadRequest
from qwendesk.core.translation import mark

MAX_NUMBER_BITS = 65_536
TEXT_TOO_LONG = mark("It was stopped because it makes texts too long for any prompt.")


class TemplateSandboxLimits(msgspec.Struct, frozen=True):
    """How much one rendering may use."""

    value_chars: int = 32 * 1024**2
    """Characters of the longest text, and of the whole output."""
    total_chars: int = 512 * 1024**2
    """Characters of all texts together that joining, repeating, padding and the like produce."""
    items: int = 1_000_000
    """Items of the longest list, and values inside a value that is written as text."""
    seconds: float = 10.0


class TemplateTooCostly(BadRequest):
    """The template needs more memory or time than any prompt should. Rendering it again does not help."""

    def __init__(self, sentence: str, *values: object) -> None:
        super().__init__(mark("The chat template asks for too much"), sentence, *values)


class Meter:
    """Measures what one rendering uses. Every method raises TemplateTooCostly if that is too much."""

    def __init__(self, limits: TemplateSandboxLimits) -> None:
        self._limits = limits
        self._deadline = time.monotonic() + limits.seconds
        self._made_chars = 0

    def tick(self) -> None:
        """Check the elapsed time."""
        if time.monotonic() > self._deadline:
            raise TemplateTooCostly(
                mark("It was stopped because it ran for more than {0} seconds."), f"{self._limits.seconds:g}"
            )

    def allow_chars(self, n_chars: int) -> None:
        """Check and count a text of up to `n_chars` characters before it is created."""
        self._made_chars += max(0, n_chars)
        if n_chars > self._limits.value_chars or self._made_chars > self._limits.total_chars:
            raise TemplateTooCostly(TEXT_TOO_LONG)
        self.tick()

    def allow_items(self, n_items: int) -> None:
        """Check a list of `n_items` before it is created."""
        if n_items > self._limits.items:
            raise TemplateTooCostly(mark("It was stopped because it makes lists too long for any prompt."))
        self.tick()

    def allow_number(self, n_bits: int) -> None:
        """Check an integer of `n_bits` before it is computed."""
        if n_bits > MAX_NUMBER_BITS:
            raise TemplateTooCostly(mark("It was stopped because it computes with numbers too large for any prompt."))

    def shown_chars(self, value: Any) -> int:
        """Return the approximate length of `value` as text. Values that it contains several times count each time."""
        if isinstance(value, str):
            return len(value)
        n_chars, n_items = 0, 0
        waiting = [value]
        while waiting:
            part = waiting.pop()
            if isinstance(part, str):
                n_chars += len(part) + 4
            elif isinstance(part, int):
                n_chars += part.bit_length() // 3 + 4
            elif isinstance(part, Collection) and not isinstance(part, range):
                n_items += len(part)
                self.allow_items(n_items)
                n_chars += 2
                waiting.extend(part)
                if isinstance(part, dict):
                    waiting.extend(part.values())
            else:
                n_chars += 64
        return n_chars


_NUMBER = re.compile(r"\d+")
_PERCENT_FIELD = re.compile(r"%(?:\([^)]*\))?[-#0 +]*(?:\*|\d+)?(?:\.(?:\*|\d+)?)?[a-zA-Z%]")
# The most decimal places to round to, and the most spaces to indent JSON by.
_MOST_DIGITS = 100


class MeteredEnvironment(jinja2.sandbox.ImmutableSandboxedEnvironment):
    """A Jinja environment with the meter of the rendering in progress."""

    meter: Meter


def check_operator(meter: Meter, symbol: str, left: Any, right: Any) -> None:
    """Raise TemplateTooCostly if the result of `left symbol right` would be too large."""
    match symbol, left, right:
        case "%", str(), _:
            meter.allow_chars(percent_chars(meter, left, right))
        case "+", str(), str():
            meter.allow_chars(len(left) + len(right))
        case "+", list() | tuple(), list() | tuple():
            meter.allow_items(len(left) + len(right))
        case "*", int(), int():
            meter.allow_number(left.bit_length() + right.bit_length())
        case ("*", str() as text, int() as times) | ("*", int() as times, str() as text):
            meter.allow_chars(len(text) * times)
        case ("*", list() | tuple() as items, int() as times) | ("*", int() as times, list() | tuple() as items):
            meter.allow_items(len(items) * times)
        case "**", int(), int():
            meter.allow_number(left.bit_length() * right)


def check_text_method(
    meter: Meter, text: str, name: str, args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> tuple[Any, ...]:
    """Return the arguments for a call of `text.name`. Raise TemplateTooCostly if its result would be too large."""
    match name, args:
        case "center" | "ljust" | "rjust" | "zfill", (int() as width, *_):
            meter.allow_chars(max(len(text), width))
        case "expandtabs", _:
            width = args[0] if args else kwargs.get("tabsize", 8)
            meter.allow_chars(len(text) + text.count("\t") * width)
        case "replace", (str() as old, str() as new, *_):
            meter.allow_chars(replaced_chars(text, old, new))
        case "translate", (dict() as table,):
            longest = max((len(value) for value in table.values() if isinstance(value, str)), default=1)
            meter.allow_chars(len(text) * max(longest, 1))
        case "join", (items,):
            listed = list(items)
            meter.allow_chars(sum(map(meter.shown_chars, listed)) + len(text) * len(listed))
            return (listed,)
    return args


def percent_chars(meter: Meter, form: str, values: Any) -> int:
    """Return an upper bound for the length of `form % values`."""
    fields = _PERCENT_FIELD.findall(form)
    widths = sum(largest_number(field) for field in fields)
    if isinstance(values, tuple):
        if any("*" in field for field in fields):
            widths += sum(abs(value) for value in values if isinstance(value, int))
        return len(form) + widths + sum(map(meter.shown_chars, values))
    return len(form) + widths + len(fields) * meter.shown_chars(values)


def replaced_chars(text: str, old: str, new: str) -> int:
    """Return an upper bound for the length of `text.replace(old, new)`."""
    return len(text) + text.count(old) * len(new)


def largest_number(spec: str) -> int:
    """Return the sum of the widths and precisions in a field of a format string."""
    return sum(int(digits) if len(digits) < 10 else 10**10 for digits in _NUMBER.findall(spec))


@pass_environment
def _center(environment: MeteredEnvironment, value: object, width: int = 80) -> str:
    environment.meter.allow_chars(width)
    return str(value).center(width)


@pass_environment
def _format(environment: MeteredEnvironment, value: object, *args: Any, **kwargs: Any) -> str:
    form = str(value)
    environment.meter.allow_chars(percent_chars(environment.meter, form, kwargs or args))
    return form % (kwargs or args)


@pass_environment
def _indent(environment: MeteredEnvironment, value: str, width: int | str = 4, *args: Any, **kwargs: Any) -> str:
    step = len(width) if isinstance(width, str) else width
    text = str(value)
    environment.meter.allow_chars(len(text) + (len(text.splitlines()) + 1) * step)
    return filters.do_indent(text, width, *args, **kwargs)


@pass_environment
def _replace(environment: MeteredEnvironment, value: object, old: object, new: object, count: int = -1) -> str:
    text, old, new = str(value), str(old), str(new)
    environment.meter.allow_chars(replaced_chars(text, old, new))
    return text.replace(old, new, count)


@pass_environment
def _join(
    environment: MeteredEnvironment, value: Iterable[Any], d: str = "", attribute: str | int | None = None
) -> str:
    meter = environment.meter
    if attribute is not None:
        value = map(filters.make_attrgetter(environment, attribute), value)
    listed = list(value)
    meter.allow_chars(sum(map(meter.shown_chars, listed)) + len(d) * len(listed))
    return str(d).join(map(str, listed))


@pass_environment
def _wordwrap(environment: MeteredEnvironment, value: str, *args: Any, **kwargs: Any) -> str:
    wrapping = kwargs.get("wrapstring") or (args[2] if len(args) > 2 else None) or "\n"
    environment.meter.allow_chars(len(value) + (len(value) + 1) * len(wrapping))
    return filters.do_wordwrap(environment, value, *args, **kwargs)


@pass_environment
def _batch(environment: MeteredEnvironment, value: Iterable[Any], linecount: int, fill_with: Any = None) -> Any:
    environment.meter.allow_items(linecount)
    return filters.do_batch(value, linecount, fill_with)


@pass_environment
def _slice(environment: MeteredEnvironment, value: Iterable[Any], slices: int, fill_with: Any = None) -> Any:
    environment.meter.allow_items(slices)
    return filters.sync_do_slice(list(value), slices, fill_with)


@pass_environment
def _round(environment: MeteredEnvironment, value: float, precision: int = 0, method: Any = "common") -> float:
    if abs(precision) > _MOST_DIGITS:
        environment.meter.allow_number(4 * abs(precision))
        raise ValueError(f"round() takes at most {_MOST_DIGITS} digits")
    return filters.do_round(value, precision, method)


@pass_environment
def _sum(
    environment: MeteredEnvironment, value: Iterable[Any], attribute: str | int | None = None, start: Any = 0
) -> Any:
    if attribute is not None:
        value = map(filters.make_attrgetter(environment, attribute), value)

    def add(total: Any, item: Any) -> Any:
        check_operator(environment.meter, "+", total, item)
        return operator.add(total, item)

    return functools.reduce(add, value, start)


@pass_environment
def _string(environment: MeteredEnvironment, value: Any) -> str:
    environment.meter.allow_chars(environment.meter.shown_chars(value))
    return str(value)


@pass_environment
def _pprint(environment: MeteredEnvironment, value: Any) -> str:
    environment.meter.allow_chars(environment.meter.shown_chars(value))
    return filters.do_pprint(value)


@pass_environment
def _plain_json(
    environment: MeteredEnvironment,
    value: Any,
    ensure_ascii: object = None,
    indent: int | str | None = None,
    separators: tuple[str, str] | None = None,
    sort_keys: object = None,
) -> str:
    """Return `value` as JSON without escapes for HTML, like the `tojson` filter of Hugging Face."""
    environment.meter.allow_chars(environment.meter.shown_chars(value))
    if isinstance(indent, int) and indent > _MOST_DIGITS:
        raise ValueError(f"tojson() indents by at most {_MOST_DIGITS} spaces")
    return json.dumps(
        value, ensure_ascii=bool(ensure_ascii), indent=indent, separators=separators, sort_keys=bool(sort_keys)
    )


def bounded_filters() -> dict[str, Callable[..., Any]]:
    """Return the replacements for Jinja's filters, by their names in templates."""
    return {
        "batch": _batch,
        "center": _center,
        "format": _format,
        "indent": _indent,
        "join": _join,
        "pprint": _pprint,
        "replace": _replace,
        "round": _round,
        "slice": _slice,
        "string": _string,
        "sum": _sum,
        "tojson": _plain_json,
        "wordwrap": _wordwrap,
    }


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
