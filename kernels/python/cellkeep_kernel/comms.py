# SPDX-License-Identifier: Apache-2.0
"""Comms (Jupyter messaging specification, "Custom Messages") for the package `comm`."""

import sys

import comm
from comm.base_comm import BaseComm, CommManager


class _Comms:
    """Finds the kernel for KernelComm; comm.create_comm gives no place to pass it."""

    kernel = None


class KernelComm(BaseComm):
    # No attribute `kernel`: where there is one and it is None, ipywidgets sends nothing.

    def publish_msg(self, msg_type, data=None, metadata=None, buffers=None, **keys):
        _Comms.kernel.publish(
            msg_type,
            dict(data={} if data is None else data, comm_id=self.comm_id, **keys),
            metadata={} if metadata is None else metadata,
            buffers=buffers,
        )


class KernelCommManager(CommManager):
    """Its handlers raise what user code raises; receive() shows it."""

    def receive(self, message):
        handler = getattr(self, "_" + message["header"]["msg_type"])
        try:
            handler(message["content"], message)
        except Exception:
            sys.excepthook(*sys.exc_info())

    def _comm_open(self, content, message):
        target = self.targets.get(content["target_name"])
        channel = KernelComm(
            comm_id=content["comm_id"], primary=False, target_name=content["target_name"]
        )
        self.register_comm(channel)
        if target is None:
            channel.close()  # The specification's answer to an unknown target.
            return
        try:
            target(channel, message)
        except Exception:
            channel.close()
            raise

    def _comm_msg(self, content, message):
        channel = self.comms.get(content["comm_id"])
        if channel is not None:
            channel.handle_msg(message)

    def _comm_close(self, content, message):
        channel = self.comms.pop(content["comm_id"], None)
        if channel is not None:
            channel._closed = True
            channel.handle_close(message)


def install(kernel):
    """Make this kernel the one that comm.create_comm() and comm.get_comm_manager() work for."""
    manager = KernelCommManager()
    _Comms.kernel = kernel
    comm.create_comm = KernelComm
    comm.get_comm_manager = lambda: manager
    return manager
