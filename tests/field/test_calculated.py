"""Expressions and questions as people and models write them: they are calculated, or asked, as they are meant."""

from typing import Any

import pytest

from qwendesk.cli import ask as cli_ask
from qwendesk.cli import main as cli
from qwendesk.toolbox.calculator import calculate
from qwendesk.toolbox.tool import ToolError
from tests.fakes.answer_stream import ScriptedAnswer
from tests.fakes.engine import FakeEngineClient, ready
from tests.field.grid import SERVER, Kind, Way, case

EXPRESSION = Kind(
    "The calculator doesn't know how people write a number or a sign, or reads it as another",
    {
        **dict.fromkeys(SERVER, "the server runs none of our tools for a client's messages"),
        Way.MCP: "MCP servers have calculators of their own",
        Way.IMPORT: "an import runs no calls",
    },
)
QUESTION = Kind(
    "A question with an equals sign is taken for an option",
    dict.fromkeys((Way.WINDOW, *SERVER, Way.MCP, Way.IMPORT), "options have fields of their own there"),
)

CALCULATED = {
    "7!": "5040",
    "2^3!": "64",
    "(2 + 3)! / 3!": "20",
    "-4!": "-24",
    "max(3!, 4)": "6",
    "DDMathParser#31: 12!": "479001600",
    "50% of 200": "100",
    "12.5 % of (40 + 40)": "10",
    "(5 + 5)% of 30": "3",
    "15% of 80 + 3": "15",
    "zeroclickinfo-goodies#4541: 304*3.100%": "9.424",
    "3,14 * 2": "6.28",
    "sopel#435: 52,83/128": "0.412734375",
    "parsify#49: 4,5 + 7,5 * 10": "79.5",
    "parsify#49, three: 1,2 + 2,3 + 3,4": "6.9",
    "PowerToys#47528: 1,5+1,5": "3",
    "0,125 * 8": "1",
    "1.234,56 + 1": "1235.56",
    "1.234.567 + 1": "1234568",
    "1234,567 * 10": "12345.67",
    "1,234 + 0,5": "1.734",
    "1,234,567.5 * 2": "2469135",
    "Flow.Launcher#2283: 3,000*4": "12000 (3,000 was read as 3000)",
    "PowerToys#17388: min(1, 2, 6)": "1",
    "2/3": "2/3, about 0.666666666666667, rounded to 15 digits",
    "sqrt(2)": "1.4142135623731, rounded to 15 digits",
    "round(2.345, 2)": "2.34 (a half was rounded to the even digit)",
    "round(2.346, 2)": "2.35",
}


@case(EXPRESSION, Way.WINDOW, Way.CLI, report="sopel#435, parsify#49, PowerToys#47528 and four more", before="failed")
@pytest.mark.parametrize(("expression", "value"), CALCULATED.items())
def test_an_expression_is_calculated_as_it_is_written(expression: str, value: str) -> None:
    found = calculate(expression.partition(": ")[2] or expression)
    assert found == value or (len(value) > 30 and found[:14] == value[:14] and found[-22:] == value[-22:])


AMBIGUOUS = ["1,5 + 1,234,567", "1.234 * 2,5", "5!!", "1,23,456", "!", "x!", "2.5!", "3 of 4", "% of 3", "1,2,3"]


@case(EXPRESSION, Way.WINDOW, Way.CLI, report="found by writing the rules", before="held")
@pytest.mark.parametrize("expression", AMBIGUOUS)
def test_what_can_be_read_in_two_ways_is_refused_with_a_sentence(expression: str) -> None:
    with pytest.raises(ToolError) as refused:
        calculate(expression)
    assert str(refused.value).endswith(".")


QUESTIONS = ["E=mc^2", "a=b?", "x=5", "y=mx+b", "1+1=?", "速度=距离/时间", "F=ma", "f(x)=x^2"]


@case(QUESTION, Way.CLI, report="found by asking about E=mc^2", before="failed")
@pytest.mark.parametrize("question", QUESTIONS)
def test_a_formula_is_asked(question: str, monkeypatch: Any, capsys: Any) -> None:
    client = FakeEngineClient(answers=[ScriptedAnswer(text="Yes.")])
    monkeypatch.setattr(cli_ask, "preferred_client", lambda: ready(client))
    assert cli.main(["ask", question]) == 0
    assert client.asked[0].messages[-1].text == question
    capsys.readouterr()


@case(QUESTION, Way.CLI, report="found by forgetting --set", before="held")
@pytest.mark.parametrize("option", ["top_k=3", "temprature=0.5", "n_ctx=512", "threads=4", "seed=1"])
def test_a_forgotten_set_is_still_named(option: str, monkeypatch: Any, capsys: Any) -> None:
    client = FakeEngineClient()
    monkeypatch.setattr(cli_ask, "preferred_client", lambda: ready(client))
    assert cli.main(["ask", option, "hi"]) == 2
    assert f'"{option}" looks like an option' in capsys.readouterr().err
