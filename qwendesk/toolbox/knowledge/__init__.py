"""Folders as knowledge: an index of their texts on disk, searched by the model, with citations of the places."""
