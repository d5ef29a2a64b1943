# SPDX-License-Identifier: Apache-2.0
"""Debugging cells: debug_request in Jupyter's envelope to pydevd in this process (../DEBUGGER.md).

Until the first `initialize` there is no thread and no trace function. From then on the link has a
reading thread, because the main thread may be stopped at a breakpoint, and pydevd has its own.
"""

import _thread
import functools
import importlib.util
import json
import os
import signal
import sys
import threading

from . import dap
from .dap import Failure, argument, response
from .encoding import to_json
from .variables import Values

_FOLDER = os.path.dirname(__file__)
# Commands that would end the process or start another, which is the session's business.
_REFUSED = frozenset(("launch", "terminate", "restart", "terminateThreads", "runInTerminal"))


def _trace_nothing():
    """In this thread. pydevd puts a function that warns in place of sys.settrace."""
    tracing = sys.modules.get("pydevd_tracing")
    (tracing.SetTrace if tracing is not None else sys.settrace)(None)


class _Thread(threading.Thread):
    """A thread that pydevd does not trace, stop or list, and that no signal interrupts."""

    pydev_do_not_trace = True
    is_pydev_daemon_thread = True

    def __init__(self, target, name):
        super().__init__(target=target, name=name, daemon=True)

    def run(self):
        _trace_nothing()
        signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
        super().run()


_found = False


def is_available():
    """What was found once is not looked for again: each process that goes on from another one is asked."""
    global _found
    _found = _found or importlib.util.find_spec("debugpy") is not None
    return _found


class Debugger:
    def __init__(self, shell, cells):
        self._host = None
        self._cells = cells
        # Requests come on the main thread until the link's thread is there; events on a third one.
        self._lock = threading.RLock()
        self._address = None  # pydevd's, once it listens
        self._folder = None  # debugpy's, to know its frames
        self._client = None  # while a debugger is attached
        self._parent = b"{}"  # header of the last request
        self._breakpoints = {}
        self._stopped = set()
        # SIGINT has fallen on the main thread while it was inside the debugger, and is still due.
        self._interrupt_due = False
        self._going_on = False
        self._own = {
            "initialize": self._initialize,
            "attach": self._attach,
            "disconnect": self._disconnect,
            "debugInfo": self._debug_info,
            "dumpCell": self._dump_cell,
            "source": self._source,
            "setBreakpoints": self._set_breakpoints,
            "stackTrace": self._stack_trace,
            "modules": self._modules,
        }
        values = Values(shell, self._forward, lambda: bool(self._stopped))
        self._own.update(values.requests)

    def begin(self, host):
        self._host = host

    # --- in and out ---

    def receive(self, header, content):
        """A debug_request: busy, its reply (perhaps later) and idle."""
        self._publish("status", header, {"execution_state": "busy"})
        self._parent = header
        reply = functools.partial(self._reply, header)
        request = None
        try:
            request = json.loads(content)
            dap.check_request(request)
            with self._lock:
                self._perform(request, lambda answer: reply(self._answer_to(request, answer)))
        except Exception as error:
            reply(response(request, success=False, message=self._describe(error)))

    def _perform(self, request, reply):
        command = request["command"]
        if command in _REFUSED:
            raise Failure(f"{command} is not supported: the session owns its process")
        perform = self._own.get(command)
        if perform is not None:
            perform(request, reply)
        else:
            self._forward(request, reply)

    def _forward(self, request, reply, change=None):
        """Ask pydevd. change(response) may alter its response."""
        if self._client is None:
            raise Failure("the debugger is not started")

        def take(answer):
            if change is not None and answer.get("success"):
                try:
                    change(answer)
                except Exception as error:
                    answer = response(request, success=False, message=self._describe(error))
            reply(answer)

        self._client.send(request["command"], request.get("arguments") or {}, take)

    @staticmethod
    def _describe(error):
        return str(error) if isinstance(error, Failure) else f"{type(error).__name__}: {error}"

    @staticmethod
    def _answer_to(request, answer):
        answer["request_seq"], answer["command"] = request["seq"], request["command"]
        return answer

    def _reply(self, header, answer):
        try:
            self._host.send("control", "debug_reply", header, to_json(answer))
        except ValueError as error:  # Past a limit of the wire.
            answer.update(success=False, message=str(error), body={})
            self._host.send("control", "debug_reply", header, to_json(answer))
        self._publish("status", header, {"execution_state": "idle"})

    def _publish(self, kind, header, content):
        try:
            self._host.send("iopub", kind, header, to_json(content))
        except ValueError as error:
            print(f"cellkeep kernel: {kind}: {error}", file=sys.__stderr__)

    def _on_event(self, event):
        body = event.get("body") or {}
        kind = event.get("event")
        if kind == "stopped":
            self._going_on = False
            if isinstance(body.get("threadId"), int):
                self._stopped.add(body["threadId"])
        elif kind == "continued":
            if body.get("allThreadsContinued", True):
                self._stopped.clear()
            else:
                self._stopped.discard(body.get("threadId"))
        self._publish("debug_event", self._parent, event)
        if kind == "stopped" and self._interrupt_due:
            self._go_on()

    # --- the life of a debugging session ---

    def _initialize(self, request, reply):
        if self._client is None:
            if self._address is None:
                self._listen()
            self._client = dap.Client(self._address, self._on_event)
            _Thread(self._client.serve, "cellkeep-debug-events").start()
        self._forward(request, reply)

    def _listen(self):
        """Once per process and on the main thread, whose frames pydevd then traces."""
        # pydevd warns on stderr that frozen modules of the standard library cannot be debugged.
        name = "PYDEVD_DISABLE_FILE_VALIDATION"
        before = os.environ.get(name)
        os.environ[name] = "1"
        # pydevd's threads inherit the mask: SIGINT is for the main thread.
        mask = signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
        try:
            import debugpy

            self._folder = os.path.dirname(debugpy.__file__) + os.sep
            # In this process, without debugpy's adapter: one process less, and its threads are known.
            self._address = debugpy.listen(("127.0.0.1", 0), in_process_debug_adapter=True)
            self._host.share_link()
            _Thread(self._read_link, "cellkeep-debug-link").start()
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)
            if before is None:
                del os.environ[name]
            else:
                os.environ[name] = before

    def _read_link(self):
        while True:
            request = self._host.next_debug_request()
            if request is None:
                break
            self.receive(*request)
        # No client is left that could let a stopped cell go on, and the kernel ends after it.
        client = self._client
        if client is not None:
            try:
                client.send("disconnect", {}, lambda _answer: None)
            except Failure:
                pass  # The debugger has gone, and with it what held the thread.

    def _attach(self, request, reply):
        arguments = dict(request.get("arguments") or {})
        rules = arguments.get("rules")
        # A step at a cell's end must not show the kernel's own frames.
        own = [{"path": os.path.join(_FOLDER, "**"), "include": False}]
        arguments["rules"] = own + (rules if isinstance(rules, list) else [])
        # Output goes to the cell; pydevd would take it for its console.
        arguments["redirectOutput"] = False
        self._forward(dict(request, arguments=arguments), reply)

    def _disconnect(self, request, reply):
        client = self._client
        if client is None:
            raise Failure("the debugger is not started")

        def end(answer):
            client.close()
            reply(answer)

        client.send("disconnect", {"restart": False, "terminateDebuggee": False}, end)
        self._client = None
        self._breakpoints.clear()
        self._stopped.clear()

    # --- Jupyter's requests ---

    def _debug_info(self, request, reply):
        from _cellkeep_host import CELL_HASH_SEED

        reply(response(request, body={
            "isStarted": self._client is not None,
            "hashMethod": "Murmur2",
            "hashSeed": CELL_HASH_SEED,
            "tmpFilePrefix": self._cells.prefix,
            "tmpFileSuffix": ".py",
            "breakpoints": [
                {"source": source, "breakpoints": list(items)}
                for source, items in self._breakpoints.items()
            ],
            "stoppedThreads": sorted(self._stopped),
            "richRendering": True,
            "exceptionPaths": ["Python Exceptions"],
            "copyToGlobals": True,
        }))

    def _dump_cell(self, request, reply):
        path = self._cells.write(argument(request, "code", str))
        reply(response(request, body={"sourcePath": path}))

    def _source(self, request, reply):
        path = argument(request, "source", dict).get("path")
        if not isinstance(path, str):
            raise Failure("source: the path is missing")
        try:
            with open(path, encoding="utf-8") as file:
                reply(response(request, body={"content": file.read()}))
        except (OSError, ValueError) as error:
            raise Failure(f"the source is not available: {error}") from error

    def _set_breakpoints(self, request, reply):
        path = argument(request, "source", dict).get("path")
        wanted = (request.get("arguments") or {}).get("breakpoints") or []
        if not isinstance(path, str) or not isinstance(wanted, list):
            raise Failure("setBreakpoints: the path is missing or breakpoints is no list")
        if not all(isinstance(item, dict) and isinstance(item.get("line"), int) for item in wanted):
            raise Failure("setBreakpoints: a breakpoint has no line")

        def remember(_answer):
            self._breakpoints[path] = wanted
            if not wanted:
                del self._breakpoints[path]

        self._forward(request, reply, remember)

    def _stack_trace(self, request, reply):
        def cut(answer):
            """Without the kernel's frames below the cell's."""
            frames = answer["body"].get("stackFrames", [])
            last = None
            for index, frame in enumerate(frames):
                if str((frame.get("source") or {}).get("path", "")).startswith(self._cells.prefix):
                    last = index
            if last is not None:
                answer["body"]["stackFrames"] = frames[: last + 1]
                answer["body"]["totalFrames"] = last + 1

        self._forward(request, reply, cut)

    def _modules(self, request, reply):
        arguments = request.get("arguments") or {}
        start, count = arguments.get("startModule"), arguments.get("moduleCount")
        start = start if isinstance(start, int) and start > 0 else 0
        modules = list(sys.modules.items())
        stop = start + count if isinstance(count, int) and count > 0 else len(modules)
        found = []
        for number, (name, module) in enumerate(modules[start:stop], start):
            path = getattr(getattr(module, "__spec__", None), "origin", None)
            if isinstance(path, str) and path.endswith(".py"):
                found.append({"id": number, "name": name, "path": path})
        reply(response(request, body={"modules": found, "totalModules": len(modules)}))

    # --- what the kernel asks ---

    @property
    def was_started(self):
        """Its threads and its share of the link stay until the process ends."""
        return self._address is not None

    def before_cell(self):
        self.interrupted()
        if self._address is None:
            return
        if self._client is None:
            _trace_nothing()  # pydevd leaves its function behind; every call would pay for it.
        elif sys.gettrace() is None:
            # A second debugger has come; or an exception inside the trace function has made CPython
            # drop it (sys.settrace).
            from _pydevd_bundle.pydevd_constants import get_global_debugger

            get_global_debugger().enable_tracing()

    def holds(self, frame):
        """Whether the main thread is inside the debugger, stopped or about to be, and not in an
        expression that the debugger evaluates for its user."""
        while self._folder is not None and frame is not None:
            file_name = frame.f_code.co_filename
            if file_name.startswith(self._folder):
                return True
            if file_name != threading.__file__:
                break
            frame = frame.f_back
        return False

    def interrupt(self):
        """SIGINT while holds(): let the cell go on, and try again at one of the next instructions.

        Before a stop that pydevd has not reported yet this is too early; _on_event then does it.
        """
        self._interrupt_due = True
        if self._stopped:
            self._go_on()
        _thread.interrupt_main()

    def _go_on(self):
        client = self._client
        if self._going_on or client is None:
            return
        self._going_on = True
        try:
            client.send("continue", {"threadId": min(self._stopped)}, lambda _answer: None)
        except Failure:
            pass  # The debugger has gone, and with it what held the thread.

    def interrupted(self):
        """The interrupt has reached the cell, or the cell has ended."""
        self._interrupt_due = self._going_on = False

    def leave_to_child(self):
        """For a forked child: no client could let it go on after a breakpoint."""
        _trace_nothing()
        threading.settrace(None)
