"""A page of the guide as HTML."""

from qwendesk.help.guide import parse_page
from qwendesk.help.view.help_window import page_to_html


def test_a_block_of_code_has_no_empty_line_at_its_end() -> None:
    html = page_to_html(parse_page("p", "# Page\n\n```\nqwendesk doctor\nqwendesk trial\n```\n"))
    assert "<pre><code>qwendesk doctor\nqwendesk trial</code></pre>" in html
