// SPDX-License-Identifier: Apache-2.0
//
// Plain JupyterLab with the kernelspec of `cellkeep kernelspec install`: sandboxed, no server.
'use strict';

const assert = require('node:assert/strict');
const fs = require('node:fs');
const { after, before } = require('node:test');
const { openBrowser } = require('./support/browser.cjs');
const { labCases } = require('./support/lab_cases.cjs');
const { dataDirectory, scratch, startLab } = require('./support/processes.cjs');

let folder;
let lab;
let chromium;

before(async () => {
    folder = scratch();
    const dataPath = await dataDirectory(folder, { kernelspec: true });
    [lab, chromium] = await Promise.all([startLab(folder, { dataPath }), openBrowser()]);
});

after(async () => {
    await chromium?.browser.close();
    const stopped = await lab?.program.stop();
    if (process.env.CELLKEEP_BROWSER_LOGS) {
        console.log(lab?.program.output());
    }
    fs.rmSync(folder, { recursive: true, force: true });
    assert.equal(stopped, 'exit status 0');
});

labCases(() => ({ lab, context: chromium.context, kernel: 'cellkeep-python' }));
