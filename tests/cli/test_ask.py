"""`qwendesk ask` on a scripted engine: what it prints, asks for and returns."""

import io
import json
import os
import signal
import sys
from pathlib import Path

import msgspec
import pytest
from PIL import Image

from qwendesk.cli import ask as cli_ask
from qwendesk.cli import main as cli
from qwendesk.cli import terminal as cli_terminal
from qwendesk.core.failures import LoadFailure
from qwendesk.core.paths import demo_mmproj, demo_model
from qwendesk.engine.protocol import Load, RequestFailed
from tests.fakes.engine import FakeEngineClient, ScriptedAnswer, ready

KEYS = [
    "prompt", "reasoning", "answer", "stop_reason", "prompt_tokens", "reused_tokens", "reread_tokens", "image_tokens",
    "reasoning_tokens", "answer_tokens", "reasoning_looped", "drafted_tokens", "accepted_tokens", "n_threads",
    "most_threads", "ttft_s",
    "prefill_s", "decode_tok_s", "cache_note", "tool_calls",
]  # fmt: skip


@pytest.fixture
def engine(monkeypatch) -> FakeEngineClient:
    """The engine that `ask` will find."""
    fake = FakeEngineClient()
    monkeypatch.setattr(cli_ask, "preferred_client", lambda: ready(fake))
    return fake


def load_of(engine: FakeEngineClient) -> Load:
    return next(request for request in engine.requests if isinstance(request, Load))


def test_ask_streams_reasoning_and_answer(engine, capsys):
    engine.answers = [ScriptedAnswer(reasoning="Let me see.", text="It is four.")]
    assert cli.main(["ask", "2 + 2?"]) == 0
    out, err = capsys.readouterr()
    assert out == "Let me see.\n\nIt is four.\n"
    assert "demo model" in err
    assert engine.closed


def test_every_prompt_is_a_turn_of_one_conversation(engine, capsys):
    engine.answers = [ScriptedAnswer(text="One."), ScriptedAnswer(text="Two.")]
    assert cli.main(["ask", "--system", "Be brief.", "a", "b"]) == 0
    assert [message.text for message in engine.asked[1].messages] == ["Be brief.", "a", "One.", "b"]
    assert capsys.readouterr().out == "> a\n\nOne.\n\n> b\n\nTwo.\n"


def test_json_is_a_single_documented_object(engine, capsys):
    engine.answers = [ScriptedAnswer(reasoning="Hm.", text="Four, été \x1b[2J.")]
    assert cli.main(["ask", "--json", "2 + 2?"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert list(result) == ["model", "load", "turns"]
    assert result["model"] == str(demo_model())
    assert result["load"]["name"] == "QwenDesk Demo"
    (turn,) = result["turns"]
    assert list(turn) == KEYS
    assert (turn["prompt"], turn["reasoning"], turn["answer"]) == ("2 + 2?", "Hm.", "Four, été \x1b[2J.")
    assert (turn["stop_reason"], turn["reasoning_tokens"], turn["answer_tokens"]) == ("eos", 1, 3)


def test_options_reach_the_load_and_the_answer(engine, capsys):
    arguments = ["--think-budget", "8", "--seed", "7", "--max-tokens", "9", "--set", "n_ctx=4096", "--set", "top_k=3"]
    assert cli.main(["ask", *arguments, "hi"]) == 0
    assert load_of(engine).options.n_ctx == 4096
    options = engine.asked[0].options
    assert (options.thinking_budget, options.seed, options.max_tokens, options.top_k) == (8, 7, 9, 3)
    assert options.temperature == 0, "the demo's preset"
    assert options.enable_thinking


def test_set_wins_over_the_preset(engine, capsys):
    assert cli.main(["ask", "--no-think", "--set", "temperature=0.4", "hi"]) == 0
    options = engine.asked[0].options
    assert (options.temperature, options.enable_thinking) == (0.4, False)


def test_pictures_belong_to_the_first_turn(engine, capsys, shape_picture):
    picture = shape_picture("red", "circle")
    assert cli.main(["ask", "--image", str(picture), "--image", str(picture), "What is it?", "Sure?"]) == 0
    messages = engine.asked[1].messages
    assert [len(message.images) for message in messages] == [2, 0, 0]


def test_frames_of_a_clip_come_with_their_times(engine, tmp_path):
    clip = tmp_path / "colours.gif"
    first, second = (Image.new("RGB", (64, 48), colour) for colour in ("red", "blue"))
    first.save(clip, save_all=True, append_images=[second], duration=1000)
    engine.answers = [ScriptedAnswer(text="Red, then blue.")]

    assert cli.main(["ask", "--video", str(clip), "What happens?"]) == 0

    frames = [image.frame for image in engine.asked[-1].messages[0].images]
    assert [(frame.clip, frame.time_s, frame.clip_s) for frame in frames] == [
        ("colours.gif", 0.5, 2.0), ("colours.gif", 1.5, 2.0),
    ]  # fmt: skip


def test_two_clips_take_a_quarter_of_the_context(engine, tmp_path):
    engine.report = msgspec.structs.replace(engine.report, n_ctx=1024, pairs_frames=False)
    clip = tmp_path / "colours.gif"
    first, *others = (Image.new("RGB", (64, 48), (20 * number, 60, 200)) for number in range(12))
    first.save(clip, save_all=True, append_images=others, duration=1000)

    for n_clips, n_frames in ((1, 8), (2, 2 * 4)):
        assert cli.main(["ask", *["--video", str(clip)] * n_clips, "What happens?"]) == 0
        assert len(engine.asked[-1].messages[0].images) == n_frames


def test_a_file_that_is_no_clip_is_a_sentence(engine, tmp_path, capsys):
    text = tmp_path / "notes.mp4"
    text.write_text("no clip")

    assert cli.main(["ask", "--video", str(text), "What happens?"]) != 0

    assert 'can\'t open "notes.mp4"' in capsys.readouterr().err
    assert engine.closed


def test_demo_is_loaded_with_its_mmproj(engine, capsys):
    cli.main(["ask", "hi"])
    options = load_of(engine).options
    assert (options.model, options.mmproj) == (str(demo_model()), str(demo_mmproj()))


def test_model_is_loaded_with_the_mmproj_in_its_folder(engine, capsys, tmp_path, monkeypatch):
    model, mmproj = tmp_path / "m.gguf", tmp_path / "mmproj-m.gguf"
    model.write_bytes(demo_model().read_bytes())
    mmproj.write_bytes(demo_mmproj().read_bytes())
    (tmp_path / "mmproj-broken.gguf").write_bytes(b"GGUF")
    monkeypatch.chdir(tmp_path)
    assert cli.main(["ask", "--model", "m.gguf", "hi"]) == 0
    assert load_of(engine).options.mmproj == str(mmproj)
    assert "demo" not in capsys.readouterr().err


def test_an_empty_mmproj_loads_without_pictures(engine, capsys):
    assert cli.main(["ask", "--mmproj", "", "hi"]) == 0
    assert load_of(engine).options.mmproj == ""


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--set", "nonsense=1", "hi"], 'no option "nonsense"'),
        (["--set", "temperature", "hi"], "KEY=VALUE"),
        (["--set", "temperature=99", "hi"], "from 0 up to 10"),
        (["--set", "n_ctx=many", "hi"], "n_ctx"),
        (["--set", 'grammar=root ::= "a"{3,2}', "hi"], "the lower one comes first"),
        (["--set", "json_schema={}", "--set", 'grammar=root ::= "a"', "hi"], "either a JSON schema or a grammar"),
        (["--image", "/no/such.png", "hi"], str(Path("/no/such.png"))),
        ([" "], "empty"),
        (["--set", "n_ctx=512", "top_k=3", "hi"], '"top_k=3" looks like an option'),
        (["--set", "n_ctx=512", "stop=two words", "hi"], '"stop=two words" looks like an option'),
        (["--set", "n_ctx=512", "temprature=0.5", "hi"], '"temprature=0.5" looks like an option'),
        (["caf\udce9"], 'Argument 2 isn\'t valid UTF-8: "caf\\udce9".'),
        (["--json", "--system", "caf\udce9", "hi"], "Argument 4 isn't valid UTF-8"),
        (["--set", "stop=caf\udce9", "hi"], "isn't valid UTF-8"),
        (["--model", "caf\udce9/m.gguf", "hi"], "isn't valid UTF-8"),
        (["\ud800" + "x" * 1000], "isn't valid UTF-8"),
    ],
)
def test_bad_usage_exits_2_with_a_sentence(engine, capsys, arguments, words):
    assert cli.main(["ask", *arguments]) == 2
    out, err = capsys.readouterr()
    assert words in err
    assert out == ""
    assert engine.requests == []


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere every name is Unicode")
def test_a_file_in_a_folder_whose_name_is_no_text_is_refused(engine, capsys, tmp_path, monkeypatch):
    folder = tmp_path / "caf\udce9"
    folder.mkdir()
    (folder / "m.gguf").write_bytes(demo_model().read_bytes())
    monkeypatch.chdir(folder)
    assert cli.main(["ask", "--model", "m.gguf", "hi"]) == 2
    assert "A file's path isn't valid UTF-8" in capsys.readouterr().err
    assert engine.requests == []


@pytest.mark.parametrize("prompt", [" n_ctx=512", "Solve x=2 and y=3", "What is a=b?", "2+2=4", "=", "=5"])
def test_a_prompt_with_an_equals_sign_is_asked(engine, capsys, prompt):
    assert cli.main(["ask", prompt]) == 0
    assert engine.asked[0].messages[-1].text == prompt


@pytest.mark.parametrize("arguments", [[], ["ask"], ["ask", "--max-tokens", "many", "hi"], ["dance"]])
def test_argparse_errors_exit_2(capsys, arguments):
    with pytest.raises(SystemExit) as exit_:
        cli.main(arguments)
    assert exit_.value.code == 2


def test_a_model_that_cannot_load_exits_3(engine, capsys):
    engine.load_result = LoadFailure("out_of_vram", "Not enough video memory", "Use less.", ("cudaMalloc failed",))
    assert cli.main(["ask", "hi"]) == 3
    out, err = capsys.readouterr()
    assert out == ""
    assert "Use less." in err
    assert "cudaMalloc failed" in err


def test_failed_load_names_an_option_that_helps(engine, capsys):
    engine.load_result = LoadFailure("out_of_ram", "Not enough memory", "Close other programs.")
    assert cli.main(["ask", "--set", "n_ctx=8192", "hi"]) == 3
    assert "You can also try --set n_ctx=4096 (Context of 4,096 tokens)." in capsys.readouterr().err


def test_a_model_that_cannot_load_is_json_too(engine, capsys):
    engine.load_result = LoadFailure("out_of_vram", "Not enough video memory", "Use less.")
    assert cli.main(["ask", "--json", "hi"]) == 3
    result = json.loads(capsys.readouterr().out)
    assert (result["load"], result["turns"], result["error"]["kind"]) == (None, [], "out_of_vram")


def test_crashed_engine_exits_4_and_asks_nothing_more(engine, capsys):
    engine.answers = [ScriptedAnswer(text="one two three", crashes_after=2)]
    assert cli.main(["ask", "a", "b"]) == 4
    out, err = capsys.readouterr()
    assert "one two" in out
    assert "stopped unexpectedly" in err
    assert len(engine.asked) == 1


def test_a_refused_request_exits_2(engine, capsys):
    engine.answers = [ScriptedAnswer(fail=RequestFailed(id=1, title="Bad grammar", sentence="Line 1 is wrong."))]
    assert cli.main(["ask", "--json", "a"]) == 2
    out, err = capsys.readouterr()
    assert "Line 1 is wrong." in err
    assert json.loads(out)["turns"][0]["error"] == "Line 1 is wrong."


@pytest.mark.skipif(sys.platform == "win32", reason="a process cannot send itself Ctrl-C there")
def test_ctrl_c_keeps_the_partial_answer_and_exits_130(engine, capsys, monkeypatch):
    engine.answers = [ScriptedAnswer(text="one two three four", tokens_per_second=5.0)]
    write = cli_terminal.Terminal.write

    def write_and_press_ctrl_c(terminal, text, **how):
        write(terminal, text, **how)
        if text.strip() == "two":
            os.kill(os.getpid(), signal.SIGINT)

    monkeypatch.setattr(cli_terminal.Terminal, "write", write_and_press_ctrl_c)
    assert cli.main(["ask", "a", "b"]) == 130
    assert capsys.readouterr().out == "> a\n\none two \n\n"
    assert len(engine.asked) == 1
    assert engine.closed


class FakeTty(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_terminal_output_dims_reasoning_and_escapes_control_characters(engine, monkeypatch):
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setattr(cli_terminal, "_knows_ansi", lambda: True)
    screen = FakeTty()
    monkeypatch.setattr(sys, "stdout", screen)
    engine.answers = [ScriptedAnswer(reasoning="Hm.", text="A\x1b[2J\x07B\tC")]
    assert cli.main(["ask", "hi"]) == 0
    assert screen.getvalue() == "\x1b[2mHm.\x1b[0m\n\nA\N{REPLACEMENT CHARACTER}[2J\N{REPLACEMENT CHARACTER}B\tC\n"


def test_no_color_is_respected(engine, monkeypatch):
    monkeypatch.setenv("NO_COLOR", "1")
    screen = FakeTty()
    monkeypatch.setattr(sys, "stdout", screen)
    engine.answers = [ScriptedAnswer(reasoning="Hm.", text="Yes.")]
    cli.main(["ask", "hi"])
    assert "\x1b" not in screen.getvalue()
