# SPDX-License-Identifier: Apache-2.0
"""The requests that look at the interpreter and run nothing of the user's."""

import json
import sys

from . import debugger
from .encoding import to_json
from .forked import only_in_parent


class Introspection:
    """A part of Kernel, which has shell, the process id and _leave_child()."""

    @only_in_parent
    def complete(self, code, cursor_pos):
        from IPython.core.completer import provisionalcompleter, rectify_completions

        if cursor_pos < 0 or cursor_pos > len(code):
            cursor_pos = len(code)
        with provisionalcompleter():
            found = list(
                rectify_completions(code, self.shell.Completer.completions(code, cursor_pos))
            )
        start = found[0].start if found else cursor_pos
        end = found[0].end if found else cursor_pos
        types = [
            dict(start=item.start, end=item.end, text=item.text, type=item.type,
                 signature=item.signature)
            for item in found
        ]
        return to_json({
            "status": "ok",
            "matches": [item.text for item in found],
            "cursor_start": start,
            "cursor_end": end,
            "metadata": {"_jupyter_types_experimental": types},
        })

    @only_in_parent
    def inspect(self, code, cursor_pos, detail_level):
        from IPython.utils.tokenutil import token_at_cursor

        if cursor_pos < 0 or cursor_pos > len(code):
            cursor_pos = len(code)
        content = {"status": "ok", "found": False, "data": {}, "metadata": {}}
        try:
            name = token_at_cursor(code, cursor_pos)
            bundle = self.shell.object_inspect_mime(name, detail_level=detail_level)
            content.update(found=True, data=bundle)
        except KeyError:
            pass  # No such name: found stays False.
        return to_json(content)

    @only_in_parent
    def is_complete(self, code):
        status, indent = self.shell.input_transformer_manager.check_complete(code)
        content = {"status": status}
        if status == "incomplete":
            content["indent"] = " " * (indent or 0)
        return to_json(content)

    @only_in_parent
    def kernel_info(self):
        from IPython.core import release

        version = "{}.{}.{}".format(*sys.version_info[:3])
        return to_json({
            "status": "ok",
            "implementation": "cellkeep-python",
            "implementation_version": "0.1.0",
            "language_info": {
                "name": "python",
                "version": version,
                "mimetype": "text/x-python",
                "file_extension": ".py",
                "pygments_lexer": "ipython3",
                "codemirror_mode": {"name": "ipython", "version": 3},
                "nbconvert_exporter": "python",
            },
            "banner": f"Python {version} (Cellkeep), IPython {release.version}",
            "help_links": [
                {"text": "Python Reference", "url": f"https://docs.python.org/{version.rpartition('.')[0]}"},
                {"text": "IPython Reference", "url": "https://ipython.org/documentation.html"},
            ],
            # The field `debugger` is the older way to say it, which front ends still look at.
            "debugger": debugger.is_available(),
            "supported_features": ["debugger"] if debugger.is_available() else [],
        })

    @only_in_parent
    def history(self, request):
        request = json.loads(request)
        manager = self.shell.history_manager
        kind = request["hist_access_type"]
        raw, output = request["raw"], request["output"]
        if kind == "tail":
            rows = manager.get_tail(request["n"], raw=raw, output=output, include_latest=True)
        elif kind == "range":
            session = request["session"]
            if session <= 0:
                session += manager.session_number
            rows = manager.get_range(
                session, request["start"], request["stop"] or None, raw=raw, output=output
            )
            # IPython calls the current session 0 in its rows.
            rows = [(number or session, line, text) for number, line, text in rows]
        else:
            rows = manager.search(
                request["pattern"],
                raw=raw,
                output=output,
                n=request["n"],
                unique=request["unique"],
            )
        return to_json({"status": "ok", "history": list(rows)})
