# SPDX-License-Identifier: Apache-2.0
"""Requests become messages of the kernel, and its messages events, one request at a time."""

import base64
import os
import time

import zmq

from .failures import failure, unsupported
from .kernel import Kernel
from .marks import Marks

# Of what kernels may leave unanswered: then there is no answer.
ANSWER_SECONDS = 15
# Of the same while the kernel says that it is busy with it. Below the driver's own bound (kAnswerMax).
BUSY_SECONDS = 50
# Of the idle that follows a reply, and of the busy that follows a comm message.
STATUS_SECONDS = 10
# Without a word of an execution whose reply has come: then its idle is asked after.
QUIET_SECONDS = 2
# Of the mark that follows what a kernel says behind its idle. Longer than a busy machine stands
# still; what the session's own timers compute meanwhile is not waited for.
LATE_SECONDS = 10
# Taken from one channel before requests and the other channels are looked at again: a kernel that
# prints without end can be interrupted.
TURN_MESSAGES = 64
# Of the kernel's end, within the grace that this process has.
END_SECONDS = 1
# Of what a kernel that has ended sent before, on its way here.
LAST_MILLISECONDS = 100
# What ipykernel and its kin take for the end of input.
END_OF_INPUT = "\x04"

_NO_IDLE = (
    "cellkeep: a part of what the kernel sent is lost: it sent more at once than could be read\n"
)
_COMMS = ("comm_open", "comm_msg", "comm_close")


class Unanswered(Exception):
    """The kernel does not answer this request."""


class Ended(Exception):
    """No more requests: the session is over."""


class Bridge:
    def __init__(self, lines, spec):
        self._lines = lines
        self._spec = spec
        self._kernel = None
        self._marks = None
        self._requests = []
        self._asked = None  # msg_id of the request that waits for its reply
        self._reply = None
        self._statuses = set()  # busy, idle of that request
        self._later = None  # msg_id of a request behind that one
        self._later_statuses = set()  # busy, idle of that one
        self._heard = False  # anything on iopub that it has caused
        self._question = None  # the input_request that waits for its answer
        self._interrupted = False

    def run(self):
        info = self._start()
        links = info.get("help_links")
        language = info.get("language_info")
        language = language if isinstance(language, dict) else {}
        self._lines.emit(
            "ready",
            version=str(language.get("version", "")),
            language_info=language,
            banner=str(info.get("banner", "")),
            help_links=links if isinstance(links, list) else [],
        )
        try:
            while True:
                self._answer(self._next_request())
        except Ended:
            self._kernel.stop(END_SECONDS)

    def _start(self):
        self._kernel = Kernel(self._spec)
        info = self._kernel.probe()
        self._marks = Marks(str(info.get("implementation")))
        self._poller = zmq.Poller()
        for one in (
            self._lines.fd,
            self._kernel.ended_fd,
            self._kernel.shell,
            self._kernel.iopub,
            self._kernel.stdin,
            self._kernel.control,
        ):
            self._poller.register(one, zmq.POLLIN)
        return info

    def _next_request(self):
        while not self._requests:
            self._wait(None)
        return self._requests.pop(0)

    def _answer(self, request):
        identity = request.get("id")
        if identity is None:
            return  # An interrupt or an answer that came when what it was for had ended.
        work = getattr(self, "_do_" + request["request"], None)
        try:
            done = work(request) if work else unsupported(request["request"])
        except Unanswered:
            done = unsupported(request["request"])
        self._lines.emit("done", id=identity, **done)

    # --- the requests

    def _do_execute(self, request):
        reply = self._ask(
            "execute_request",
            {
                "code": request["code"],
                "silent": request.get("silent", False),
                "store_history": request.get("store_history", True),
                "user_expressions": request.get("user_expressions", {}),
                "allow_stdin": request.get("allow_stdin", False),
                "stop_on_error": True,
            },
            seconds=None,
        )
        if reply.get("status") == "ok":
            return {
                "status": "ok",
                "payload": _of_type(reply, "payload", list),
                "user_expressions": _of_type(reply, "user_expressions", dict),
            }
        done = failure(reply)
        if self._interrupted and not reply.get("ename"):
            done.update(name="KeyboardInterrupt", message="the cell was interrupted", kind="interrupt")
        return done

    def _do_complete(self, request):
        cursor = request["cursor"]
        reply = self._ask("complete_request", {"code": request["code"], "cursor_pos": cursor})
        if reply.get("status") != "ok":
            return failure(reply)
        return {
            "status": "ok",
            "matches": _of_type(reply, "matches", list),
            "start": reply.get("cursor_start", cursor),
            "end": reply.get("cursor_end", cursor),
            "metadata": _of_type(reply, "metadata", dict),
        }

    def _do_inspect(self, request):
        content = {
            "code": request["code"],
            "cursor_pos": request["cursor"],
            "detail_level": request.get("detail", 0),
        }
        reply = self._ask("inspect_request", content)
        if reply.get("status") != "ok":
            return failure(reply)
        return {
            "status": "ok",
            "found": reply.get("found") is True,
            "data": _of_type(reply, "data", dict),
            "metadata": _of_type(reply, "metadata", dict),
        }

    def _do_is_complete(self, request):
        reply = self._ask("is_complete_request", {"code": request["code"]})
        return {"status": reply.get("status", "unknown"), "indent": str(reply.get("indent", ""))}

    def _do_adopt(self, request):
        """Starts the kernel again with these variables, in this directory. No cell has run yet."""
        if request.get("env") or request.get("directory"):
            os.environ.update(request.get("env", {}))
            if request.get("directory"):
                os.chdir(request["directory"])
            self._kernel.stop(END_SECONDS)
            self._start()
        return {"status": "ok"}

    def _do_message(self, request):
        kind, content = request["type"], request.get("content", {})
        if kind == "comm_info_request" and not content.get("target_name"):
            content = {}  # of every target; an empty name would be a target's
        if kind not in _COMMS:
            return {"status": "ok", "content": self._ask(kind, content)}
        buffers = [base64.b64decode(buffer) for buffer in request.get("buffers", [])]
        self._begin(kind, content, metadata=request.get("metadata"), buffers=buffers)
        # A comm message has no reply: it is done when the kernel is idle again. One that never
        # says that it is busy says nothing of comm messages.
        self._wait_for(lambda: self._statuses, STATUS_SECONDS)
        if "busy" in self._statuses:
            self._wait_for(lambda: "idle" in self._statuses, None)
        self._asked = None
        return {"status": "ok"}

    # --- one message, its reply and its idle

    def _begin(self, kind, content, **more):
        self._reply, self._statuses, self._question = None, set(), None
        self._interrupted = False
        self._asked = self._kernel.send(self._kernel.shell, kind, content, **more)

    def _ask(self, kind, content, seconds=ANSWER_SECONDS):
        """The reply's content, when all that the request has caused is said. Unanswered."""
        self._begin(kind, content)
        self._wait_for(lambda: self._reply is not None, seconds)
        if self._statuses == {"busy"}:
            self._wait_for(lambda: self._reply is not None, BUSY_SECONDS - ANSWER_SECONDS)
        if self._reply is None:
            self._asked = None
            raise Unanswered
        if seconds is None:
            self._wait_for_the_rest()
        else:
            self._wait_for(lambda: "idle" in self._statuses, STATUS_SECONDS)
        self._asked = self._question = None
        return self._reply

    def _wait_for_the_rest(self):
        """All that an execution has said, which may be far behind its reply. Its idle may be among
        what a kernel dropped: what a later request causes on iopub tells that nothing more comes."""
        self._wait_for(lambda: "idle" in self._statuses, QUIET_SECONDS, is_renewed=True)
        if "idle" not in self._statuses:
            self._ask_later("kernel_info_request", {})
            self._wait_for(lambda: "idle" in self._statuses or self._later_statuses, STATUS_SECONDS)
        if "idle" not in self._statuses:
            self._lines.emit("stderr", text=_NO_IDLE)
        elif self._marks.is_needed:
            self._wait_for_the_late()
        self._later = None

    def _wait_for_the_late(self):
        """All that the kernel says behind its idle: what it says next is a mark. What a timer or a task
        says still later comes with what runs then."""
        self._ask_later("execute_request", self._marks.request())
        self._wait_for(lambda: self._marks.is_heard, LATE_SECONDS)

    def _ask_later(self, kind, content):
        self._later_statuses = set()
        self._later = self._kernel.send(self._kernel.shell, kind, content)

    def _wait_for(self, is_so, seconds, is_renewed=False):
        """Until it is so, or the time is over, which begins anew with whatever the request causes if
        it is renewed. Interrupts and answers reach the kernel meanwhile."""
        deadline = None if seconds is None else time.monotonic() + seconds
        while not is_so():
            if is_renewed and self._heard:
                self._heard = False
                deadline = time.monotonic() + seconds
            if deadline is not None and time.monotonic() >= deadline:
                return
            self._wait(deadline)
            while self._requests and "id" not in self._requests[0]:
                self._pass_on(self._requests.pop(0))

    def _pass_on(self, request):
        if request["request"] == "interrupt":
            self._question = None
            self._interrupted = True
            self._kernel.interrupt()
        elif request["request"] == "input" and self._question is not None:
            value = END_OF_INPUT if request.get("eof") else request.get("value", "")
            self._kernel.send(
                self._kernel.stdin, "input_reply", {"value": value}, parent=self._question
            )
            self._question = None

    # --- what comes

    def _wait(self, deadline):
        """Until something has come, or the time is over."""
        left = None if deadline is None else max(0, deadline - time.monotonic()) * 1000
        ready = dict(self._poller.poll(left))
        if self._lines.fd in ready:
            requests = self._lines.read()
            if requests is None:
                raise Ended
            self._requests += requests
        kernel = self._kernel
        if kernel.iopub in ready:
            self._take(kernel.iopub, self._on_iopub)
        if kernel.shell in ready:
            self._take(kernel.shell, self._on_reply)
        if kernel.control in ready:
            self._take(kernel.control, _ignore)
        if kernel.stdin in ready:
            self._take(kernel.stdin, self._on_question)
        if kernel.ended_fd in ready:
            # What it said last was sent before it ended.
            while kernel.iopub.poll(LAST_MILLISECONDS):
                self._take(kernel.iopub, self._on_iopub)
            kernel.end_as_it_did()

    def _take(self, one, handle):
        """Hands over what there is, up to a turn's worth."""
        for _ in range(TURN_MESSAGES):
            try:
                message = self._kernel.receive(one)
            except zmq.Again:
                return
            if message is not None:
                handle(message)

    def _on_reply(self, message):
        if message.parent == self._asked:
            self._reply = message.content

    def _on_question(self, message):
        if message.type != "input_request" or message.parent != self._asked:
            return
        self._question = message.header
        self._lines.emit(
            "input",
            prompt=str(message.content.get("prompt", "")),
            password=message.content.get("password") is True,
        )

    def _on_iopub(self, message):
        kind, content = message.type, message.content
        self._heard = self._heard or message.parent == self._asked
        if kind == "status":
            if message.parent == self._asked:
                self._statuses.add(content.get("execution_state"))
            elif message.parent == self._later:
                self._later_statuses.add(content.get("execution_state"))
        elif kind == "stream":
            name = "stderr" if content.get("name") == "stderr" else "stdout"
            text = self._marks.without(str(content.get("text", "")))
            if text:
                self._lines.emit(name, text=text)
        elif kind in ("execute_input", "error", "iopub_welcome", "shutdown_reply"):
            pass  # The session's kernel sends these itself, or no client needs them.
        elif kind == "execute_result" and not message.buffers:
            self._lines.emit(
                "result",
                data=_of_type(content, "data", dict),
                metadata=_of_type(content, "metadata", dict),
            )
        elif kind in ("display_data", "update_display_data") and not message.buffers:
            self._show(content, kind == "update_display_data")
        elif kind == "clear_output":
            self._lines.emit("clear", wait=content.get("wait") is True)
        else:
            self._lines.emit(
                "message",
                type=kind,
                content=content,
                metadata=message.metadata,
                buffers=[base64.b64encode(buffer).decode("ascii") for buffer in message.buffers],
            )

    def _show(self, content, is_update):
        event = {
            "data": _of_type(content, "data", dict),
            "metadata": _of_type(content, "metadata", dict),
        }
        display_id = _of_type(content, "transient", dict).get("display_id")
        if isinstance(display_id, str) and display_id:
            event.update(display_id=display_id, update=is_update)
        self._lines.emit("display", **event)


def _ignore(_message):
    pass


def _of_type(content, name, kind):
    value = content.get(name)
    return value if isinstance(value, kind) else kind()
