"""A first question to the server: as other programs ask it, to copy, and asked from the window."""

import json
import sys
import time
from typing import Final, Literal

import msgspec

from qwendesk.core.translation import tr
from qwendesk.server.setups.programs import Target

Language = Literal["curl", "python", "javascript"]
# A short one that every model can answer, also the demo.
QUESTION: Final = "Tell me a joke"
# Without thinking, which would take long and is not shown. The model is the loaded one.
_BODY: Final = {"reasoning_effort": "none", "messages": [{"role": "user", "content": QUESTION}]}
# Their lines are short enough for half of the page.
_PYTHON = """from openai import OpenAI

question = "{question}"
client = OpenAI(
    base_url="{address}/v1",
    api_key="{key}",
)
answer = client.chat.completions.create(
    model="qwendesk",
    reasoning_effort="none",
    messages=[{{"role": "user", "content": question}}],
)
print(answer.choices[0].message.content)"""
_JAVASCRIPT = """const question = "{question}";
const url =
  "{address}/v1/chat/completions";
const answer = await fetch(url, {{
  method: "POST",
  headers: {{
    "Authorization": "Bearer {key}",
    "Content-Type": "application/json",
  }},
  body: JSON.stringify({{
    reasoning_effort: "none",
    messages: [{{ role: "user", content: question }}],
  }}),
}});
const {{ choices }} = await answer.json();
console.log(choices[0].message.content);"""


def snippet(language: Language, address: str, key: str) -> str:
    """Return the question as code: for curl in the system's shell, openai's Python package, or Node.js and browsers."""
    match language:
        case "curl":
            return _curl(address, key, is_windows=sys.platform == "win32")
        case "python":
            return _PYTHON.format(address=address, key=key, question=QUESTION)
        case "javascript":
            return _JAVASCRIPT.format(address=address, key=key, question=QUESTION)


def _curl(address: str, key: str, *, is_windows: bool) -> str:
    """Return a command for a POSIX shell, or for the Command Prompt, whose quotes are double and within one line."""
    body = json.dumps(_BODY)
    quoted = (
        '"{}"'.format(body.replace('"', '\\"')) if is_windows else "'{}'".format(body.replace(": [", ":\n    [", 1))
    )
    words = (
        f"curl {address}/v1/chat/completions",
        f'-H "Authorization: Bearer {key}"',
        '-H "Content-Type: application/json"',
        f"-d {quoted}",
    )
    return (" ^\n  " if is_windows else " \\\n  ").join(words)


class TryResult(msgspec.Struct, frozen=True):
    text: str
    """The answer, or why there is none."""
    is_answer: bool = False
    seconds: float = 0.0
    tok_s: float = 0.0


async def ask(target: Target) -> TryResult:
    """Ask the server the question over HTTP, as any program would, and return its answer. It may load a model first."""
    import aiohttp

    headers = {"Authorization": f"Bearer {target.key}", "User-Agent": "QwenDesk-Test"}
    began_s = time.monotonic()
    try:
        async with (
            aiohttp.ClientSession(timeout=aiohttp.ClientTimeout()) as session,
            session.post(f"{target.address}/v1/chat/completions", json=_BODY, headers=headers) as response,
        ):
            body = await response.json()
    except (aiohttp.ClientError, ValueError) as error:
        return TryResult(tr("The server didn't answer: {0}", error))
    if response.status != 200:
        return TryResult(body["error"]["message"])
    text, tok_s = body["choices"][0]["message"]["content"], body["timings"]["predicted_per_second"]
    return TryResult(text or "", is_answer=True, seconds=time.monotonic() - began_s, tok_s=tok_s)
