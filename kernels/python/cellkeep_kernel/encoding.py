# SPDX-License-Identifier: Apache-2.0
"""Python values to the JSON texts that messages carry."""

import json
import math
from binascii import b2a_base64

# Mime types whose data are bytes; on the wire they are base64 without line breaks.
_BINARY_TYPES = ("image/png", "image/jpeg", "image/gif", "image/webp", "application/pdf")


def _convert(value):
    """What json cannot encode by itself."""
    if isinstance(value, (bytes, bytearray, memoryview)):
        return b2a_base64(value, newline=False).decode("ascii")
    if hasattr(value, "item") and not hasattr(value, "__len__"):
        return value.item()  # a numpy scalar
    if hasattr(value, "tolist"):
        return value.tolist()
    if isinstance(value, (set, frozenset)) or hasattr(value, "__iter__"):
        return list(value)
    if hasattr(value, "isoformat"):
        return value.isoformat()
    if hasattr(value, "__index__"):
        return value.__index__()
    if hasattr(value, "__float__"):
        return float(value)
    return repr(value)


def _without_nan(value):
    """The same with null for NaN and the infinities, which JSON does not have."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {key: _without_nan(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_without_nan(item) for item in value]
    if isinstance(value, (str, int, bool)) or value is None:
        return value
    return _without_nan(_convert(value))


# Made once: json.dumps would make one for every message.
_encode = json.JSONEncoder(ensure_ascii=False, allow_nan=False, default=_convert).encode


def to_json(value):
    """UTF-8 JSON as bytes; a lone surrogate becomes a question mark."""
    try:
        text = _encode(value)
    except ValueError:
        text = json.dumps(_without_nan(value), ensure_ascii=False, default=_convert)
    return text.encode("utf-8", "replace")


def mime_bundle(data):
    """A copy of a mime bundle whose binary data are one line of base64."""
    bundle = dict(data)
    for mime in _BINARY_TYPES:
        item = bundle.get(mime)
        if isinstance(item, str) and "\n" in item:
            bundle[mime] = item.replace("\n", "")
    return bundle
