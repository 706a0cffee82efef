"""Amanu in an editor that has no plugin of ours: prompts, chat, progress, questions and review by standard LSP alone.

Read `front.py` first. `marks.py`, `review.py`, `transcript.py` and `patch.py` are pure; `face.py` is the one place that
sends to the client.
"""
