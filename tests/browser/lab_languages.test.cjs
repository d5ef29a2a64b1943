// SPDX-License-Identifier: Apache-2.0
//
// JupyterLab over a Cellkeep server, one notebook per language from notebooks/: the launcher shows the
// language's logo, the editor colours the language itself, and a cell runs.
'use strict';

const assert = require('node:assert/strict');
const fs = require('node:fs');
const path = require('node:path');
const { after, before, test } = require('node:test');
const { NotebookPage, openBrowser } = require('./support/browser.cjs');
const { picture } = require('./support/lab_cases.cjs');
const { ROOT, TOKEN, dataDirectory, scratch, startGateway, startLab } = require('./support/processes.cjs');

// By kernelspec: its notebook, and what CodeMirror calls the language that it colours.
const LANGUAGES = {
    python3: { notebook: 'seattle-weather.ipynb', mode: 'python' },
    javascript: { notebook: 'javascript.ipynb', mode: 'javascript' },
    typescript: { notebook: 'typescript.ipynb', mode: 'typescript' },
    bash: { notebook: 'bash.ipynb', mode: 'shell' },
    sql: { notebook: 'sql.ipynb', mode: 'sql' },
    cpp: { notebook: 'cpp.ipynb', mode: 'cpp' },
};

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

async function kernelspecs() {
    const headers = { Authorization: `token ${TOKEN}` };
    const answer = await fetch(`${gateway.url}/api/kernelspecs`, { headers });
    return (await answer.json()).kernelspecs;
}

// The notebook as it is in the project, without what a run of it has left.
function copyNotebook(name) {
    const notebook = JSON.parse(fs.readFileSync(path.join(ROOT, 'notebooks', name), 'utf8'));
    for (const cell of notebook.cells.filter(each => each.cell_type === 'code')) {
        cell.outputs = [];
        cell.execution_count = null;
    }
    fs.writeFileSync(path.join(lab.notebooks, name), JSON.stringify(notebook));
    return notebook;
}

test('every language of the server has its notebook here', async () => {
    assert.deepEqual(Object.keys(await kernelspecs()).sort(), Object.keys(LANGUAGES).sort());
});

test('the launcher shows every logo', { timeout: 240_000 }, async () => {
    const page = await chromium.context.newPage();
    await page.goto(`${lab.url}/lab/workspaces/launcher?token=${lab.token}`);
    for (const [name, { spec }] of Object.entries(await kernelspecs())) {
        const logo = page.locator(`.jp-LauncherCard[title="${spec.display_name}"] img`).first();
        await logo.waitFor();
        const shown = await logo.evaluate(async image => {
            await image.decode(); // rejects if it is no picture
            return { source: image.src, width: image.naturalWidth };
        });
        assert.ok(shown.width >= 32, `${name}: ${shown.width} pixels`);
        assert.match(shown.source, new RegExp(`/kernelspecs/${name}/logo-`));
    }
    await picture(page, 'languages-launcher');
    await page.close();
});

for (const [name, { notebook, mode }] of Object.entries(LANGUAGES)) {
    test(`${notebook}: coloured as ${mode}, and it runs`, { timeout: 240_000 }, async () => {
        const { cells, metadata } = copyNotebook(notebook);
        assert.equal(metadata.kernelspec.name, name);
        const code = cells.findIndex(cell => cell.cell_type === 'code');
        const opened = await NotebookPage.open(chromium.context, lab, notebook);
        try {
            const editor = opened.editor(code);
            await editor.scrollIntoViewIfNeeded();
            await opened.cell(code).locator(`.cm-content[data-language="${mode}"]`).waitFor();
            // Coloured is what the language's parser has put into spans of their own.
            await editor.locator('.cm-line span').first().waitFor();
            await opened.runToEnd(code);
            assert.match(await opened.prompt(code).textContent(), /\[1\]/);
            assert.equal(await opened.output(code).locator('[data-mime-type$="stderr"]').count(), 0);
            await picture(opened.page, `languages-${name}`);
        } catch (error) {
            const found = opened.cell(code).locator('.cm-content');
            console.log(await found.getAttribute('data-language').catch(String), opened.complaints.join('\n'));
            throw error;
        } finally {
            await opened.shutDown();
        }
    });
}
