"""Tools that the model can call: what they do, when the user is asked, and what they may touch.

Tools
-----
`chat/tool_rounds.py` and `AnswerGenerator` run the rounds of an answer: the model writes calls, `toolbox/service.py`
runs them, the results are appended as messages, and the model goes on, up to 20 times. What was written before a call,
the calls and their results are the answer's steps (`ToolStep` in `core/messages.py`), stored and shown with it. A call
is checked against its schema, then `toolbox/service.py` decides whether the user is asked (ADR 018). A tool is one
value, `Tool` in `toolbox/tool.py`; those that come with the app are listed in `toolbox/builtin.py`, those of notes in
`notes.py`, and `mcp/tools.py` makes those of MCP servers.

`toolbox/knowledge/` searches the folders of a chat. `folder_indexes.py` keeps one SQLite file for each folder up to
date on a thread (`index_update.py` finds the files and reads what has changed, `index_file.py` has the passages and
their words), `search.py` numbers what it finds for citations, and `folder_access.py` beside it says which files any
tool may touch.

`toolbox/web/` searches and reads pages. `address.py` judges an address before anyone looks it up, then the IP addresses
that a name leads to and the one that was connected to, at each redirect again; `fetcher.py` limits size and time, and
`page_text.py` has the page read in the decoding process. The services that are searched have one interface,
`SearchService`. `toolbox/confinement/` runs a script in bubblewrap: `sandbox.py` says what it sees, `confined_run.py`
which system calls it may not make, watches and ends it, and tries, before Python is offered, that a script with
`resources/sandbox/probes.py` inside can do none of what it must not. There is no such place on Windows yet: a process
in an AppContainer would be one.
"""
