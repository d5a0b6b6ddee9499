"""The tool that calculates: exactly, as far as the result is a fraction.

Python's own parser reads the expression. Only numbers, operators and the functions below are evaluated, each by code
here; nothing is executed, and no result grows beyond MOST_DIGITS.
"""

import ast
import math
import operator
from collections.abc import Callable, Mapping, MutableSequence
from fractions import Fraction

from qwendesk.core.tool_context import CallContext
from qwendesk.core.translation import mark
from qwendesk.toolbox.expression_text import as_python
from qwendesk.toolbox.tool import Arguments, Tool, ToolError

MOST_CHARACTERS = 1000
MOST_DIGITS = 1000
# Of a result that has no exact decimal form. A float has about 16.
_SHOWN_DIGITS = 15

Number = Fraction | float

_CONSTANTS: Mapping[str, float] = {"pi": math.pi, "e": math.e, "tau": math.tau}
_FUNCTIONS: Mapping[str, Callable[..., float]] = {
    name: getattr(math, name)
    for name in ("sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "tanh", "exp", "log", "log2", "log10",
                 "degrees", "radians", "hypot", "atan2")
} | {"ln": math.log}  # fmt: skip
_OPERATORS: Mapping[type[ast.operator], Callable[[Number, Number], Number]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
}


async def _run(arguments: Arguments, _context: CallContext) -> str:
    return calculate(str(arguments["expression"]))


CALCULATOR = Tool(
    name="calculate",
    title=mark("Calculator"),
    promise=mark("Exact sums instead of guesses."),
    description=(
        "Calculate an expression exactly: + - * / // % ** !, 50% of 200, parentheses, sqrt, abs, round (a half goes to "
        "the even digit), min, max, factorial, gcd, and floating-point functions such as sin (radians), log and exp. "
        "Example: (3 + 4) * sqrt(2)"
    ),
    parameters={
        "type": "object",
        "properties": {"expression": {"type": "string", "description": "For example: 347 * 12"}},
        "required": ["expression"],
    },
    effect="nothing",
    icon="calculator",
    command_name="calculator",
    run=_run,
    is_trusted=True,
)


def calculate(expression: str) -> str:
    """Return the value of an expression as text, and how it was rounded. Raise ToolError for anything else."""
    if len(expression) > MOST_CHARACTERS:
        raise ToolError(f"The expression has more than {MOST_CHARACTERS} characters. Split it.")
    notes: list[str] = []
    try:
        tree = ast.parse(as_python(expression, notes), mode="eval")
        value = shown(_value(tree.body, notes))
        return f"{value} ({'; '.join(dict.fromkeys(notes))})" if notes else value
    except ToolError:
        raise
    except ZeroDivisionError:
        raise ToolError("That divides by zero.") from None
    except (SyntaxError, RecursionError, MemoryError):
        raise ToolError(f"{expression!r} is not an expression that can be calculated.") from None
    except (ValueError, OverflowError, TypeError) as error:
        raise ToolError(f"That can't be calculated: {error}.") from None


def _value(node: ast.expr, notes: MutableSequence[str]) -> Number:
    match node:
        case ast.Constant(value=int() | float() as value) if not isinstance(value, bool):
            # A decimal such as 0.1 is meant exactly, so it is read from its text.
            return _checked(Fraction(repr(value)) if isinstance(value, float) else Fraction(value))
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return -_value(operand, notes)
        case ast.UnaryOp(op=ast.UAdd(), operand=operand):
            return _value(operand, notes)
        case ast.BinOp(left=left, op=ast.Pow(), right=right):
            return _checked(_power(_value(left, notes), _value(right, notes)))
        case ast.BinOp(left=left, op=sign, right=right) if type(sign) in _OPERATORS:
            return _checked(_OPERATORS[type(sign)](_value(left, notes), _value(right, notes)))
        case ast.Name(id=name) if name in _CONSTANTS:
            return _CONSTANTS[name]
        case ast.Call(func=ast.Name(id=name), args=args, keywords=[]):
            return _checked(_call(name, [_value(each, notes) for each in args], notes))
    raise ToolError("Only numbers, operators, parentheses and known functions can be calculated.")


def _power(base: Number, exponent: Number) -> Number:
    if isinstance(base, Fraction) and isinstance(exponent, Fraction) and exponent.denominator == 1:
        n_digits = abs(exponent) * math.log10(max(abs(base.numerator), base.denominator))
        if n_digits > MOST_DIGITS:
            raise ToolError(f"The result has more than {MOST_DIGITS} digits.")
        return Fraction(base ** int(exponent))
    if base < 0:
        raise ToolError("A root of a negative number is not a real number.")
    return math.pow(base, exponent)


def _call(name: str, values: list[Number], notes: MutableSequence[str]) -> Number:
    whole = [int(value) for value in values if isinstance(value, Fraction) and value.denominator == 1]
    are_whole = len(whole) == len(values)
    match name, values:
        case "sqrt", [Fraction() as value] if value >= 0:
            roots = math.isqrt(value.numerator), math.isqrt(value.denominator)
            is_exact = roots[0] ** 2 == value.numerator and roots[1] ** 2 == value.denominator
            return Fraction(*roots) if is_exact else math.sqrt(value)
        case "abs", [value]:
            return value if value >= 0 else -value
        case "min" | "max", [_, *_]:
            ordered = sorted(values, key=float)
            return ordered[0 if name == "min" else -1]
        case "round", [value]:
            return _rounded(Fraction(value), 0, notes)
        case "round", [value, Fraction() as digits] if digits.denominator == 1 and abs(digits) < MOST_DIGITS:
            return _rounded(Fraction(value), int(digits), notes)
        case "floor", [value]:
            return Fraction(math.floor(value))
        case "ceil", [value]:
            return Fraction(math.ceil(value))
        case "factorial", [_] if are_whole and 0 <= whole[0] <= 400:
            return Fraction(math.factorial(whole[0]))
        case "gcd" | "lcm", [_, *_] if are_whole:
            return Fraction(math.gcd(*whole) if name == "gcd" else math.lcm(*whole))
        case _ if name in _FUNCTIONS:
            return float(_FUNCTIONS[name](*map(float, values)))
    raise ToolError(f"{name} can't be calculated with these values, or is not known.")


def _rounded(value: Fraction, digits: int, notes: MutableSequence[str]) -> Fraction:
    if (value * Fraction(10) ** digits % 1) * 2 == 1:
        notes.append("a half was rounded to the even digit")
    return Fraction(round(value, digits))


def _checked(value: Number) -> Number:
    if isinstance(value, Fraction):
        if max(value.numerator.bit_length(), value.denominator.bit_length()) > MOST_DIGITS * math.log2(10):
            raise ToolError(f"A number on the way has more than {MOST_DIGITS} digits.")
    elif not math.isfinite(value):
        raise ToolError("The result is too large.")
    return value


def shown(value: Number) -> str:
    """Return a number as text: exactly if it has a decimal form of moderate length, else rounded, and it says so."""
    if isinstance(value, float):
        return f"{value:.{_SHOWN_DIGITS}g}, rounded to {_SHOWN_DIGITS} digits"
    if value.denominator == 1:
        return str(value.numerator)
    rest = value.denominator
    for prime in (2, 5):
        while rest % prime == 0:
            rest //= prime
    places = next((n for n in range(1, 40) if 10**n % value.denominator == 0), 0) if rest == 1 else 0
    if not places:
        return f"{value.numerator}/{value.denominator}, about {shown(float(value))}"
    digits = str(abs(value.numerator) * 10**places // value.denominator).rjust(places + 1, "0")
    return f"{'-' if value < 0 else ''}{digits[:-places]}.{digits[-places:]}"
