"""Grammars are checked as llama.cpp parses them, so that an invalid one is refused before it is sent."""

import pytest

from qwendesk.chat.grammar_check import check_grammar
from qwendesk.core.errors import BadRequest

VALID_GRAMMARS = (
    'root ::= "yes" | "no"',
    '# a list\nroot ::= item+ # at least one\r\nitem ::=\n  [^\\n\\]a-z-]{2,} "\\n"\n',
    'root ::= ("a" |\n b{0,3}) .\nb ::= "\\x41\\u00e9\\U0001F600" | ',
    'root ::= "a" root | "b"',
    'root ::= <think> "a" !<[12]>',
    'root ::= ("a"?)* "é"',
)
"""tests/engine/worker/test_sampling.py asks llama.cpp itself."""


@pytest.mark.parametrize("text", ["", *VALID_GRAMMARS])
def test_valid_grammar_is_accepted(text):
    check_grammar(text)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ('nothing ::= "a"', 'called "root"'),
        ("root ::= (", "Line 1: a bracket"),
        ('root ::= "a"\nb = "c"', "Line 2: the name of a rule must be followed by ::="),
        ('root ::= "a', "isn't closed"),
        ("root ::= [a", "isn't closed"),
        ('root ::= "a" )', 'unexpected ")"'),
        ('root ::= ("a" | (b))', 'a rule "b", which doesn\'t exist'),
        ('root ::= "\\q"', "unknown"),
        ('root ::= "\\u12"', "4 hexadecimal"),
        ("root ::= *", "before *"),
        ('root ::= "a"?*', "optional"),
        ('root ::= "a"{3,2}', "the lower one first"),  # llama.cpp itself would never finish this one
        ('root ::= "a"{0,999999999}', "the lower one first"),
        ('root ::= "a"{,3}', "{2,5}"),
        ('root ::= a\na ::= b? a "x"\nb ::= "z"', 'The rule "a" begins with itself'),
        ('root ::= x\nx ::= ("y"?) root', 'The rule "root" begins with itself'),
        ("root ::= " + "(" * 200 + '"a"' + ")" * 200, "deep"),
        ('root ::= "a"' + "{1}" * 5000, "deep"),
        ('root ::= "a"\n_b ::= "c"', "Line 2: a rule begins"),
    ],
)
def test_invalid_grammar_is_refused_with_its_line(text, complaint):
    with pytest.raises(BadRequest, match="The grammar can't be used") as refused:
        check_grammar(text)
    assert complaint in refused.value.sentence
