// SPDX-License-Identifier: Apache-2.0
//
// /docs in Chromium: the whole document is shown under the page's own strict policy, below a base URL,
// with nothing from anywhere else, and a request can be tried.
'use strict';

const assert = require('node:assert/strict');
const fs = require('node:fs');
const { after, before, test } = require('node:test');
const { openBrowser } = require('./support/browser.cjs');
const { scratch, startGateway } = require('./support/processes.cjs');

let folder;
let gateway;
let chromium;

before(async () => {
    folder = scratch();
    [gateway, chromium] = await Promise.all([
        startGateway(folder, { more: ['--base-url', '/deep/base'] }),
        openBrowser(),
    ]);
});

after(async () => {
    await chromium?.browser.close();
    const stopped = await gateway?.program.stop();
    fs.rmSync(folder, { recursive: true, force: true });
    assert.equal(stopped, 'exit status 0');
});

// A page that records its errors and the addresses of its requests.
async function openPage() {
    const page = await chromium.context.newPage();
    const complaints = [];
    const asked = new Set();
    page.on('console', message => {
        if (['error', 'warning'].includes(message.type())) {
            complaints.push(message.text());
        }
    });
    page.on('pageerror', error => complaints.push(String(error)));
    page.on('request', request => asked.add(new URL(request.url()).origin));
    return { page, complaints, asked };
}

test('the document is shown with its operations, and one can be tried', async () => {
    const { page, complaints, asked } = await openPage();
    const answer = await page.goto(`${gateway.url}/docs?token=${gateway.token}`);
    const policy = answer.headers()['content-security-policy'];
    assert.match(policy, /default-src 'none'/);
    assert.doesNotMatch(policy, /unsafe|\*|https?:/);
    await page.locator('#operations-sessions-createSession').waitFor();
    const shown = await page.locator('.opblock').count();
    const document = await (
        await fetch(`${gateway.url}/openapi.json`, {
            headers: { Authorization: `Bearer ${gateway.token}` },
        })
    ).json();
    const methods = ['get', 'put', 'post', 'patch', 'delete', 'head'];
    const operations = Object.values(document.paths).flatMap(item =>
        Object.keys(item).filter(key => methods.includes(key))
    );
    assert.equal(shown, operations.length);
    assert.doesNotMatch(page.url(), /token/);

    const list = page.locator('#operations-sessions-listSessions');
    await list.locator('.opblock-summary-control').click();
    await list.locator('.try-out__btn').click();
    await list.locator('.execute').click();
    const body = list.locator('.live-responses-table .response .response-col_description').first();
    await body.waitFor();
    assert.match(await body.innerText(), /"sessions": \[\]/);
    assert.deepEqual([...asked], [new URL(gateway.url).origin]);
    assert.deepEqual(complaints, []);
});

test('without a token the page asks for one', async () => {
    const { page } = await openPage();
    await page.goto(`${gateway.url}/docs`);
    await page.locator('#token').fill('wrong');
    await page.locator('#ask button').click();
    await page.getByRole('alert').getByText('401').waitFor();
    await page.locator('#token').fill(gateway.token);
    await page.locator('#ask button').click();
    await page.locator('#operations-sessions-createSession').waitFor();
});
