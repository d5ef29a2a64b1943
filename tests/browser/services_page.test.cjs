// SPDX-License-Identifier: Apache-2.0
//
// @jupyterlab/services in a page of another origin, which an option of the server allows.
'use strict';

const assert = require('node:assert/strict');
const fs = require('node:fs');
const http = require('node:http');
const path = require('node:path');
const { after, before, test } = require('node:test');
const esbuild = require('esbuild');
const { openBrowser } = require('./support/browser.cjs');
const { scratch, startGateway } = require('./support/processes.cjs');

let folder;
let gateway;
let chromium;
let site;
const trusted = () => `http://127.0.0.1:${site.address().port}`;

before(async () => {
    folder = scratch();
    const bundle = esbuild.buildSync({
        entryPoints: [path.join(__dirname, 'page/client.js')],
        bundle: true,
        write: false,
        format: 'iife',
        platform: 'browser',
        nodePaths: process.env.NODE_PATH.split(path.delimiter),
        define: { 'process.env': '{}', global: 'window' },
        external: ['ws'],
        logLevel: 'error',
    }).outputFiles[0].text;
    site = http.createServer((request, response) => {
        const script = request.url === '/client.js';
        response.setHeader('Content-Type', script ? 'text/javascript' : 'text/html');
        response.end(script ? bundle : '<!doctype html><script src="/client.js"></script>');
    });
    await new Promise(resolve => site.listen(0, '127.0.0.1', resolve));
    [gateway, chromium] = await Promise.all([
        startGateway(folder, { origin: trusted() }),
        openBrowser(),
    ]);
});

after(async () => {
    await chromium?.browser.close();
    site?.closeAllConnections?.();
    site?.close();
    const stopped = await gateway?.program.stop();
    fs.rmSync(folder, { recursive: true, force: true });
    assert.equal(stopped, 'exit status 0');
});

test('a page of a trusted origin starts a kernel and gets its outputs', async () => {
    const page = await chromium.context.newPage();
    await page.goto(trusted());
    const answers = await page.evaluate(
        ([url, token]) =>
            window.runCells(url, token, [
                "print('hello')\n6 * 7",
                `from IPython.display import display, HTML
display(HTML('<b>bold</b>'))`,
                '1 / 0',
            ]),
        [gateway.url, gateway.token]
    );
    const [first, second, third] = answers;
    const named = (answer, type) => answer.outputs.filter(([found]) => found === type);
    assert.equal(first.status, 'ok');
    assert.equal(named(first, 'stream')[0][1].text, 'hello\n');
    assert.equal(named(first, 'execute_result')[0][1].data['text/plain'], '42');
    assert.equal(named(second, 'display_data')[0][1].data['text/html'], '<b>bold</b>');
    assert.equal(third.status, 'error');
    assert.equal(named(third, 'error')[0][1].ename, 'ZeroDivisionError');
});

test('a page of any other origin gets nothing', async () => {
    const page = await chromium.context.newPage();
    // The same site by another name is another origin.
    await page.goto(trusted().replace('127.0.0.1', 'localhost'));
    const refused = await page.evaluate(
        ([url, token]) =>
            window.runCells(url, token, ['1']).then(
                () => 'it got in',
                error => `refused: ${error.name}`
            ),
        [gateway.url, gateway.token]
    );
    assert.match(refused, /^refused/);
});
