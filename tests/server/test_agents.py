"""Two agents that call tools take turns at a real server: none of what they sent or got is processed again."""

from typing import Any

from bench.served import served
from bench.two_agents import post
from qwendesk.core import paths

CITY = {"type": "object", "properties": {"city": {"enum": ["Paris", "Rome"]}}, "required": ["city"]}
TOOL = {"type": "function", "function": {"name": "get_weather", "parameters": CITY}}


class Agent:
    """Calls the tool in every turn, and drops the reasoning of each answer, as OpenAI's clients do."""

    def __init__(self, url: str, key: str, name: str) -> None:
        self._url, self._key = f"{url}/v1/chat/completions", key
        system = f"You are {name}. " + "Use the tools and be brief. " * 80
        self._messages: list[Any] = [
            {"role": "system", "content": system},
            {"role": "user", "content": "What is the weather?"},
        ]
        self._seen_tokens = 0
        self.has_thought = False

    def take_turn(self) -> tuple[int, int]:
        """Return how many tokens of the prompt were processed, and how many of them were new."""
        body = {
            "messages": self._messages, "tools": [TOOL], "tool_choice": "required", "parallel_tool_calls": False,
            "temperature": 0, "max_tokens": 300,
        }  # fmt: skip
        answer = post(self._url, self._key, body)
        message, usage = answer["choices"][0]["message"], answer["usage"]
        self.has_thought = bool(message.pop("reasoning_content", ""))
        result = {"role": "tool", "tool_call_id": message["tool_calls"][0]["id"], "content": "18 degrees and sunny."}
        self._messages += [message, result]
        new = usage["prompt_tokens"] - self._seen_tokens
        self._seen_tokens = usage["prompt_tokens"] + usage["completion_tokens"]
        return answer["timings"]["prompt_n"], new


def test_agents_that_alternate_have_only_new_tokens_processed() -> None:
    with served(paths.demo_model(), load=("n_ctx=4096",)) as server:
        agents = [Agent(server.url, server.keys[0], name) for name in ("Anna", "Bert")]
        for agent in agents:
            agent.take_turn()
            assert agent.has_thought
        for _ in range(3):
            for agent in agents:
                processed, new = agent.take_turn()
                assert processed == new
