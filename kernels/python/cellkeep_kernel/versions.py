# SPDX-License-Identifier: Apache-2.0
"""What differs between the versions of CPython (3.9 to 3.14) and of IPython (8 and 9) that the kernel runs in.

CPython before 3.11 has IPython 8, because IPython 9 does not run there.
"""

import builtins
import dis
import threading

from IPython.core import history
from IPython.core.interactiveshell import ExecutionInfo, InteractiveShell

_SHOWING = ("PRINT_EXPR", "CALL_INTRINSIC_1")  # before CPython 3.12, and from there on
#: The instruction, with its argument, that shows a value that is a statement of its own.
SHOW_VALUE = next(
    bytes((one.opcode, one.arg or 0))
    for one in dis.get_instructions(compile("0", "", "single"))
    if one.opname in _SHOWING
)

#: The type of exceptions that hold several; of none before CPython 3.11.
ExceptionGroups = getattr(builtins, "BaseExceptionGroup", ())

#: There a shell makes its log and its database when they are first asked for, keeps outputs and exceptions
#: for %notebook, and counts a cell before it runs, not after it.
IPYTHON_9 = hasattr(InteractiveShell, "_logger")


def execution_info(code, store_history, silent, cell):
    """Of a cell that IPython would transform to another. IPython 8 does not keep that."""
    more = {"transformed_cell": cell} if IPYTHON_9 else {}
    return ExecutionInfo(code, store_history, silent, True, None, **more)


def note_result(manager, count, bundle):
    if IPYTHON_9:
        output = history.HistoryOutput(output_type="execute_result", bundle=bundle)
        manager.outputs[count].append(output)


def note_exception(shell, count, error):
    if IPYTHON_9:
        shell.history_manager.exceptions[count] = shell._format_exception_for_storage(error)


def kept_outputs(manager):
    return (manager.outputs, manager.exceptions) if IPYTHON_9 else ()


def stop_script_loop(magics):
    """The event loop of %%bash and its like, and the thread that it runs in."""
    if hasattr(magics, "stop_event_loop"):
        magics.stop_event_loop()
        return
    loop, magics.event_loop = magics.event_loop, None
    threads = [thread for thread in threading.enumerate() if thread.ident == loop._thread_id]
    loop.call_soon_threadsafe(loop.stop)
    for thread in threads:
        thread.join()
    loop.close()
