"""A template that asks for too much memory or time is stopped before it gets it."""

import pytest

from qwendesk.core.errors import BadRequest
from qwendesk.engine.worker.template import ChatTemplate, TemplateSandboxLimits, TemplateTooCostly

_DOUBLING = "{%% set ns = namespace(x=%s) %%}{%% for i in range(99) %%}{%% set ns.x = %s %%}{%% endfor %%}{{ ns.x }}"


def render(source: str, limits: TemplateSandboxLimits | None = None) -> str:
    template = ChatTemplate(source, limits=limits)
    return template.render([{"role": "user", "content": "Hi"}], tools=None, add_generation_prompt=True, variables={})


@pytest.mark.parametrize(
    "source",
    [
        "{{ 'a' * 10**10 }}",
        "{{ 10**10 * 'a' }}",
        "{{ [0] * 10**10 }}",
        "{{ 2 ** (10 ** 9) }}",
        "{{ '%1000000000d' % 1 }}",
        "{{ '%.1000000000f' % 1 }}",
        "{{ '%*d' % (10**9, 1) }}",
        "{{ '%(a)1000000000d' % {'a': 1} }}",
        "{{ '%1000000000d' | format(1) }}",
        "{{ '{:1000000000}'.format(1) }}",
        "{{ '{:{}}'.format(1, 10**9) }}",
        "{{ '{a:1000000000}'.format_map({'a': 1}) }}",
        "{{ ('{:1000000000}' | safe).format(1) }}",
        "{{ 'x' | center(10**9) }}",
        "{{ ['x'] | map('center', 10**9) | list }}",
        "{{ 'x' | indent(10**9, true) }}",
        "{{ 'x'.center(10**9) }}",
        "{{ 'x'['ljust'](10**9) }}",
        "{{ ('x' | attr('rjust'))(10**9) }}",
        "{{ 'x'.zfill(10**9) }}",
        "{{ '\t'.expandtabs(10**9) }}",
        "{{ '\t'.expandtabs(tabsize=10**9) }}",
        "{{ ('a' * 9999).replace('a', 'b' * 9999) }}",
        "{{ ('a' * 9999) | replace('a', 'b' * 9999) }}",
        "{{ ('a' * 9999).translate({97: 'b' * 9999}) }}",
        "{{ ('a' * 9999).join('b' * 9999) }}",
        "{{ ('b' * 9999) | join('a' * 9999) }}",
        "{{ ('b' * 9999) | wordwrap(1, wrapstring='a' * 9999) }}",
        "{{ [1] | batch(10**9, 0) | list }}",
        "{{ [1] | slice(10**9) | list }}",
        "{{ 1.5 | round(10**9) }}",
        "{{ 1 | round(-10**9) }}",
        _DOUBLING % ("'a'", "ns.x ~ ns.x"),
        _DOUBLING % ("'a'", "ns.x + ns.x"),
        _DOUBLING % ("'a'", "'%s%s' % (ns.x, ns.x)"),
        _DOUBLING % ("'a'", "'{0}{0}'.format(ns.x)"),
        _DOUBLING % ("'a'", "[ns.x, ns.x] | join"),
        _DOUBLING % ("7", "ns.x * ns.x"),
        _DOUBLING % ("[1]", "ns.x + ns.x"),
        _DOUBLING % ("[1]", "[ns.x, ns.x] | sum(start=[])"),
        _DOUBLING % ("[1]", "[ns.x, ns.x]"),
        _DOUBLING.replace("{{ ns.x }}", "{{ ns.x | tojson }}") % ("[1]", "[ns.x, ns.x]"),
        _DOUBLING.replace("{{ ns.x }}", "{{ ns.x | string }}") % ("[1]", "{'a': ns.x, 'b': ns.x}"),
        "{% for i in range(99999) %}{{ 'a' * 999 }}{% endfor %}",
        "{% set x %}{% for i in range(99999) %}{{ 'a' * 999 }}{% endfor %}{% endset %}",
        "{% macro m() %}{% for i in range(99999) %}{{ 'a' * 999 }}{% endfor %}{% endmacro %}{% set x = m() %}",
    ],
)
def test_memory_is_bounded(source: str) -> None:
    with pytest.raises(TemplateTooCostly):
        render(source, TemplateSandboxLimits(value_chars=2_000_000, total_chars=20_000_000, items=50_000))


@pytest.mark.parametrize("source", ["{{ range(10**9) | list }}", "{{ [1] | tojson(indent=10**9) }}"])
def test_other_ways_to_ask_for_too_much_are_request_errors(source: str) -> None:
    with pytest.raises(BadRequest):
        render(source)


@pytest.mark.parametrize(
    "source",
    [
        "{% for i in range(99999) %}{% for j in range(99999) %}{% endfor %}{% endfor %}",
        "{% macro m(n) %}{% if n %}{{ m(n - 1) }}{{ m(n - 1) }}{% endif %}{% endmacro %}{{ m(99) }}",
        "{% macro m() %}{% for i in range(99999) %}{% for j in range(99999) %}{% endfor %}{% endfor %}"
        "{% endmacro %}{{ m() }}",
    ],
)
def test_time_is_bounded(source: str) -> None:
    with pytest.raises(TemplateTooCostly, match=r"more than 0\.05 seconds"):
        render(source, TemplateSandboxLimits(seconds=0.05))


def test_endless_recursion_is_a_request_error() -> None:
    with pytest.raises(BadRequest):
        render("{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}")


def test_deeply_nested_source_is_a_broken_template() -> None:
    with pytest.raises(BadRequest, match="Broken chat template"):
        ChatTemplate("{{ " + "(" * 20_000 + ")" * 20_000 + " }}")


def test_each_rendering_has_its_own_allowance() -> None:
    template = ChatTemplate("{{ 'a' * 600 }}", limits=TemplateSandboxLimits(total_chars=1000))
    for _ in range(3):
        assert template.render([], tools=None, add_generation_prompt=True, variables={}) == "a" * 600


def test_a_long_conversation_is_within_the_limits() -> None:
    template = ChatTemplate("{% for m in messages %}{{ m.role + ':' + m.content + '\n' }}{% endfor %}")
    messages = [{"role": "user", "content": "word " * 20_000}] * 50
    shown = template.render(messages, tools=None, add_generation_prompt=True, variables={})
    assert len(shown) == 50 * 100_006
