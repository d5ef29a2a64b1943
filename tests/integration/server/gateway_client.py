# SPDX-License-Identifier: Apache-2.0
"""jupyter_server's own gateway managers against a server whose URL and token are the arguments.

Runs in the environment of JupyterLab, as a program: the managers are singletons of their process.
Prints what the test looks at as one line of JSON.
"""

import asyncio
import json
import sys

from jupyter_events import EventLogger
from jupyter_server.gateway.gateway_client import GatewayClient
from jupyter_server.gateway.managers import (
    GatewayKernelSpecManager,
    GatewayMappingKernelManager,
)
from jupyter_server.serverapp import ServerApp
from tornado.web import HTTPError


async def drive(kernels: GatewayMappingKernelManager, specs: GatewayKernelSpecManager) -> dict:
    seen: dict = {"specs": sorted(await specs.get_all_specs())}
    seen["spec"] = (await specs.get_kernel_spec("python3"))["spec"]["display_name"]
    logo = await specs.get_kernel_spec_resource("python3", "logo-64x64.png")
    seen["logo"] = logo[1:4].decode()
    seen["no_logo"] = await specs.get_kernel_spec_resource("python3", "kernel.js")
    try:
        await specs.get_kernel_spec("nosuch")
    except KeyError:
        seen["no_spec"] = "KeyError"
    kernel_id = await kernels.start_kernel(kernel_name="python3")
    model = await kernels.kernel_model(kernel_id)
    seen["started"] = [model["name"], model["execution_state"], model["connections"]]
    seen["listed"] = [each["id"] == kernel_id for each in await kernels.list_kernels()]
    await kernels.interrupt_kernel(kernel_id)
    await kernels.restart_kernel(kernel_id)
    await kernels.cull_kernels()
    seen["alive"] = await kernels.get_kernel(kernel_id).is_alive()
    await kernels.shutdown_kernel(kernel_id)
    seen["left"] = await kernels.list_kernels()
    try:
        await kernels.start_kernel(kernel_name="nosuch")
    except HTTPError as refused:
        seen["refused"] = [refused.status_code, "not available" in str(refused)]
    return seen


def main() -> None:
    url, token = sys.argv[1:]
    client = GatewayClient.instance()
    client.url = url
    client.auth_token = token
    app = ServerApp()
    app.event_logger = EventLogger(parent=app)
    kernels = GatewayMappingKernelManager(parent=app, cull_idle_timeout=3600)
    app.kernel_manager = kernels
    specs = GatewayKernelSpecManager(parent=app)
    print(json.dumps(asyncio.run(drive(kernels, specs))))


main()
