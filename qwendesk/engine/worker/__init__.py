"""The engine worker process. Only modules in this package import llama_cpp.

A worker's turn
---------------
1. Render. The model's own chat template runs in jinja2's immutable sandbox with every message's text replaced by a
   placeholder. Each placeholder must come out at most once and in order.
2. Tokenise. The template's own text is cut at control tokens. Each run between two of them, template and message text
   joined, is tokenised without special tokens; a literal such as `</think>` in a message is split after its first
   character. So ordinary chats get exactly the ids of the rendered text, and typed control tokens stay characters.
3. Reuse. Tokens and pictures (by the hash of their pixels) make a list of items. Its longest common prefix with what
   memory holds decides where to roll back to: the nearest checkpoint of the recurrent state (ADR 004). If the last
   request was of another chat, its state is copied first, and the state that has most of this prompt is taken back,
   from RAM or from a file (ADR 016).
4. Prefill the rest (what `chat/warmer.py` had processed ahead by `worker/generate.py` is in memory already) in pieces
   of one evaluation batch: each is a chance to cancel and a `PromptProgress`.
5. Decode. Sample, with drafts from several rows of one batch (ADR 017), split reasoning from answer by token id, hold
   back half characters and half stop texts, send `Delta`. The thinking budget, "Answer now", a model that ends its text
   while it reasons and reasoning that repeats itself (`repetition.py`) end the reasoning by writing the family's
   closing text into it; an answer that repeats itself stops with the reason "repetition".
   With tools in the request, the token `<tool_call>` begins a call (`writer.py`), also inside the reasoning, which it
   ends. Its tokens follow a grammar made of the tools' schemas (`call_grammar.py`), its arguments are sent as JSON
   while they are written, and `call_parser.py` also reads the whole call, damaged or not. The answer then ends with the
   reason "tool_calls".
6. Finish with the stop reason and the figures: tokens reused and processed again (and why, if it was needless), times,
   tokens of reasoning and answer.

A cancelled answer stops between two tokens; a decode that takes longer is aborted in C. While a picture is encoded it
cannot be stopped; that ends first. A request that is cancelled while it waits is taken out of the queue. If a cancelled
load or answer makes no progress (`engine/client.py`), the client kills the worker; a stalled one is killed at once.

A grammar that could crash or hold the engine is refused before it is made: `core/grammar_bounds.py` counts brackets,
repetitions written out and ways to go on, in time linear in the text, for grammars of others and for those made of
schemas (`TokenGrammar` checks each). One that takes more than 10 s and half of an answer's time ends the answer, and
one call that takes more than 10 s ends the process (`sampling.py`), because nothing can interrupt it.

Counts (`Measure`) are served between two batches of a prompt and between two tokens. A request that does not fit into
one line of the protocol is refused by the client; a line the worker cannot decode is answered under the id it begins
with.
"""
