"""A grammar is read as llama.cpp reads it, so that a bad one is a sentence and not a dead answer."""

import pytest

from qwendesk.core.errors import BadRequest
from qwendesk.services.chat.grammar_check import check_grammar

READ_BY_LLAMA_CPP = (
    'root ::= "yes" | "no"',
    '# a list\nroot ::= item+ # at least one\r\nitem ::=\n  [^\\n\\]a-z-]{2,} "\\n"\n',
    'root ::= ("a" |\n b{0,3}) .\nb ::= "\\x41\\u00e9\\U0001F600" | ',
    'root ::= "a" root | "b"',
    'root ::= <think> "a" !<[12]>',
    'root ::= ("a"?)* "é"',
)
"""tests/engine/worker/test_sampling.py asks llama.cpp itself."""


@pytest.mark.parametrize("text", ["", *READ_BY_LLAMA_CPP])
def test_what_llama_cpp_reads_passes(text):
    check_grammar(text)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ('nothing ::= "a"', 'called "root"'),
        ("root ::= (", "Line 1: a bracket"),
        ('root ::= "a"\nb = "c"', "Line 2: ::="),
        ('root ::= "a', "not closed"),
        ("root ::= [a", "not closed"),
        ('root ::= "a" )', "not expected"),
        ('root ::= ("a" | (b))', '"b", which is no rule'),
        ('root ::= "\\q"', "unknown"),
        ('root ::= "\\u12"', "4 hexadecimal"),
        ("root ::= *", "before *"),
        ('root ::= "a"?*', "left out"),
        ('root ::= "a"{3,2}', "low"),  # llama.cpp itself never comes back from this one
        ('root ::= "a"{0,999999999}', "low"),
        ('root ::= "a"{,3}', "{2,5}"),
        ('root ::= a\na ::= b? a "x"\nb ::= "z"', '"a" begins with itself'),
        ('root ::= x\nx ::= ("y"?) root', '"root" begins with itself'),
        ("root ::= " + "(" * 200 + '"a"' + ")" * 200, "deep"),
        ('root ::= "a"' + "{1}" * 5000, "deep"),
        ('root ::= "a"\n_b ::= "c"', "Line 2: a rule begins"),
    ],
)
def test_what_it_does_not_read_is_said_with_its_place(text, complaint):
    with pytest.raises(BadRequest, match="The grammar cannot be used") as refused:
        check_grammar(text)
    assert complaint in refused.value.sentence
