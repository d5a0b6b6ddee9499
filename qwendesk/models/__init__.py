"""Model files: the local library, search on Hugging Face, offers for this PC, downloads, checks and fixes.

A verdict on a model file, from the bytes to the chip
-----------------------------------------------------
1. `hub/library.py` finds the file in one of the folders of `hub/library_places.py`, and `hub/header_cache.py` reads its
   header with `hub/gguf.py`.
2. `models/checks.py` decides when it is checked. `models/file_checker.py` gathers what is known of it
   (`hub/evidence.py`: header, name, origin, hashes, neighbours) and asks `hub/verify.py`, which has the rules about
   bytes and use (`verify_version.py`: those about versions), against the catalog.
3. The findings become one state with one button in `models/model_state.py`; `models/fixes.py` does what the button
   says.
4. `models/model_list.py` joins library, checks and downloads into entries, and `models/view/model_row.py` shows one.
   `qwendesk verify` (`cli/verify.py`) prints the same findings.

A look at the model folders
---------------------------
The system reports changes in the folders that the last scan read (`models/view/folder_watcher.py`);
`models/library_watch.py` decides when they are scanned again: after a report, more often while a file still grows, once
a minute for what no system reports, and not at all while the window is hidden.
"""
