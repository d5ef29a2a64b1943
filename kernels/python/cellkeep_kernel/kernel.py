# SPDX-License-Identifier: Apache-2.0
"""The kernel object that the C++ half calls. Its methods take and return plain values and JSON."""

import asyncio
import builtins
import json
import os
import sys
import time
import warnings

from . import compatibility, debugger, figures, packages, result_data, streams, tools
from .cells import CellFiles
from .copies import Copies
from .encoding import to_json
from .errors import describe, removed_lines
from .forked import only_in_parent
from .introspection import Introspection
from .loop import Runner
from .fast_path import FastPath
from .shell import KernelShell
from .stdin import Stdin


class Kernel(Introspection):
    """Also what get_ipython().kernel is, with the few attributes that libraries look for.

    Made in two steps: what is the same for every session, which a zygote has done for all its forks,
    and begin(), which is this process's own: its host, its loop, its environment.
    """

    #: For send_response(); there is no socket here.
    iopub_socket = None

    def __init__(self):
        from _cellkeep_host import cell_hash

        self.host = self._pid = self.runner = None
        self._flush_scheduled = False
        self._has_expressions = False
        self.silent = False
        sys.argv = [""]
        sys.path.insert(0, "")
        self.cells = CellFiles(cell_hash)
        self.shell = KernelShell.instance(kernel=self)
        self.fast_path = FastPath(self.shell)
        self.debugger = debugger.Debugger(self.shell, self.cells)
        self.copies = Copies(self)
        # sys.exit() is an error of the cell, as in every notebook; the hint speaks of a terminal.
        warnings.filterwarnings("ignore", message="To exit: use")
        self.comm_manager = None
        self._start_comms()
        compatibility.install()

    def begin(self, host):
        self.attach(host)
        os.register_at_fork(after_in_child=self._become_child)

    def attach(self, host):
        self.host = host
        self._pid = os.getpid()
        self.runner = Runner(host)
        self._start_streams()
        figures.prepare(os.environ["CELLKEEP_ENVIRONMENT"])
        packages.offer(os.environ)
        result_data.offer(self.shell.display_formatter)
        self.cells.begin()
        self.shell.history_manager.begin()
        self.debugger.begin(host)
        self.runner.debugger = self.debugger
        self.runner.kernel_code.add(Kernel._run_cell.__code__)
        self.runner.user_code.update(
            function.__code__
            for function in (
                KernelShell.run_code,
                Kernel._run_callbacks,
                Kernel._evaluate,
                Kernel._receive_comm,
            )
        )

    def detach(self):
        """What a zygote has attached to rehearse with."""
        self.runner.close()
        self.host = self._pid = self.runner = self._streams = self._stdin = None
        self.debugger.begin(None)

    def _start_streams(self):
        from _cellkeep_host import Host, TextStream

        host, loop = self.host, self.runner.loop
        OutStream = streams.make_fast(TextStream, Host)
        # Kept: user code may have redirected sys.stdout at the moment of a fork.
        self._streams = (
            OutStream(host, 1, "strict", self._schedule_flush),
            OutStream(host, 2, "backslashreplace", self._schedule_flush),
            sys.__stdout__,
            sys.__stderr__,
        )
        sys.stdout, sys.stderr = self._streams[:2]
        sys.stdin = self._stdin = Stdin(host, loop.wakeup_fd, loop.drain_wakeup)
        builtins.input = self._stdin.input
        tools.begin(host, self._stdin)
        import getpass

        getpass.getpass = self._stdin.getpass

    def _start_comms(self):
        from . import comms

        self.comm_manager = comms.install(self)

    def _schedule_flush(self):
        """Output of background work, while no cell runs."""
        if not self._flush_scheduled:
            self._flush_scheduled = True
            self.runner.call_soon(self._flush_now)

    def _flush_now(self):
        self._flush_scheduled = False
        self.host.flush()

    # --- what libraries use ---

    def get_parent(self, channel=None):
        return {"header": json.loads(self.host.parent_header())}

    @property
    def _parent_header(self):
        return self.get_parent()

    @property
    def execution_count(self):
        return self.shell.execution_count

    def send_response(self, _socket, msg_type, content=None, _ident=None, buffers=None, **_others):
        """ipykernel's way to send a message; the socket, iopub_socket there, is always iopub."""
        sys.stdout.flush()
        sys.stderr.flush()
        self.publish(msg_type, content or {}, buffers=buffers)

    def publish(self, msg_type, content, metadata=None, buffers=None):
        """Send a message on iopub. buffers: objects with memory, of any layout."""
        flat = [memoryview(item) for item in buffers or ()]
        flat = [item if item.contiguous else memoryview(bytes(item)) for item in flat]
        self.host.publish(
            msg_type, to_json(content), to_json(metadata) if metadata else b"{}", flat, False
        )

    def publish_result(self, content, is_last):
        """execute_result. is_last: the cell's own code is done; it goes out with the reply, then."""
        is_last = is_last and self._is_ending()
        self.host.publish("execute_result", to_json(content), b"{}", (), is_last)

    def publish_error(self, content, is_last):
        """error. is_last: as of publish_result(). A client that sees it finds the cell ended."""
        self.host.publish("error", to_json(content), b"{}", (), is_last and self._is_ending())

    def _is_ending(self):
        """Whether nothing is left to do before the reply that may take time: above all, user code."""
        return (
            not self._has_expressions
            and self.fast_path.nothing_follows()
            and sys.stdout is self._streams[0]
            and sys.stderr is self._streams[1]
            and sys.__stdout__ is self._streams[2]
            and sys.__stderr__ is self._streams[3]
            and sys.gettrace() is None
        )

    # --- the requests ---

    @only_in_parent
    def wait(self):
        self.runner.wait()

    @only_in_parent
    def execute(self, code, silent, store_history, count, user_expressions, allow_stdin):
        shell = self.shell
        # IPython counts up when it stores; count is the number of this cell, or of the last stored.
        wanted = count if store_history else count + 1
        if shell.execution_count != wanted:  # Setting a trait takes longer than most cells.
            shell.execution_count = wanted
        shell.current_code = code
        shell.shown_error = None
        shell.compile.last_name = None
        self.silent = silent
        self.host.hold_reserve()
        self._stdin.allowed = allow_stdin
        tools.allow(True)
        self.debugger.before_cell()
        error, values = None, {}
        try:
            expressions = {} if user_expressions == b"{}" else json.loads(user_expressions)
            self._has_expressions = bool(expressions)
            result, values = self.runner.run(
                self._run_cell(code, store_history, silent, expressions)
            )
            error = result.error_before_exec or result.error_in_exec
        except asyncio.CancelledError:
            error = KeyboardInterrupt()  # It came before the cell's first line.
        except BaseException as caught:  # An interrupt outside user code, or a fault of ours.
            error = caught
        if os.getpid() != self._pid:
            self._leave_child(error)
        if store_history:
            shell.history_manager.keep(count)
        content, metadata = self._reply(code, error, values)
        self._stdin.allowed = False
        tools.allow(False)
        self._end_cell()
        return to_json(content), to_json(metadata) if metadata else b"{}"

    async def _run_cell(self, code, store_history, silent, expressions):
        """IPython's result, and the values of the user expressions if the code succeeded."""
        result = None
        try:
            if self.fast_path.takes(code):
                result = await self.fast_path.run(code, store_history, silent)
            else:
                result = await self._run_special_cell(code, store_history, silent)
        finally:
            self._run_callbacks(result, silent)
        values = self._evaluate(expressions) if expressions and result.success else {}
        return result, values

    async def _run_special_cell(self, code, store_history, silent):
        shell = self.shell
        transformed, failure = code, None
        try:
            transformed = shell.transform_cell(code)
        except Exception:
            failure = sys.exc_info()
        return await shell.run_cell_async(
            code,
            store_history=store_history,
            silent=silent,
            transformed_cell=transformed,
            preprocessing_exc_tuple=failure,
        )

    def _run_callbacks(self, result, silent):
        """What run_cell_async leaves to its caller. Figures are shown here."""
        self.shell.events.trigger("post_execute")
        if not silent:
            self.shell.events.trigger("post_run_cell", result)

    def _evaluate(self, expressions):
        return self.shell.user_expressions(expressions)

    def _reply(self, code, error, values):
        payload = self.shell.payload_manager.read_payload()
        if payload:
            self.shell.payload_manager.clear_payload()
        content = {"status": "ok", "payload": payload, "user_expressions": values}
        if error is None:
            return content, {}
        self.shell.make_room(type(error))
        if self.shell.shown_error is None:
            # Nothing was shown: IPython could not format it, or it was raised outside the cell.
            self.shell.show_error(type(error).__name__, str(error), [], error)
        shown, error = self.shell.shown_error
        content.update(shown, status="error")
        place = describe(
            error,
            self.shell.compile.last_name,
            removed_lines(code),
        )
        return content, {"cellkeep": {"error": place}}

    def _end_cell(self):
        """What the cell wrote must be out before its reply."""
        self.shell.end_background_threads()
        for stream in (sys.stdout, sys.stderr, sys.__stdout__, sys.__stderr__):
            try:
                stream.flush()
            except (AttributeError, OSError, ValueError):
                pass  # The user replaced, closed or lost it; there is nothing of ours in it.
        self.host.flush()
        self.host.flush_c_streams()

    # --- comms ---

    @only_in_parent
    def comm_info(self, target_name):
        return to_json({
            comm_id: {"target_name": item.target_name}
            for comm_id, item in self.comm_manager.comms.items()
            if not target_name or item.target_name == target_name
        })

    @only_in_parent
    def receive_comm(self, header, metadata, content, buffers):
        message = {
            "header": json.loads(header),
            "metadata": json.loads(metadata),
            "content": json.loads(content),
            "buffers": [memoryview(item) for item in buffers],
        }
        try:
            self.runner.run(self._receive_comm(message))
        except (KeyboardInterrupt, SystemExit, asyncio.CancelledError):
            if os.getpid() != self._pid:
                raise
            sys.excepthook(*sys.exc_info())  # The handler was interrupted.

    async def _receive_comm(self, message):
        self.comm_manager.receive(message)

    # --- a spare kernel is given to a session ---

    @only_in_parent
    def adopt(self, request):
        request = json.loads(request)
        os.environ.update(request["env"])
        time.tzset()  # TZ may be among them.
        result_data.offer(self.shell.display_formatter)
        if request["working_directory"]:
            os.chdir(request["working_directory"])
        return to_json({"status": "ok"})

    # --- the debugger ---

    def debug(self, header, content):
        self.debugger.receive(header, content)

    # --- the end, and forked children ---

    @only_in_parent
    def end(self):
        import atexit

        self.runner.end()
        if os.getpid() != self._pid:
            self._leave_child(None)
        atexit._run_exitfuncs()
        self.cells.remove()
        for stream in (sys.stdout, sys.stderr):
            stream.flush()

    def _become_child(self):
        """Runs in a child that user code forked: it has no part in the kernel."""
        if self.copies.is_copying:
            return  # It is the kernel, gone back to a checkpoint.
        for stream in self._streams[:2]:
            stream.write_directly()
        self._stdin.allowed = False
        tools.allow(False)
        self.runner.leave_to_child()
        self.debugger.leave_to_child()
        self.host.abandon()

    def become_process(self, pid):
        """This process goes on as the kernel from a copy of an earlier one."""
        self._pid = pid
        # Wake-ups were the earlier one's: the pair of sockets is shared.
        self.runner.loop.renew_wakeup()

    def _leave_child(self, error):
        """A forked child came back from user code. It must not serve requests."""
        for stream in (sys.__stdout__, sys.__stderr__):
            try:
                stream.flush()
            except (AttributeError, OSError, ValueError):
                pass  # The user closed or lost it.
        status = 0 if error is None else 1
        if isinstance(error, SystemExit) and isinstance(error.code, int):
            status = error.code
        os._exit(status)
