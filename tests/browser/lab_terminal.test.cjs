// SPDX-License-Identifier: Apache-2.0
//
// JupyterLab's own terminal, in the sandbox of a session: a proxy in front of both servers gives
// Cellkeep the addresses of terminals, and JupyterLab's server everything else.
'use strict';

const assert = require('node:assert/strict');
const fs = require('node:fs');
const path = require('node:path');
const { after, before, test } = require('node:test');
const { openBrowser } = require('./support/browser.cjs');
const { startFront } = require('./support/front.cjs');
const { picture } = require('./support/lab_cases.cjs');
const { TOKEN, scratch, startGateway, startLab, until } = require('./support/processes.cjs');

const OF_TERMINALS = /^\/(api\/terminals|terminals\/websocket)\b/;

let folder;
let gateway;
let lab;
let front;
let chromium;

// What the terminal shows, for screen readers and tests; else it is a picture.
function readableTerminals() {
    const settings = path.join(folder, 'lab/home/settings/@jupyterlab/terminal-extension');
    fs.mkdirSync(settings, { recursive: true });
    fs.writeFileSync(path.join(settings, 'plugin.jupyterlab-settings'), '{"screenReaderMode": true}');
}

before(async () => {
    folder = scratch();
    readableTerminals();
    gateway = await startGateway(folder);
    [lab, chromium] = await Promise.all([startLab(folder, { gateway }), openBrowser()]);
    front = await startFront(address => (OF_TERMINALS.test(address) ? gateway : lab));
});

after(async () => {
    await chromium?.browser.close();
    front?.close();
    const stopped = [await lab?.program.stop(), await gateway?.program.stop()];
    if (process.env.CELLKEEP_BROWSER_LOGS) {
        console.log(gateway?.program.output(), lab?.program.output());
    }
    fs.rmSync(folder, { recursive: true, force: true });
    assert.deepEqual(stopped, ['exit status 0', 'exit status 0']);
});

// What a screen reader finds: the rows are there, but transparent.
async function shown(terminal) {
    return (await terminal.locator('.xterm-accessibility').allTextContents()).join('');
}

async function ask(method, address, body) {
    const headers = { Authorization: `Bearer ${TOKEN}`, 'Content-Type': 'application/json' };
    const answer = await fetch(gateway.url + address, { method, headers, body: body && JSON.stringify(body) });
    assert.ok(answer.ok, `${address}: ${answer.status}`);
    return answer.json();
}

test('a terminal of JupyterLab is a shell in a session', { timeout: 240_000 }, async () => {
    const { id } = await ask('POST', '/v1/sessions', {});
    const run = code => ask('POST', `/v1/sessions/${id}/executions`, { code });
    // A file that is not there yet is an error of the code, and no text.
    const says = async (code, text) => (await run(code)).stdout.includes(text);
    await run("open('seen.txt', 'w').write('written by a cell')");
    const page = await chromium.context.newPage();
    page.on('dialog', dialog => dialog.accept());
    await page.goto(`${front.url}/lab/workspaces/terminal?token=${lab.token}`);
    await page.locator('.jp-LauncherCard[title="Start a new terminal session"]').click();
    const terminal = page.locator('.jp-Terminal:visible');
    await terminal.locator('.xterm-screen').waitFor();
    await until(async () => (await ask('GET', '/api/terminals')).length === 1, 'the terminal is there');
    await terminal.click();
    // It shares the session's files, in both directions, and is no shell of this machine.
    await page.keyboard.type('cat seen.txt; echo; echo $((6 * 7)) > typed.txt; hostname; id -u\n');
    await until(async () => (await shown(terminal)).includes('written by a cell'), 'the terminal shows the file');
    await until(() => says("print(open('typed.txt').read())", '42'), 'the file is there');
    // Interrupts and the size of the window go in.
    // What is typed is shown too: so it is not the word itself. A key that comes before the program runs would be lost.
    await page.keyboard.type("sh -c 'echo be''gun; exec sleep 1000'\n");
    await until(async () => (await shown(terminal)).includes('begun'), 'the program runs');
    await page.keyboard.press('Control+c');
    await page.keyboard.type('stty size > size.txt; echo done > interrupted.txt\n');
    await until(() => says("import os; print(os.path.exists('interrupted.txt'))", 'True'), 'it was interrupted');
    const size = await run("print(open('size.txt').read())");
    const [rows, columns] = size.stdout.trim().split(' ').map(Number);
    assert.ok(rows > 10 && columns > 40, `${JSON.stringify(size)} ${await shown(terminal)}`);
    await picture(page, 'terminal');
    // The shell's end is the terminal's.
    await page.keyboard.type('exit\n');
    await until(async () => (await ask('GET', '/api/terminals')).length === 0, 'the terminal has ended');
    await page.close();
    await fetch(`${gateway.url}/v1/sessions/${id}`, { method: 'DELETE', headers: { Authorization: `Bearer ${TOKEN}` } });
});
