"""Reads requests of OpenAI's completions: a text that the model continues, without a chat."""

from qwendesk.server.chat_request import check_n_logprobs, refuse_unsupported
from qwendesk.server.fields import Fields
from qwendesk.server.question import Question
from qwendesk.server.sampling_fields import read_sampling, read_stop_texts


def read_completions_request(body: Fields) -> Question:
    """Return the question. Raise Refused for what is wrong or can't be done."""
    refuse_unsupported(body)
    if body.text("suffix"):
        raise body.refuse("suffix", "suffix can't be used. Send a prompt with the model's own tokens for filling in.")
    if body.flag("echo"):
        raise body.refuse("echo", "The prompt can't be echoed. Leave echo out.")
    body.required("prompt")
    prompts = body.texts("prompt")
    if len(prompts) != 1 or not prompts[0]:
        raise body.refuse("prompt", "prompt must be one text that is not empty.")
    changes = read_sampling(body, "max_tokens", "n_predict") | read_stop_texts(body, "stop")
    return Question(
        prompt=prompts[0],
        model=body.text("model"),
        thinking=False,
        changes=changes,
        n_logprobs=check_n_logprobs(body, "logprobs") if body.has("logprobs") else -1,
        stream=body.flag("stream"),
        include_usage=body.object("stream_options").flag("include_usage"),
    )
