// SPDX-License-Identifier: Apache-2.0
//
// The programs under test and around them: a Cellkeep server, a JupyterLab server, and for the
// tests' own sake a stock Jupyter server in Cellkeep's place (CELLKEEP_BROWSER_STOCK=1): a test that
// passes there and fails here shows a fault of Cellkeep, one that fails at both a fault of the test.
'use strict';

const { spawn } = require('node:child_process');
const fs = require('node:fs');
const net = require('node:net');
const os = require('node:os');
const path = require('node:path');

const ROOT = path.resolve(__dirname, '../../..');
const LAB = path.join(ROOT, 'build/environments/lab/bin');
const TOKEN = 't0ken-of-the-tests';
const STOCK = process.env.CELLKEEP_BROWSER_STOCK === '1';
const START_SECONDS_MAX = 90;
const STOP_SECONDS_MAX = 120;
const KILL_SECONDS = 130;

function binary() {
    return process.env.CELLKEEP_BINARY || path.join(ROOT, 'build/release/bin/cellkeep');
}

// Calls `condition` again and again until it returns a truthy value, and returns that. `condition`
// may be async. The other side has no way to notify us.
async function until(condition, what, seconds = 60) {
    const deadline = Date.now() + seconds * 1000;
    for (;;) {
        const found = await condition();
        if (found) {
            return found;
        }
        if (Date.now() > deadline) {
            throw new Error(`after ${seconds} s still not: ${what}`);
        }
        await new Promise(resolve => setTimeout(resolve, 50));
    }
}

// A port that was free a moment ago; for programs that cannot say which one they took.
function freePort() {
    return new Promise((resolve, reject) => {
        const probe = net.createServer();
        probe.once('error', reject);
        probe.listen(0, '127.0.0.1', () => {
            const { port } = probe.address();
            probe.close(() => resolve(port));
        });
    });
}

class Program {
    // Starts the command; its output goes to a file that a failing test prints.
    constructor(name, command, options) {
        this.name = name;
        this.stopSignal = options.stopSignal ?? 'SIGINT';
        this.log = path.join(options.folder, `${name}.log`);
        const log = fs.openSync(this.log, 'a');
        this.process = spawn(command[0], command.slice(1), {
            cwd: options.cwd || options.folder,
            env: { ...process.env, ...options.env },
            stdio: ['ignore', log, log, options.ready ? 'pipe' : 'ignore'],
        });
        fs.closeSync(log);
        this.ended = new Promise(resolve => {
            this.process.once('error', error => resolve(String(error)));
            this.process.once('exit', (code, signal) => resolve(signal || `exit status ${code}`));
        });
    }

    output() {
        return fs.readFileSync(this.log, 'utf8');
    }

    alive() {
        return this.process.exitCode === null && this.process.signalCode === null;
    }

    async ready(condition) {
        try {
            await until(
                async () => {
                    if (!this.alive()) {
                        throw new Error(`${this.name} ended: ${await this.ended}`);
                    }
                    return condition();
                },
                `${this.name} is ready`,
                START_SECONDS_MAX
            );
        } catch (error) {
            this.process.kill('SIGKILL');
            throw new Error(`${error.message}\n${this.output()}`);
        }
    }

    async stop(signal = this.stopSignal) {
        if (!this.alive()) {
            return `${this.name} had ended before it was stopped: ${await this.ended}`;
        }
        this.process.kill(signal);
        // A Python program says on SIGABRT where each of its threads is (PYTHONFAULTHANDLER).
        const late = setTimeout(() => this.process.kill('SIGABRT'), STOP_SECONDS_MAX * 1000);
        const lost = setTimeout(() => this.process.kill('SIGKILL'), KILL_SECONDS * 1000);
        const how = await this.ended;
        clearTimeout(late);
        clearTimeout(lost);
        if (how !== 'exit status 0') {
            console.log(`${this.name} ended with ${how}:\n${this.output()}`);
        }
        return how;
    }
}

async function answers(url, token) {
    try {
        const response = await fetch(url, { headers: { Authorization: `token ${token}` } });
        await response.text();
        return response.ok;
    } catch {
        return false;
    }
}

// A home of its own for every Jupyter program: nothing of this machine's user is read or written.
function jupyterHome(folder) {
    const home = path.join(folder, 'home');
    const settings = path.join(home, 'settings');
    const notification = path.join(settings, '@jupyterlab/apputils-extension');
    fs.mkdirSync(notification, { recursive: true });
    fs.writeFileSync(
        path.join(notification, 'notification.jupyterlab-settings'),
        JSON.stringify({ fetchNews: 'false', checkForUpdates: false })
    );
    // JupyterLab forgets completions that take longer than a second; a busy machine may need it.
    const completer = path.join(settings, '@jupyterlab/completer-extension');
    fs.mkdirSync(completer, { recursive: true });
    fs.writeFileSync(
        path.join(completer, 'manager.jupyterlab-settings'),
        JSON.stringify({ providerTimeout: 20_000 })
    );
    const cache = process.env.XDG_CACHE_HOME || path.join(os.homedir(), '.cache');
    return {
        HOME: home,
        // Uses the existing images: packing one again takes longer than the start of a kernel may.
        CELLKEEP_IMAGE_DIR: process.env.CELLKEEP_IMAGE_DIR || path.join(cache, 'cellkeep/images'),
        IPYTHONDIR: path.join(home, 'ipython'),
        JUPYTER_CONFIG_DIR: path.join(home, 'config'),
        JUPYTER_DATA_DIR: path.join(home, 'data'),
        JUPYTER_RUNTIME_DIR: path.join(home, 'runtime'),
        JUPYTERLAB_SETTINGS_DIR: settings,
        JUPYTERLAB_WORKSPACES_DIR: path.join(home, 'workspaces'),
        JUPYTER_PLATFORM_DIRS: '1',
        PYTHONDONTWRITEBYTECODE: '1',
        PYTHONFAULTHANDLER: '1',
    };
}

async function startStock(folder, origin) {
    const port = await freePort();
    const packages = path.join(ROOT, 'build/environments/python/lib/python3.11/site-packages');
    const command = [path.join(LAB, 'jupyter-server'), '--no-browser', `--port=${port}`];
    command.push(`--IdentityProvider.token=${TOKEN}`, '--ServerApp.ip=127.0.0.1', '--allow-root');
    if (origin) {
        command.push(`--ServerApp.allow_origin=${origin}`);
    }
    const program = new Program('stock', command, {
        folder,
        env: { ...jupyterHome(path.join(folder, 'stock')), PYTHONPATH: packages },
    });
    const url = `http://127.0.0.1:${port}`;
    await program.ready(() => answers(`${url}/api/status`, TOKEN));
    return { url, token: TOKEN, program };
}

// The server under test. `origin`: the origin whose pages may use it, besides its own.
async function startGateway(folder, { origin = '', more = [] } = {}) {
    if (STOCK) {
        return startStock(folder, origin);
    }
    const state = path.join(folder, 'state');
    const command = [binary(), 'serve', '--listen', '127.0.0.1:0', '--state-dir', state];
    command.push('--ready-fd', '3', '--log-format', 'text', ...more);
    if (origin) {
        command.push('--allow-origin', origin);
    }
    const program = new Program('cellkeep', command, {
        folder,
        ready: true,
        env: { CELLKEEP_TOKEN: TOKEN },
    });
    let said = '';
    program.process.stdio[3].on('data', data => {
        said += data;
    });
    await program.ready(() => said === 'READY\n');
    const record = JSON.parse(fs.readFileSync(path.join(state, 'server.json'), 'utf8'));
    return { url: record.url.replace(/\/$/, ''), token: TOKEN, program };
}

// JupyterLab over `folder`/notebooks. `gateway`: its kernels come from there; otherwise from the
// kernelspecs under `dataPath`. `dataPath` may also hold lab extensions.
async function startLab(folder, { gateway = null, dataPath = '', env = {} } = {}) {
    const port = await freePort();
    const notebooks = path.join(folder, 'notebooks');
    fs.mkdirSync(notebooks, { recursive: true });
    const command = [path.join(LAB, 'jupyter-lab'), '--no-browser', `--port=${port}`];
    command.push(`--IdentityProvider.token=${TOKEN}`, '--ServerApp.ip=127.0.0.1', '--allow-root');
    command.push(`--ServerApp.root_dir=${notebooks}`, '--LabApp.extension_manager=readonly');
    const environment = { ...jupyterHome(path.join(folder, 'lab')), ...env };
    if (dataPath) {
        environment.JUPYTER_PATH = dataPath;
    }
    if (gateway) {
        command.push(`--gateway-url=${gateway.url}`);
        environment.JUPYTER_GATEWAY_AUTH_TOKEN = gateway.token;
    }
    // Without a terminal Jupyter Server leaves SIGINT to Python, whose KeyboardInterrupt is lost if it
    // comes in a finalizer or a callback of C code. SIGTERM it handles itself.
    const program = new Program('lab', command, { folder, env: environment, stopSignal: 'SIGTERM' });
    const url = `http://127.0.0.1:${port}`;
    await program.ready(() => answers(`${url}/api/status`, TOKEN));
    return { url, token: TOKEN, program, notebooks };
}

// A Jupyter data directory with Cellkeep's lab extension, as pip would install it; with
// `kernelspec`, also with `cellkeep kernelspec install`ed there.
async function dataDirectory(folder, { kernelspec = false } = {}) {
    const data = path.join(folder, 'prefix/share/jupyter');
    fs.mkdirSync(path.join(data, 'labextensions'), { recursive: true });
    fs.symlinkSync(
        path.join(ROOT, 'kernel-manager/jupyter/labextension/cellkeep_lab'),
        path.join(data, 'labextensions/cellkeep')
    );
    if (kernelspec) {
        const command = [binary(), 'kernelspec', 'install', '--prefix', path.join(folder, 'prefix')];
        const how = await new Program('kernelspec', command, { folder }).ended;
        if (how !== 'exit status 0') {
            const said = fs.readFileSync(path.join(folder, 'kernelspec.log'), 'utf8');
            throw new Error(`cellkeep kernelspec install: ${how}\n${said}`);
        }
    }
    return data;
}

function scratch() {
    return fs.mkdtempSync(path.join(os.tmpdir(), 'ck-browser-'));
}

module.exports = {
    LAB,
    ROOT,
    STOCK,
    TOKEN,
    binary,
    dataDirectory,
    freePort,
    scratch,
    startGateway,
    startLab,
    until,
};
