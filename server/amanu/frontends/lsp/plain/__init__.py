"""Amanu in an editor that has no plugin of ours: prompts, chat, progress, questions and review by standard LSP alone.

Read `client.py` first. `change_marks.py`, `review.py`, `transcript.py` and `patch_file.py` are pure; `editor.py` is the
one place that sends to the client.
"""
