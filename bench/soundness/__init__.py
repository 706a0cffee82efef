"""No line that is judged to have no effect has one: generated lines are judged, and those run for real and watched.

`python -m bench.soak soundness`; a fixed sample is in `make test`.
"""
