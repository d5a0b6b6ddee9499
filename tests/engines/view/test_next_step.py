"""Programs that wait for the engine: the window names the next step, on the Server page and on the Engine page."""

from PySide6.QtWidgets import QLabel, QPushButton

from qwendesk.server.requests import ServedRequest, n_waiting_clients


def requests(*rows):
    return tuple(ServedRequest(n, program, "key", "/v1", 0.0, phase) for n, (program, phase) in enumerate(rows))


def test_programs_wait_only_while_the_engine_serves_another():
    assert n_waiting_clients(requests(("codex", "waiting"), ("cline", "done"))) == 0
    waiting = requests(("codex", "waiting"), ("codex", "waiting"), ("cline", "waiting"), ("claude", "writing"))
    assert n_waiting_clients(waiting) == 2, "two requests of one program are one that waits"


async def test_waiting_programs_are_answered_with_a_next_step(make_desk):
    desk = make_desk()
    await desk.load_demo()
    await desk.until(lambda: desk.parts.services.pending_load.pending.plan is not None)
    desk.window.go_to("server")
    assert not desk.is_shown("nextstep")
    desk.parts.services.outgrown.note_waiting(2)
    await desk.until(lambda: desk.is_shown("nextstep"))
    assert desk.text_of("nextstep.sentence").startswith("2 programs wait")
    assert not desk.is_shown("nextstep.command"), "vLLM can't run the demo, so there is no command"
    desk.window.go_to("engine")
    texts = [label.text() for label in desk.window.findChildren(QLabel)]
    assert "Next step" in texts


async def test_the_card_leads_to_the_command_on_the_engine_page(make_desk):
    desk = make_desk()
    desk.parts.navigation.vllm_command_asked.emit()
    assert desk.window.page == "engine"
    assert desk.find("engine.command.vllm", QPushButton).isChecked()
