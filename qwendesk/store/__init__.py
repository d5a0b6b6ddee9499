"""Storage of the user's chats, messages and drafts in one SQLite file, with a folder for attachments.

Attached files
--------------
`store/attachments.py` copies each attached file on a daemon thread of its own, and only the row and the file's final
name go through the single writer. So a network drive that does not answer delays no other save; the app's end waits for
copies that still get further, but not for one that is silent for five seconds.
"""
