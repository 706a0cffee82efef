"""The rungs of `tools/edits/match.py`: each says where `old` could be, and what it must prove before it may say so.

`source` (the file), `place` (an answer) and `put` (the change put onto what is there) first; then the rungs from
strict to tolerant: `folds`, `indent`, `readings`, `elision`, `drift`; `nearest` is what a refusal shows.
"""
