// SPDX-License-Identifier: Apache-2.0
//
// JupyterLab whose kernels come from a Cellkeep server: `jupyter lab --gateway-url=…`.
'use strict';

const assert = require('node:assert/strict');
const fs = require('node:fs');
const { after, before } = require('node:test');
const { openBrowser } = require('./support/browser.cjs');
const { labCases } = require('./support/lab_cases.cjs');
const { dataDirectory, scratch, startGateway, startLab } = require('./support/processes.cjs');

let folder;
let gateway;
let lab;
let chromium;

before(async () => {
    folder = scratch();
    gateway = await startGateway(folder);
    const dataPath = await dataDirectory(folder);
    [lab, chromium] = await Promise.all([startLab(folder, { gateway, dataPath }), openBrowser()]);
});

after(async () => {
    await chromium?.browser.close();
    const stopped = [await lab?.program.stop(), await gateway?.program.stop()];
    if (process.env.CELLKEEP_BROWSER_LOGS) {
        console.log(gateway?.program.output(), lab?.program.output());
    }
    fs.rmSync(folder, { recursive: true, force: true });
    assert.deepEqual(stopped, ['exit status 0', 'exit status 0']);
});

labCases(() => ({ lab, context: chromium.context, kernel: 'python3' }));
