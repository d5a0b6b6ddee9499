"""Chats: sending, answering, branches, presets, counting, import and export.

What a chat has of its own
--------------------------
`ChatSettings` go with each chat: system prompt, thinking and its budget, the preset, a JSON schema or a grammar
(`core/grammar_bounds.py` refuses what the engine can't stand; the engine itself finds wrong syntax when the answer is
asked for), what is left out of the context. The user's own presets are in a file that `PresetsService` owns. A chat
takes a copy of a preset's values, so no later change or deletion of it alters how an old chat goes on.
`IncognitoImages` contains the images that must not become files.
"""
