# SPDX-License-Identifier: Apache-2.0
"""The loop of a language driver that is written in Python.

A driver is a subclass of Driver that overrides what its language can do, and serve(). README.md
beside this file describes the lines that the loop reads and writes. The standard library only, so
that every environment's Python runs it.

    class Shout(cellkeep_driver.Driver):
        version = "1.0"

        def execute(self, code):
            return code.upper()

    cellkeep_driver.serve(Shout())
"""

import json
import os
import select
import signal
import sys
import threading
import traceback

REQUESTS_FD = 3
EVENTS_FD = 4
# Longer text becomes several events.
TEXT_MAX = 256 * 1024
READ_BYTES = 64 * 1024


class CodeError(Exception):
    """The submitted code is at fault: what a client sees of it, and nothing of the driver's own.

    line and column are 1-based in the submitted code; kind is "syntax", "runtime", "import", …
    """

    def __init__(self, name, message, *, line=None, column=None, kind="runtime", traceback=None):
        super().__init__(f"{name}: {message}")
        self.answer = {
            "status": "error",
            "name": name,
            "message": message,
            "traceback": traceback or [f"{name}: {message}"],
            "kind": kind,
        }
        if line is not None:
            self.answer["line"] = line
        if column is not None:
            self.answer["column"] = column


class Driver:
    """What a language overrides. All methods but the output ones are called by serve() only."""

    version = ""
    banner = ""
    # Merged over the language_info of kernel.json.
    language_info = {}
    # False: interrupts do not raise; interrupt_fd becomes readable, and take_interrupt() tells.
    interrupts_raise = True

    # The request that is being answered.
    request = {}
    # Merged into the answer of the running execution: {"exit_code": 1}, {"payload": […]}.
    answer = {}

    # --- what a language does ---

    def execute(self, code):
        """Runs code. Returns its value: None, text, or {mime: data}.

        Raises CodeError for what is wrong with the code. Any other exception is reported with its
        Python traceback. An interrupt raises KeyboardInterrupt out of it.
        """
        raise NotImplementedError("execute")

    def complete(self, code, cursor):
        """Returns (matches, start, end) or (matches, start, end, types); positions in code points."""
        raise NotImplementedError("complete")

    def inspect(self, code, cursor, detail):
        """Returns text, {mime: data}, or None if there is nothing at the cursor."""
        raise NotImplementedError("inspect")

    def is_complete(self, code):
        """Returns "complete", "incomplete", "invalid" or "unknown", or ("incomplete", indent)."""
        raise NotImplementedError("is_complete")

    def adopt(self, env, directory):
        """A session takes this process: sets its variables and its directory ("": stay)."""
        os.environ.update(env)
        if directory:
            os.chdir(directory)

    def message(self, request):
        """A message request (kernel.json "messages"). Returns the fields of its done event."""
        raise NotImplementedError("message")

    def end(self):
        """Called once, when the session is over."""

    # --- output; from any thread ---

    def stdout(self, text):
        self._stream("stdout", text)

    def stderr(self, text):
        self._stream("stderr", text)

    def display(self, data, metadata=None, display_id=None, update=False):
        event = {"event": "display", "data": _bundle(data), "metadata": metadata or {}}
        if display_id is not None:
            event["display_id"] = display_id
        if update:
            event["update"] = True
        self.emit(event)

    def result(self, data, metadata=None):
        self.emit({"event": "result", "data": _bundle(data), "metadata": metadata or {}})

    def clear(self, wait=False):
        self.emit({"event": "clear", "wait": wait})

    def input(self, prompt="", password=False):
        """Asks the client. EOFError: it has no more input, or may not be asked.

        An interrupt raises KeyboardInterrupt, also where interrupts_raise is False.
        """
        if not self.request.get("allow_stdin", False):
            raise EOFError("this client does not answer questions")
        self.emit({"event": "input", "prompt": prompt, "password": password})
        self._loop.wait_for_answer()
        answer = self._loop.next_request()
        if answer is None or answer.get("request") != "input" or answer.get("eof"):
            raise EOFError("no more input")
        return answer.get("value", "")

    def interrupt_fd(self):
        """Readable when take_interrupt() may have something to tell."""
        return self._loop.wake_fd

    def take_interrupt(self):
        """Whether an interrupt has come since the last call."""
        return self._loop.take_interrupt()

    def emit(self, event):
        """One event line, whole or not at all. ValueError: the event is no JSON."""
        self._loop.emit(event)

    # --- set by serve() ---

    _loop = None

    def _stream(self, name, text):
        for start in range(0, len(text), TEXT_MAX):
            self.emit({"event": name, "text": text[start : start + TEXT_MAX]})


def serve(driver):
    """Answers requests until there are no more; then the driver's end(). Call it once."""
    loop = _Loop(driver)
    driver._loop = loop
    loop.run()


def _keep_pipes():
    """Programs that the driver starts must not hold the pipes open."""
    for fd in (REQUESTS_FD, EVENTS_FD):
        try:
            os.set_inheritable(fd, False)
        except OSError:
            pass  # It is no driver that imports this module.


_keep_pipes()


def _bundle(data):
    return {"text/plain": data} if isinstance(data, str) else data


class _Loop:
    def __init__(self, driver):
        self._driver = driver
        self._requests = REQUESTS_FD
        self._events = EVENTS_FD
        self._lines = []
        self._rest = b""
        self._writing = threading.RLock()
        self._main_writes = False
        self._executing = False
        self._interrupted = False
        self.wake_fd = None

    def run(self):
        os.register_at_fork(after_in_child=self._leave_to_parent)
        if not self._driver.interrupts_raise:
            self.wake_fd, wake = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
            signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
        signal.signal(signal.SIGINT, self._on_interrupt)
        # A kernel that is gone is noticed by reading, not by dying of a write.
        signal.signal(signal.SIGPIPE, signal.SIG_IGN)
        driver = self._driver
        ready = {"event": "ready", "version": driver.version}
        if driver.banner:
            ready["banner"] = driver.banner
        if driver.language_info:
            ready["language_info"] = driver.language_info
        self.emit(ready)
        while (request := self.next_request()) is not None:
            if "id" in request:
                self._answer(request)
        driver.end()

    def wait_for_answer(self):
        """Where interrupts do not raise, one that comes now does: there is nothing else to end."""
        if self._driver.interrupts_raise or self._lines:
            return
        poll = select.poll()
        poll.register(self._requests, select.POLLIN)
        poll.register(self.wake_fd, select.POLLIN)
        while self._requests not in {fd for fd, _ in poll.poll()}:
            if self.take_interrupt():
                raise KeyboardInterrupt

    def next_request(self):
        """The next line, or None: the kernel is gone."""
        while not self._lines:
            chunk = os.read(self._requests, READ_BYTES)
            if not chunk:
                return None
            *lines, self._rest = (self._rest + chunk).split(b"\n")
            self._lines.extend(lines)
        return json.loads(self._lines.pop(0))

    def emit(self, event):
        text = json.dumps(event, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
        # A lone surrogate is no UTF-8.
        line = memoryview(text.encode("utf-8", "replace") + b"\n")
        is_main = threading.current_thread() is threading.main_thread()
        if is_main:
            self._main_writes = True
        try:
            with self._writing:
                while line:
                    line = line[os.write(self._events, line) :]
        except BrokenPipeError:
            pass  # The kernel is gone; next_request() will say so.
        finally:
            if is_main:
                self._main_writes = False
        if is_main and self._executing and self._interrupted and self._driver.interrupts_raise:
            self._interrupted = False
            raise KeyboardInterrupt

    def take_interrupt(self):
        try:
            while os.read(self.wake_fd, READ_BYTES):
                pass
        except BlockingIOError:
            pass
        # Read after the pipe: what comes now wakes up again.
        taken, self._interrupted = self._interrupted, False
        return taken

    def _on_interrupt(self, _signal, _frame):
        # Half a line on the pipe would be the end of the kernel: emit() raises after the line. And
        # an interrupt that is here before its cell waits for it.
        if self._executing and not self._main_writes and self._driver.interrupts_raise:
            raise KeyboardInterrupt
        self._interrupted = True

    def _leave_to_parent(self):
        null = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
        os.dup2(null, self._requests, inheritable=False)
        os.dup2(null, self._events, inheritable=False)
        os.close(null)

    def _answer(self, request):
        driver = self._driver
        driver.request = request
        driver.answer = {}
        try:
            answer = self._work(request)
        except KeyboardInterrupt:
            self._executing = False
            answer = _failure("KeyboardInterrupt", "the cell was interrupted", "interrupt")
            answer.update(driver.answer)
        self.emit({"event": "done", "id": request["id"], **answer})

    def _work(self, request):
        kind = request["request"]
        if kind not in ("execute", "message"):
            # Whatever came too late for its cell does not hit the next one (README.md, "Interrupts").
            self._interrupted = False
        try:
            return getattr(self, "_" + kind, self._unknown)(request)
        except CodeError as error:
            return {**error.answer, **self._driver.answer}
        except NotImplementedError as error:
            return _failure("NotImplementedError", str(error), "unsupported")
        except Exception as error:  # The loop goes on whatever the language's code raises.
            lines = traceback.format_exc().splitlines()
            answer = _failure(type(error).__name__, str(error), "runtime", lines)
            return {**answer, **self._driver.answer}

    def _interruptible(self, function, argument):
        try:
            self._executing = True
            if self._interrupted and self._driver.interrupts_raise:
                self._interrupted = False
                raise KeyboardInterrupt
            return function(argument)
        finally:
            self._executing = False

    def _execute(self, request):
        value = self._interruptible(self._driver.execute, request["code"])
        if value is not None and not request.get("silent", False):
            self._driver.result(value)
        return {"status": "ok", **self._driver.answer}

    def _message(self, request):
        answer = self._interruptible(self._driver.message, request)
        return {"status": "ok", **(answer or {})}

    def _complete(self, request):
        matches, start, end, *types = self._driver.complete(request["code"], request["cursor"])
        answer = {"status": "ok", "matches": list(matches), "start": start, "end": end}
        if types:
            answer["types"] = types[0]
        return answer

    def _inspect(self, request):
        data = self._driver.inspect(request["code"], request["cursor"], request.get("detail", 0))
        if data is None:
            return {"status": "ok", "found": False, "data": {}}
        return {"status": "ok", "found": True, "data": _bundle(data)}

    def _is_complete(self, request):
        status = self._driver.is_complete(request["code"])
        status, indent = (status, "") if isinstance(status, str) else status
        return {"status": status, "indent": indent}

    def _adopt(self, request):
        self._driver.adopt(request.get("env", {}), request.get("directory", ""))
        return {"status": "ok"}

    def _unknown(self, request):
        return _failure("NotImplementedError", f"no request {request['request']}", "unsupported")


def _failure(name, message, kind, lines=None):
    return {
        "status": "error",
        "name": name,
        "message": message,
        "traceback": lines or [f"{name}: {message}"],
        "kind": kind,
    }


if __name__ == "__main__":
    sys.exit("cellkeep_driver is a module: a driver imports it and calls serve()")
