// SPDX-License-Identifier: Apache-2.0
//
// JupyterLab in front of a server whose program is replaced (SIGUSR2): `jupyter lab --gateway-url=…`.
'use strict';

const assert = require('node:assert/strict');
const fs = require('node:fs');
const path = require('node:path');
const { after, before, test } = require('node:test');
const { NotebookPage, openBrowser, writeNotebook } = require('./support/browser.cjs');
const { COUNTER, assertCounted } = require('./support/lab_cases.cjs');
const { TOKEN, scratch, startGateway, startLab, until } = require('./support/processes.cjs');

let folder;
let gateway;
let lab;
let chromium;

before(async () => {
    folder = scratch();
    gateway = await startGateway(folder);
    [lab, chromium] = await Promise.all([startLab(folder, { gateway }), openBrowser()]);
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

function startedAt() {
    return JSON.parse(fs.readFileSync(path.join(folder, 'state/server.json'), 'utf8')).started_at;
}

// Returns a function that waits until the other program serves and JupyterLab's server has come back to it.
async function askForUpgrade(notebook) {
    const before = startedAt();
    const [session] = await notebook.sessions();
    gateway.program.process.kill('SIGUSR2');
    return async () => {
        await until(() => startedAt() !== before, 'the other program serves');
        await until(async () => {
            const headers = { Authorization: `Bearer ${TOKEN}` };
            const answer = await fetch(`${gateway.url}/api/kernels/${session.kernel.id}`, { headers });
            return (await answer.json()).connections > 0;
        }, "JupyterLab's server is connected");
    };
}

async function open(name, sources) {
    writeNotebook(lab, name, sources);
    return NotebookPage.open(chromium.context, lab, name);
}

test('variables, numbers of cells and widgets of a page go on', { timeout: 240_000 }, async () => {
    const notebook = await open('goes_on.ipynb', [
        `import ipywidgets as widgets
from IPython.display import display
x = 41
slider = widgets.IntSlider(value=3, min=0, max=10, description='n')
label = widgets.HTML()
slider.observe(lambda change: setattr(label, 'value', f"<b>{change['new'] ** 2} it is</b>"), 'value')
display(slider, label)`,
        "print('x is', x + 1)",
    ]);
    await notebook.runToEnd(0);
    const handle = notebook.output(0).locator('.noUi-handle');
    await handle.waitFor();
    await (await askForUpgrade(notebook))();
    await notebook.runToEnd(1);
    await notebook.says(1, 'x is 42');
    assert.match(await notebook.prompt(1).textContent(), /\[2\]/);
    await handle.focus();
    await notebook.page.keyboard.press('ArrowRight');
    await notebook.says(0, '16 it is');
    await notebook.restart();
    await notebook.idle();
    await notebook.run(1);
    await notebook.says(1, "NameError: name 'x' is not defined");
    await notebook.shutDown();
});

test('a cell that runs is waited for, and nothing of its output is lost', { timeout: 240_000 }, async () => {
    const notebook = await open('runs.ipynb', [COUNTER, "print('next', i > 0)"]);
    await notebook.run(0);
    await notebook.says(0, '20\n');
    const before = startedAt();
    const upgraded = await askForUpgrade(notebook);
    await notebook.says(0, '120\n');
    assert.equal(startedAt(), before);
    await notebook.interrupt();
    await notebook.finished(0);
    await upgraded();
    assertCounted(await notebook.outputText(0), 120);
    await notebook.runToEnd(1);
    await notebook.says(1, 'next True');
    await notebook.shutDown();
});
