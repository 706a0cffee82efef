"""Protocol values as JSON."""

import json

from amanu_protocol.base import Wire


def to_json(value: Wire) -> bytes:
    """The wire form of a protocol value, UTF-8."""
    try:
        return value.model_dump_json(by_alias=True).encode()
    except ValueError:  # a lone surrogate, which has no UTF-8; JSON can escape it
        return json.dumps(value.model_dump(by_alias=True)).encode()
