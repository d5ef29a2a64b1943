// SPDX-License-Identifier: Apache-2.0
//
// A page that is not Jupyter's, with @jupyterlab/services in it. esbuild bundles this file; the test
// calls what it leaves on `window`.
import { KernelManager, ServerConnection } from '@jupyterlab/services';

// Starts a kernel, runs these cells one after another and gives each one's reply and outputs.
window.runCells = async (baseUrl, token, cells) => {
    const serverSettings = ServerConnection.makeSettings({
        baseUrl,
        wsUrl: baseUrl.replace('http', 'ws'),
        token,
        appendToken: true,
        init: { mode: 'cors', credentials: 'omit', cache: 'no-store' },
    });
    const kernels = new KernelManager({ serverSettings });
    const kernel = await kernels.startNew({});
    const answers = [];
    for (const code of cells) {
        const future = kernel.requestExecute({ code });
        const outputs = [];
        future.onIOPub = message => outputs.push([message.header.msg_type, message.content]);
        const reply = await future.done;
        answers.push({ status: reply.content.status, outputs });
    }
    await kernel.shutdown();
    kernel.dispose();
    kernels.dispose();
    return answers;
};
