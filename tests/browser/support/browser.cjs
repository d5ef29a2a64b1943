// SPDX-License-Identifier: Apache-2.0
//
// Debian's Chromium through Playwright, and JupyterLab as a person uses it: by keyboard and mouse.
'use strict';

const fs = require('node:fs');
const path = require('node:path');
const { chromium } = require('playwright-core');

const WAIT_MS = Number(process.env.WAIT_MS || 60_000);

async function openBrowser() {
    const browser = await chromium.launch({
        executablePath: process.env.CELLKEEP_CHROMIUM || '/usr/bin/chromium',
        // Chromium's own sandbox needs an ordinary user.
        args: process.getuid() === 0 ? ['--no-sandbox'] : [],
    });
    const context = await browser.newContext({ viewport: { width: 1100, height: 720 } });
    context.setDefaultTimeout(WAIT_MS);
    return { browser, context };
}

// Writes a notebook with these cells' sources into the lab's folder.
function writeNotebook(lab, name, sources, kernel = 'python3') {
    const notebook = {
        cells: sources.map((source, index) => ({
            cell_type: 'code',
            id: `cell-${index}`,
            metadata: {},
            source,
            outputs: [],
            execution_count: null,
        })),
        metadata: { kernelspec: { name: kernel, display_name: 'Python', language: 'python' } },
        nbformat: 4,
        nbformat_minor: 5,
    };
    fs.writeFileSync(path.join(lab.notebooks, name), JSON.stringify(notebook));
    return name;
}

// Null while JupyterLab is in the middle of writing the file: it truncates, then writes.
function readNotebook(lab, name) {
    const text = fs.readFileSync(path.join(lab.notebooks, name), 'utf8');
    try {
        return JSON.parse(text);
    } catch (error) {
        if (error instanceof SyntaxError) {
            return null;
        }
        throw error;
    }
}

// One notebook open in a page of its own.
class NotebookPage {
    constructor(lab, page, name) {
        this.lab = lab;
        this.page = page;
        this.name = name;
        this.notebook = page.locator('.jp-Notebook:visible');
        // The page's own errors; shown when a test fails.
        this.complaints = [];
        page.on('console', message => {
            if (message.type() === 'error' || message.type() === 'warning') {
                this.complaints.push(message.text());
            }
        });
        page.on('pageerror', error => this.complaints.push(String(error)));
        // "Leave site? Changes may not be saved."
        page.on('dialog', dialog => dialog.accept());
    }

    static async open(context, lab, name) {
        const page = await context.newPage();
        const opened = new NotebookPage(lab, page, name);
        // A workspace of its own: no tab of another test comes back.
        opened.url = `${lab.url}/lab/workspaces/${name.replace(/\W/g, '')}/tree/${name}?token=${lab.token}`;
        await page.goto(opened.url);
        await opened.ready();
        await opened.idle();
        return opened;
    }

    async ready() {
        await this.cell(0).waitFor();
        await this.page.locator('#jupyterlab-splash').waitFor({ state: 'detached' });
    }

    idle() {
        return this.kernelStatus('Idle');
    }

    busy() {
        return this.kernelStatus('Busy');
    }

    // The status bar names the kernel only once there is one; the indicator at the notebook's top
    // says idle before.
    kernelStatus(status) {
        return this.page.locator('#jp-main-statusbar').getByText(`| ${status}`).waitFor();
    }

    cell(index) {
        return this.notebook.locator('.jp-Cell').nth(index);
    }

    editor(index) {
        return this.cell(index).locator('.cm-content');
    }

    output(index) {
        return this.cell(index).locator('.jp-Cell-outputArea');
    }

    prompt(index) {
        return this.cell(index).locator('.jp-InputArea-prompt');
    }

    // Puts the cursor at the end of a cell.
    async edit(index) {
        await this.editor(index).click();
        await this.page.keyboard.press('Control+End');
    }

    // Ctrl+Enter; returns at once.
    async run(index) {
        await this.edit(index);
        await this.page.keyboard.press('Control+Enter');
    }

    // Runs it and waits for its number.
    async runToEnd(index) {
        await this.run(index);
        await this.finished(index);
    }

    finished(index) {
        return this.page.waitForFunction(
            ([at]) => {
                const notebook = [...document.querySelectorAll('.jp-Notebook')].find(n => n.offsetParent);
                const cell = notebook?.querySelectorAll('.jp-Cell')[at];
                return /\[\d+\]/.test(cell?.querySelector('.jp-InputArea-prompt')?.textContent || '');
            },
            [index],
            { timeout: WAIT_MS }
        );
    }

    // Waits until a cell's output says this.
    async says(index, text) {
        await this.output(index).filter({ hasText: text }).waitFor();
    }

    async outputText(index) {
        return (await this.output(index).locator('.jp-OutputArea-output').allTextContents()).join('');
    }

    async toolbar(title) {
        await this.page.locator(`.jp-NotebookPanel-toolbar:visible [title^="${title}"]`).first().click();
    }

    async interrupt() {
        await this.toolbar('Interrupt the kernel');
    }

    async restart() {
        await this.toolbar('Restart the kernel');
        await this.page.locator('.jp-Dialog-button.jp-mod-accept').click();
    }

    // Ctrl+S, until the tab no longer shows unsaved changes.
    async save() {
        await this.page.keyboard.press('Control+s');
        await this.page.locator('.lm-TabBar-tab.lm-mod-current.jp-mod-dirty').waitFor({ state: 'detached' });
    }

    async reload() {
        await this.page.reload();
        await this.ready();
    }

    request(method, path) {
        const headers = { Authorization: `token ${this.lab.token}` };
        return fetch(this.lab.url + path, { method, headers });
    }

    // JupyterLab's sessions of this notebook: one, once its kernel has started.
    async sessions() {
        const all = await (await this.request('GET', '/api/sessions')).json();
        return all.filter(each => each.path === this.name);
    }

    async kernelModel() {
        const [session] = await this.sessions();
        return (await this.request('GET', `/api/kernels/${session.kernel.id}`)).json();
    }

    // As another client than the page.
    async interruptKernel() {
        const [session] = await this.sessions();
        await this.request('POST', `/api/kernels/${session.kernel.id}/interrupt`);
    }

    // Closes the page and ends the kernel, as the running-kernels panel does.
    async shutDown() {
        await this.page.close({ runBeforeUnload: false });
        for (const session of await this.sessions()) {
            await this.request('DELETE', `/api/sessions/${session.id}`);
        }
    }
}

module.exports = { NotebookPage, WAIT_MS, openBrowser, readNotebook, writeNotebook };
