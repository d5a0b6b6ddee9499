from qwendesk.core.units import GIB
from qwendesk.engine.watchdog import TemplateWatchdogLimits, exceeded_limit


def test_template_within_its_limits_continues():
    assert exceeded_limit(TemplateWatchdogLimits(), elapsed_s=10.0, growth_bytes=GIB) is None


def test_time_and_memory_limits_have_different_sentences():
    assert "10 s" in exceeded_limit(TemplateWatchdogLimits(), elapsed_s=10.1, growth_bytes=0)
    assert "1.0 GB" in exceeded_limit(TemplateWatchdogLimits(), elapsed_s=0.0, growth_bytes=GIB + 1)


def test_the_sentence_says_what_to_do():
    assert "chat_template_file" in exceeded_limit(TemplateWatchdogLimits(), elapsed_s=11, growth_bytes=0)
