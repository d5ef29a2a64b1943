// SPDX-License-Identifier: Apache-2.0
//
// Servers that code starts inside a session, as a browser sees them at addresses of their own: a Flask
// application, a WebSocket, a Streamlit page.
'use strict';

const assert = require('node:assert/strict');
const { execFileSync } = require('node:child_process');
const fs = require('node:fs');
const path = require('node:path');
const { after, before, test } = require('node:test');
const { openBrowser } = require('./support/browser.cjs');
const { picture } = require('./support/lab_cases.cjs');
const { ROOT, TOKEN, scratch, startGateway, until } = require('./support/processes.cjs');

const SITE = 'lib/python3.11/site-packages';
// What the applications are made of (tests/environment/previews).
const PACKAGES = process.env.CELLKEEP_PREVIEW_PACKAGES || path.join(ROOT, 'build/environments/previews', SITE);
const PROGRAMS = path.join(__dirname, 'inside');
const PORTS = { guestbook: 5000, echo: 5001, squares: 8501 };

// Unpacks the packages and keeps what starts an application with them.
const PREPARE = `import os, subprocess, sys, tarfile
with tarfile.open('packages.tar.gz') as packages:
    packages.extractall('site-packages')
os.remove('packages.tar.gz')
def start(*arguments):
    own = {'PYTHONPATH': '/workspace/site-packages', 'HOME': '/tmp', 'PYTHONUNBUFFERED': '1'}
    log = open('/tmp/applications.log', 'a')
    subprocess.Popen([sys.executable, *arguments], env={**os.environ, **own}, stdout=log, stderr=log)
`;

let folder;
let gateway;
let chromium;
let session;

async function ask(method, address, body, type = 'application/json') {
    const headers = { Authorization: `Bearer ${TOKEN}` };
    if (body !== undefined) {
        headers['Content-Type'] = type;
    }
    return fetch(gateway.url + address, { method, headers, body });
}

async function run(code) {
    const answer = await ask('POST', `${session}/executions`, JSON.stringify({ code }));
    const result = await answer.json();
    assert.equal(result.status, 'ok', JSON.stringify(result));
    return result;
}

// The packages that a session has not, as an archive.
function packPackages() {
    const own = new Set(fs.readdirSync(path.join(ROOT, 'build/environments/python', SITE)));
    const names = fs.readdirSync(PACKAGES).filter(name => !own.has(name));
    const archive = path.join(folder, 'packages.tar.gz');
    execFileSync('tar', ['--create', '--gzip', '--file', archive, '--directory', PACKAGES, ...names]);
    return fs.readFileSync(archive);
}

async function upload(name, bytes) {
    const answer = await ask('PUT', `${session}/files/${name}`, bytes, 'application/octet-stream');
    assert.ok(answer.ok, await answer.text());
}

// Starts an application and waits until it answers.
async function startInside(port, code) {
    await run(code);
    await until(async () => (await ask('GET', `${session}/ports/${port}/`)).status === 200, `port ${port} answers`, 120);
}

async function addressOf(port) {
    const answer = await ask('POST', `${session}/ports/${port}/tokens`, JSON.stringify({ expires_in_s: 600 }));
    assert.equal(answer.status, 201);
    return (await answer.json()).url;
}

before(async () => {
    folder = scratch();
    [gateway, chromium] = await Promise.all([startGateway(folder), openBrowser()]);
    const limits = { memory_mb: 1500, disk_mb: 500, wall_ms: 120_000, cpu_ms: 120_000 };
    const created = await ask('POST', '/v1/sessions', JSON.stringify({ limits }));
    const text = await created.text();
    assert.equal(created.status, 201, text);
    session = `/v1/sessions/${JSON.parse(text).id}`;
    await upload('packages.tar.gz', packPackages());
    for (const program of fs.readdirSync(PROGRAMS).filter(name => name.endsWith('.py'))) {
        await upload(program, fs.readFileSync(path.join(PROGRAMS, program)));
    }
    await run(PREPARE);
});

after(async () => {
    if (process.env.CELLKEEP_BROWSER_LOGS) {
        console.log((await run("print(open('/tmp/applications.log').read())")).stdout);
    }
    await chromium?.browser.close();
    const stopped = await gateway?.program.stop();
    fs.rmSync(folder, { recursive: true, force: true });
    assert.equal(stopped, 'exit status 0');
});

test('a Flask application: forms, redirects, its cookie, and nothing of the server', { timeout: 240_000 }, async () => {
    const port = PORTS.guestbook;
    await startInside(port, `start('guestbook.py', '${port}')`);
    const page = await chromium.context.newPage();
    const address = await addressOf(port);
    await page.goto(address);
    // The address that is shown and kept has no token.
    assert.equal(page.url(), address.split('?')[0]);
    assert.match(page.url(), new RegExp(`^http://${port}-[0-9a-f]{24}\\.localhost:\\d+/$`));
    await page.getByRole('heading', { name: '0 guests' }).waitFor();
    for (const [number, name] of ['Ada', 'Grace'].entries()) {
        await page.locator('input').fill(name);
        await page.getByRole('button').click();
        await page.getByRole('heading', { name: `${number + 1} guests` }).waitFor();
        assert.equal(await page.locator('#mine').textContent(), name);
        assert.equal(page.url(), address.split('?')[0]);
    }
    await picture(page, 'preview-flask');
    await page.getByRole('link').click();
    await page.locator('li').nth(1).waitFor();
    assert.equal(await page.locator('li').count(), 2);
    const seen = await page.evaluate(async () => (await fetch('/seen')).json());
    const cookies = seen.filter(([name]) => name === 'Cookie').map(([, value]) => value);
    assert.equal(cookies.length, 1);
    assert.match(cookies[0], /^session=[^;]+$/);
    assert.ok(!JSON.stringify(seen).includes(TOKEN) && !JSON.stringify(seen).includes('cpt_'));
    // The page itself sees no token, and is of another origin than the server.
    assert.ok(!(await page.evaluate(() => document.cookie)).includes('cellkeep_preview'));
    const reached = await page.evaluate(
        url =>
            fetch(`${url}/v1/sessions`).then(
                () => 'an answer',
                () => 'refused'
            ),
        gateway.url
    );
    assert.equal(reached, 'refused');
    await page.close();
    // A browser without the address gets nothing.
    const stranger = await chromium.browser.newContext();
    const other = await stranger.newPage();
    const refused = await other.goto(address.split('?')[0]);
    assert.equal(refused.status(), 401);
    await stranger.close();
});

test('a WebSocket of a page says what it hears', { timeout: 240_000 }, async () => {
    const port = PORTS.echo;
    await startInside(port, `start('echo.py', '${port}')`);
    const page = await chromium.context.newPage();
    await page.goto(await addressOf(port));
    await page.getByRole('heading', { name: 'Echo' }).waitFor();
    const heard = await page.evaluate(
        texts =>
            new Promise((resolve, reject) => {
                const socket = new WebSocket(`ws://${location.host}/ws`);
                const answers = [];
                socket.onopen = () => texts.forEach(text => socket.send(text));
                socket.onerror = () => reject(new Error('the WebSocket failed'));
                socket.onmessage = event => {
                    answers.push(event.data);
                    if (answers.length === texts.length) {
                        socket.close();
                    }
                };
                socket.onclose = () => resolve(answers);
            }),
        ['hello', 'grüße 😀', 'x'.repeat(200_000)]
    );
    assert.deepEqual(
        heard.map(text => text.slice(0, 10)),
        ['hello', 'grüße 😀', 'xxxxxxxxxx']
    );
    assert.equal(heard[2].length, 200_000);
    await page.close();
});

test('a Streamlit page does what its visitor asks', { timeout: 300_000 }, async () => {
    const port = PORTS.squares;
    const options = `'--server.port', '${port}', '--server.address', '127.0.0.1', '--server.headless', 'true',
      '--browser.gatherUsageStats', 'false', '--server.fileWatcherType', 'none'`;
    await startInside(port, `start('-m', 'streamlit', 'run', 'squares.py', ${options})`);
    const page = await chromium.context.newPage();
    await page.goto(await addressOf(port));
    await page.getByRole('heading', { name: 'Squares' }).waitFor();
    await page.getByText('3 squared is 9').waitFor();
    await page.getByLabel('Name').fill('Ada');
    await page.getByLabel('Name').press('Enter');
    await page.getByText('Hello Ada').waitFor();
    await page.getByLabel('Number').fill('12');
    await page.getByLabel('Number').press('Enter');
    await page.getByText('12 squared is 144').waitFor();
    await picture(page, 'preview-streamlit');
    await page.close();
});
