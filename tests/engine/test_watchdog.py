from qwendesk.core.units import GIB
from qwendesk.engine.watchdog import TemplateLimits, verdict


def test_a_template_within_its_limits_goes_on():
    assert verdict(TemplateLimits(), elapsed_s=10.0, growth_bytes=GIB) is None


def test_too_long_and_too_much_are_told_apart():
    assert "10 s" in verdict(TemplateLimits(), elapsed_s=10.1, growth_bytes=0)
    assert "1.0 GB" in verdict(TemplateLimits(), elapsed_s=0.0, growth_bytes=GIB + 1)


def test_the_sentence_says_what_to_do():
    assert "chat_template_file" in verdict(TemplateLimits(), elapsed_s=11, growth_bytes=0)
