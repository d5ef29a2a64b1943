// SPDX-License-Identifier: Apache-2.0
//
// What a person does in JupyterLab, with kernels of any source. Each case has a notebook, a page and
// a kernel of its own.
'use strict';

const assert = require('node:assert/strict');
const fs = require('node:fs');
const path = require('node:path');
const { test } = require('node:test');
const { NotebookPage, readNotebook, writeNotebook } = require('./browser.cjs');
const { until } = require('./processes.cjs');

const PICTURES = process.env.CELLKEEP_SCREENSHOTS || '';

async function picture(page, name) {
    if (PICTURES) {
        fs.mkdirSync(PICTURES, { recursive: true });
        await page.mouse.move(0, 0);
        await page.screenshot({ path: path.join(PICTURES, `${name}.png`) });
    }
}

function counted(count) {
    return Array.from({ length: count }, (_, i) => `${i}\n`).join('');
}

// Prints numbers until it is interrupted.
const COUNTER = `import time
i = 0
while True:
    print(i, flush=True)
    i += 1
    time.sleep(0.02)`;

// What a COUNTER cell shows must be 0, 1, 2 … without a gap or a repetition, then the interrupt.
function assertCounted(text, least) {
    const [numbers] = text.split(/-{10,}/);
    const lines = numbers.trim().split('\n').map(Number);
    assert.deepEqual(lines, Array.from({ length: lines.length }, (_, i) => i));
    assert.ok(lines.length > least, `${lines.length} numbers`);
    assert.match(text, /KeyboardInterrupt/);
}

// `setup()` gives { context, lab, kernel } once JupyterLab runs.
function labCases(setup) {
    function labTest(claim, sources, body, options = {}) {
        test(claim, { timeout: 240_000 }, async () => {
            const { context, lab, kernel } = setup();
            const name = `${claim.replace(/\W+/g, '-').slice(0, 40).toLowerCase()}.ipynb`;
            writeNotebook(lab, options.name || name, sources, kernel);
            const notebook = await NotebookPage.open(context, lab, options.name || name);
            try {
                await body(notebook);
            } catch (error) {
                console.log(notebook.complaints.join('\n'));
                console.log(await notebook.notebook.innerText().catch(String));
                if (process.env.CELLKEEP_BROWSER_FAILURES) {
                    const file = path.join(process.env.CELLKEEP_BROWSER_FAILURES, `${name}.png`);
                    await notebook.page.screenshot({ path: file }).catch(() => {});
                }
                throw error;
            } finally {
                await notebook.shutDown();
            }
        });
    }

    labTest(
        'cells run, a figure and a table are seen, and the file keeps them',
        [
            "print('Hello from the kernel')",
            `import matplotlib.pyplot as plt
import numpy as np
x = np.linspace(0, 10, 200)
fig, ax = plt.subplots(figsize=(5, 1.8))
ax.plot(x, np.sin(x));`,
            `import pandas as pd
from vega_datasets import data
data.seattle_weather().groupby('weather')[['temp_max', 'wind']].mean().round(1)`,
        ],
        async notebook => {
            await notebook.runToEnd(0);
            await notebook.says(0, 'Hello from the kernel');
            await notebook.runToEnd(1);
            const image = notebook.output(1).locator('img');
            await image.waitFor();
            assert.ok((await image.evaluate(node => node.naturalWidth)) > 200);
            await notebook.runToEnd(2);
            const table = notebook.output(2).locator('table');
            await table.waitFor();
            assert.equal(await table.locator('tbody tr').count(), 5);
            await table.scrollIntoViewIfNeeded();
            await picture(notebook.page, 'figure-and-table');
            await notebook.save();
            const saved = readNotebook(notebook.lab, notebook.name);
            assert.equal(saved.cells[0].outputs[0].text.toString(), 'Hello from the kernel\n');
            assert.ok(saved.cells[1].outputs[0].data['image/png'].length > 1000);
            assert.ok(saved.cells[2].outputs[0].data['text/html'].toString().includes('<table'));
        },
        { name: 'weather.ipynb' }
    );

    labTest(
        'an endless loop is interrupted; a restart forgets variables',
        ['x = 1\nwhile True: pass', "print('x is', x)", "print('still here')"],
        async notebook => {
            await notebook.run(0);
            await notebook.busy();
            await notebook.interrupt();
            await notebook.says(0, 'KeyboardInterrupt');
            await notebook.runToEnd(1);
            await notebook.says(1, 'x is 1');
            await notebook.restart();
            await notebook.idle();
            await notebook.run(1);
            await notebook.says(1, "NameError: name 'x' is not defined");
            await notebook.runToEnd(2);
            await notebook.says(2, 'still here');
        }
    );

    labTest(
        'Tab completes and Shift+Tab explains',
        ['number_of_cells = 3\nnumber_of_rows = 4', 'number_of_', 'len'],
        async notebook => {
            const { page } = notebook;
            await notebook.runToEnd(0);
            await notebook.edit(1);
            const match = page.locator('.jp-Completer').getByText('number_of_cells').first();
            await until(async () => {
                await page.keyboard.press('Tab');
                // The first Tab of a page may find the completer not ready.
                return match.waitFor({ timeout: 5000 }).then(() => true, () => false);
            }, 'the completer offers the variable');
            await picture(page, 'completion');
            await match.click();
            await notebook.editor(1).filter({ hasText: 'number_of_cells' }).waitFor();
            await notebook.edit(2);
            await page.keyboard.press('Shift+Tab');
            await page.locator('.jp-Tooltip').getByText('number of items').waitFor();
            await page.keyboard.press('Escape');
        }
    );

    labTest(
        'input() is answered in the page',
        ["name = input('Your name? ')\nprint('Hello', name)"],
        async notebook => {
            await notebook.run(0);
            const field = notebook.output(0).locator('.jp-Stdin-input');
            await field.fill('Ada 😀');
            await field.press('Enter');
            await notebook.says(0, 'Hello Ada 😀');
            await notebook.finished(0);
        }
    );

    labTest(
        "a slider's callback runs in the kernel",
        [
            `import ipywidgets as widgets
from IPython.display import display
slider = widgets.IntSlider(value=3, min=0, max=10, description='n')
label = widgets.HTML()
def moved(change):
    label.value = f"<b>{change['new']} squared is {change['new'] ** 2}</b>"
slider.observe(moved, 'value')
display(slider, label)`,
            'slider.value',
        ],
        async notebook => {
            await notebook.runToEnd(0);
            const handle = notebook.output(0).locator('.noUi-handle');
            await handle.focus();
            await notebook.page.keyboard.press('ArrowRight');
            await notebook.page.keyboard.press('ArrowRight');
            await notebook.says(0, '5 squared is 25');
            await picture(notebook.page, 'slider');
            await notebook.runToEnd(1);
            await notebook.says(1, '5');
        }
    );

    labTest(
        'the debugger stops at a breakpoint in a cell and shows its variables',
        ['a = 20\nb = a + 1\nc = b * 2\nprint(c)'],
        async notebook => {
            const { page } = notebook;
            await notebook.toolbar('Enable Debugger');
            const gutter = notebook.cell(0).locator('.cm-gutter.cm-breakpoint-gutter');
            await gutter.waitFor();
            await gutter.locator('.cm-gutterElement').nth(3).click();
            await page.locator('.jp-DebuggerBreakpoint').first().waitFor();
            await notebook.run(0);
            await page.locator('.jp-DebuggerCallstackFrame').first().waitFor();
            const variables = page.locator('.jp-DebuggerVariables-body');
            await variables.getByText('21').first().waitFor();
            await picture(page, 'debugger');
            await page.locator('.jp-DebuggerSidebar [data-command="debugger:continue"]').click();
            await notebook.finished(0);
            await notebook.says(0, '42');
        }
    );

    labTest(
        'a page that is reloaded during a long cell loses no output and doubles none',
        [COUNTER, "print('next')"],
        async notebook => {
            await notebook.run(0);
            await notebook.says(0, '20\n');
            // Half of the output is in the file, as after an autosave.
            await notebook.page.keyboard.press('Control+s');
            await until(() => {
                const outputs = readNotebook(notebook.lab, notebook.name)?.cells[0].outputs ?? [];
                return outputs.some(each => each.text.toString().includes('20'));
            }, 'the file has a part of the output');
            await notebook.says(0, '60\n');
            await notebook.reload();
            // It goes on where it was: more than there can have been before.
            await notebook.says(0, '\n60\n');
            const reached = (await notebook.outputText(0)).trim().split('\n').length;
            await notebook.says(0, `\n${reached + 50}\n`);
            await notebook.prompt(0).filter({ hasText: '[*]' }).waitFor();
            await picture(notebook.page, 'reloaded-while-running');
            await notebook.interrupt();
            await notebook.finished(0);
            assertCounted(await notebook.outputText(0), reached + 50);
            await notebook.runToEnd(1);
            await notebook.says(1, 'next');
            // Saved and reloaded once more, all of it comes from the file, once.
            await notebook.save();
            const before = await notebook.outputText(0);
            await notebook.reload();
            await notebook.idle();
            assert.equal(await notebook.outputText(0), before);
        }
    );

    labTest(
        'a question that is open when the page is reloaded is asked again and can be answered',
        ["print('before')\nprint('hello', input('name? '))", "print('next')"],
        async notebook => {
            const { page } = notebook;
            const box = page.locator('.jp-Stdin-input');
            await notebook.run(0);
            await box.waitFor();
            await notebook.reload();
            await box.waitFor();
            await notebook.says(0, 'before');
            assert.equal(await box.count(), 1);
            await box.fill('Ada');
            await box.press('Enter');
            await notebook.finished(0);
            await notebook.says(0, 'hello Ada');
            await notebook.runToEnd(1);
            await notebook.says(1, 'next');
        }
    );

    labTest(
        'cells that were running and waiting when the page went away are whole when it comes back',
        [
            // It goes on when the test says so, however long the page takes for what comes before.
            `import time
print('started', flush=True)
try:
    for i in range(100): print(i, flush=True)
    while True: time.sleep(60)
except KeyboardInterrupt:
    for i in range(100, 200): print(i, flush=True)`,
            `from IPython.display import display, HTML
handle = display(HTML('<b>first</b>'), display_id=True)
handle.update(HTML('<i>second</i>'))
print('waited')
'the result'`,
            '1 / 0',
        ],
        async notebook => {
            const { page } = notebook;
            await notebook.run(0);
            await notebook.says(0, '99');
            await notebook.run(1);
            await notebook.run(2);
            await notebook.prompt(2).filter({ hasText: '[*]' }).waitFor();
            await page.goto('about:blank');
            await notebook.interruptKernel();
            await until(
                async () => (await notebook.kernelModel()).execution_state === 'idle',
                'the kernel has done its work'
            );
            await page.goto(notebook.url);
            await notebook.ready();
            await notebook.finished(2);
            assert.equal(await notebook.outputText(0), `started\n${counted(200)}`);
            await notebook.says(1, 'second');
            const shown = await notebook.outputText(1);
            assert.ok(!shown.includes('first'), shown);
            assert.match(shown, /second[^]*waited[^]*'the result'/);
            await notebook.says(2, 'ZeroDivisionError');
            assert.match(await notebook.prompt(0).textContent(), /\[1\]/);
            assert.match(await notebook.prompt(2).textContent(), /\[3\]/);
        }
    );
}

module.exports = { COUNTER, assertCounted, counted, labCases, picture };
