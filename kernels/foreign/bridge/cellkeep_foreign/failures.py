# SPDX-License-Identifier: Apache-2.0
"""What an answer says of a request that failed."""

import re

_SYNTAX = {"SyntaxError", "IndentationError", "TabError", "ParseError"}
_COLOURS = re.compile(r"\x1b\[[\d;]*m")
# Where IPython's tracebacks name the cell.
_LINE = re.compile(r"Cell In *\[\d+\], line (\d+)")


def unsupported(request):
    return {
        "status": "error",
        "name": "NotImplementedError",
        "message": f"this kernel does not answer {request}",
        "traceback": [],
        "kind": "unsupported",
    }


def failure(reply):
    """What done says of a reply that is not ok."""
    name = str(reply.get("ename") or ("Aborted" if reply.get("status") == "aborted" else "Error"))
    lines = reply.get("traceback")
    lines = [str(line) for line in lines] if isinstance(lines, list) else []
    answer = {
        "status": "error",
        "name": name,
        "message": str(reply.get("evalue", "")),
        "traceback": lines or [f"{name}: {reply.get('evalue', '')}"],
        "kind": "syntax" if name in _SYNTAX else "runtime",
    }
    places = _LINE.findall(_COLOURS.sub("", "\n".join(lines)))
    if places:
        answer["line"] = int(places[-1])
    return answer

