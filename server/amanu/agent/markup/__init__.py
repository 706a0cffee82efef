"""Thoughts and calls that a model wrote as text, because its server did not read them: told from prose, and put where
they belong.

`templates.py` is the table: how each family of models writes a call, and where it marks its thoughts. `shapes.py` and
`tag_shapes.py` read what stands between the marks, `text_stream.py` holds back what may become markup, `quotes.py`
knows what the model has read and may only be repeating, and `model.py` joins them into a `Model`.
"""
