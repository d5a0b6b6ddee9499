"""What a server can't do of what the engine worker does, in sentences. No widgets here."""

from qwendesk.core.translation import tr
from qwendesk.engine.protocol import LoadReport


def answer_now_reason(report: LoadReport | None) -> str:
    """Return why the thinking of this model can't be ended early; "" if it can."""
    served = report.served_by if report is not None else None
    if served is None or served.can_answer_now:
        return ""
    return tr("{0} can't end the thinking early. Stop the answer instead.", served.program)


def budget_reason(report: LoadReport | None) -> str:
    """Return why the thinking of this model can't be limited; "" if it can."""
    served = report.served_by if report is not None else None
    if served is None or served.can_limit_thinking:
        return ""
    return tr("{0} can't limit how long the model thinks.", served.program)


def continue_reason(report: LoadReport | None) -> str:
    """Return why an answer can't be continued by this model; "" if it can."""
    served = report.served_by if report is not None else None
    if served is None or served.can_continue:
        return ""
    return tr("{0} can't continue an answer. Regenerate it instead.", served.program)


def unused_option_reason(report: LoadReport | None, key: str) -> str:
    """Return why a generation option changes nothing; "" if it does."""
    served = report.served_by if report is not None else None
    if served is None or key not in served.unused_options:
        return ""
    return tr("Not sent: {0} doesn't know this option.", served.program)


def load_options_text(server: str) -> str:
    """Return why the model of a server has no load options here."""
    return tr("This model runs on {0}, which decides how it is loaded. Load options are for models on this PC.", server)


def no_vision_text(report: LoadReport) -> str:
    """Return why no picture can be sent to a model of a server."""
    name = report.served_by.name if report.served_by is not None else ""
    return tr("{0} says that this model can't see pictures. Choose another model.", name)
