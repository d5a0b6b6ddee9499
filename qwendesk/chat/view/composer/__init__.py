"""The composer: text, attachments and controls of a message."""
