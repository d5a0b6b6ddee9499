"""Asks the server through one of Python's libraries, with a tool that reads a file.

    python python_clients.py openai|responses|anthropic|litellm ADDRESS KEY PATH

Runs in an environment of its own, without QwenDesk. Prints the text of the second answer.
"""

import json
import sys
from pathlib import Path
from typing import Any

MODEL = "qwendesk"
ABOUT = "Reads a file and returns its text."
SCHEMA = {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}


def read(arguments: dict[str, Any]) -> str:
    return Path(arguments["path"]).read_text(encoding="utf-8")


def chat(create: Any, question: str) -> str:
    """Chat completions: a stream with a call, then the answer."""
    tools = [{"type": "function", "function": {"name": "read_file", "description": ABOUT, "parameters": SCHEMA}}]
    messages: list[Any] = [{"role": "user", "content": question}]
    calls: dict[int, dict[str, str]] = {}
    for chunk in create(messages=messages, tools=tools, stream=True):
        for call in (chunk.choices[0].delta.tool_calls or []) if chunk.choices else []:
            found = calls.setdefault(call.index, {"id": "", "name": "", "arguments": ""})
            found["id"] = call.id or found["id"]
            found["name"] = call.function.name or found["name"]
            found["arguments"] += call.function.arguments or ""
    (call,) = calls.values()
    function = {"name": call["name"], "arguments": call["arguments"]}
    messages.append({"role": "assistant", "tool_calls": [{"id": call["id"], "type": "function", "function": function}]})
    result = read(json.loads(call["arguments"]))
    messages.append({"role": "tool", "tool_call_id": call["id"], "content": result})
    answer = create(messages=messages, tools=tools)
    return str(answer.choices[0].message.content)


def with_openai(address: str, key: str, question: str) -> str:
    from openai import OpenAI  # noqa: PLC0415  each library is only there if it was installed

    client = OpenAI(base_url=f"{address}/v1", api_key=key)
    return chat(lambda **asked: client.chat.completions.create(model=MODEL, **asked), question)


def with_responses(address: str, key: str, question: str) -> str:
    from openai import OpenAI  # noqa: PLC0415

    client = OpenAI(base_url=f"{address}/v1", api_key=key)
    tools: Any = [{"type": "function", "name": "read_file", "description": ABOUT, "parameters": SCHEMA}]
    items: list[Any] = [{"role": "user", "content": question}]
    with client.responses.stream(model=MODEL, input=items, tools=tools, store=False) as stream:
        for _ in stream:
            pass
        first = stream.get_final_response()
    items += first.output
    for item in first.output:
        if item.type == "function_call":
            result = read(json.loads(item.arguments))
            items.append({"type": "function_call_output", "call_id": item.call_id, "output": result})
    return str(client.responses.create(model=MODEL, input=items, tools=tools, store=False).output_text)


def with_anthropic(address: str, key: str, question: str) -> str:
    from anthropic import Anthropic  # noqa: PLC0415

    client = Anthropic(base_url=address, auth_token=key, api_key=None)
    tools: Any = [{"name": "read_file", "description": ABOUT, "input_schema": SCHEMA}]
    messages: list[Any] = [{"role": "user", "content": question}]
    with client.messages.stream(model=MODEL, max_tokens=1000, messages=messages, tools=tools) as stream:
        first = stream.get_final_message()
    messages.append({"role": "assistant", "content": first.content})
    call = next(block for block in first.content if block.type == "tool_use")
    result = {"type": "tool_result", "tool_use_id": call.id, "content": read(dict(call.input))}
    messages.append({"role": "user", "content": [result]})
    answer = client.messages.create(model=MODEL, max_tokens=1000, messages=messages, tools=tools)
    return "".join(block.text for block in answer.content if block.type == "text")


def with_litellm(address: str, key: str, question: str) -> str:
    import litellm  # type: ignore[import-not-found,unused-ignore]  # noqa: PLC0415

    def create(**asked: Any) -> Any:
        return litellm.completion(model=f"openai/{MODEL}", api_base=f"{address}/v1", api_key=key, **asked)

    return chat(create, question)


WAYS = {"openai": with_openai, "responses": with_responses, "anthropic": with_anthropic, "litellm": with_litellm}

if __name__ == "__main__":
    way, address, key, path = sys.argv[1:]
    print(WAYS[way](address, key, f"Read the file {path} and tell me the word in it."))
