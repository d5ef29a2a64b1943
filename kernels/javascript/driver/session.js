// SPDX-License-Identifier: Apache-2.0
//
// The main thread: runs cells, one after the other, in the global scope.
'use strict';

const { Atomics, Error, Int32Array, Map, Number, Object, TypeError, process, setImmediate } = globalThis;
const path = require('node:path');
const util = require('node:util');
const vm = require('node:vm');
const { MessageChannel, Worker } = require('node:worker_threads');

const { Cell } = require('./cell');
const channel = require('./channel');
const { watchWaits } = require('./children');
const { Display, bundleOf, inspect, makeDisplay } = require('./display');
const { Errors, KeyboardInterrupt, ProcessExit } = require('./errors');
const { Introspector } = require('./introspect');
const { Modules, cellFile } = require('./modules');
const { Questions } = require('./questions');
const { installStreams, watchGroups } = require('./streams');
const { makeTools } = require('./tools');

const NO_CELL = new Cell({ id: 0 });

class Session {
    // packages: folders that hold node_modules.
    constructor(packages, typescript) {
        this.shared = channel.makeShared();
        this.control = new Int32Array(this.shared.control);
        this.typescript = typescript;
        this.errors = new Errors();
        this.modules = new Modules(packages, { cellkeep: makeTools((event) => this.questions.tool(event)) });
        this.kinds = new Map(); // the top-level names
        this.current = null;
        this.doneId = 0;
        const answers = new MessageChannel();
        this.front = new Worker(path.join(__dirname, 'front.js'), {
            workerData: {
                shared: this.shared,
                typescript,
                answers: answers.port2,
                banner: `${typescript ? 'TypeScript on ' : ''}Node.js ${process.version}`,
                languageInfo: typescript ? {} : { version: process.versions.node },
            },
            transferList: [answers.port2],
            // User code may set what it likes; the front thread keeps what it began with.
            env: { ...process.env },
        });
        this.writer = new channel.Writer(this.shared, () => this.front.postMessage(null));
        this.questions = new Questions(this.control, this.writer, answers.port1, () => this.current);
        this.names = new Introspector(this.kinds, typescript);
    }

    start() {
        this.streams = installStreams(this.writer);
        this.endGroups = watchGroups();
        watchWaits(this.shared);
        this.#installGlobals();
        this.#installProcess();
        this.front.on('message', (message) => this.#message(message));
        this.front.on('error', (error) => {
            require('node:fs').writeSync(2, `the driver's front thread failed: ${error.stack}\n`);
            process.reallyExit(70);
        });
    }

    #installGlobals() {
        const { errors, modules } = this;
        const mainModule = { exports: {}, id: '.', path: process.cwd(), loaded: false, children: [], paths: [] };
        const define = (name, property) =>
            Object.defineProperty(globalThis, name, { configurable: true, enumerable: false, ...property });
        const value = (name, it) => define(name, { value: it, writable: true });
        this.host = {
            cell: NO_CELL,
            constants: {},
            meta: modules.makeMeta(),
            import: (specifier, importOptions) => errors.locate(() => modules.import(specifier, importOptions)),
            load: (...rest) => errors.locate(() => modules.load(...rest)),
        };
        Object.defineProperty(globalThis, '$cellkeep', { value: this.host });
        value('require', modules.makeRequire(mainModule));
        value('module', mainModule);
        value('exports', mainModule.exports);
        define('__dirname', { get: () => process.cwd(), set: (it) => value('__dirname', it) });
        define('__filename', { get: cellFile, set: (it) => value('__filename', it) });
        value('display', makeDisplay((event) => this.writer.event(event)));
        value('prompt', (text) => this.questions.prompt(text));
        value('input', (text, inputOptions) => this.questions.input(text, inputOptions));
        Error.prepareStackTrace = (error, sites) => errors.prepare(error, sites);
        Error.stackTraceLimit = 30;
    }

    #installProcess() {
        process.exit = (code) => {
            throw new ProcessExit(code ?? process.exitCode ?? 0);
        };
        process.on('SIGINT', () => {}); // interrupts come as requests
        process.on('exit', () => this.writer.flush());
        process.on('uncaughtException', (error) => this.#uncaught(error, 'Uncaught'));
        process.on('unhandledRejection', (error) => this.#uncaught(error, 'Uncaught (in promise)'));
    }

    #uncaught(error, what) {
        if (error instanceof ProcessExit) {
            if (this.current !== null) {
                this.#fail(this.current, error);
            }
        } else if (!(error instanceof KeyboardInterrupt)) {
            this.writer.text(channel.STDERR, this.errors.describeUncaught(error, what));
        }
    }

    #message(message) {
        switch (message.request) {
            case 'execute':
                this.#execute(message);
                break;
            case 'interrupt':
                this.#interrupt(message.id);
                break;
            case 'answered':
                this.questions.answered();
                break;
            case 'adopt':
                this.#reply(message, () => this.#adopt(message));
                break;
            case 'complete':
                this.#reply(message, () => this.names.complete(message.code, message.cursor));
                break;
            case 'inspect':
                this.#reply(message, () => this.names.inspect(message.code, message.cursor, message.detail));
                break;
            case 'end':
                process.reallyExit(0);
        }
    }

    #reply(request, make) {
        let answer;
        try {
            answer = make();
        } catch (error) {
            answer = { status: 'error', name: error.name, message: error.message, traceback: [] };
        }
        this.writer.done({ event: 'done', id: request.id, ...answer });
    }

    #adopt({ env, directory }) {
        Object.assign(process.env, env);
        if (directory) {
            process.chdir(directory);
        }
        return { status: 'ok' };
    }

    // --- cells ---

    #execute(request) {
        const cell = new Cell(request);
        this.current = cell;
        this.host.cell = cell;
        if (this.#isInterrupted(cell)) {
            this.front.postMessage({ forget: request.prepared.declare });
            this.#interrupt(cell.id);
            return;
        }
        let value;
        try {
            value = this.#run(cell);
        } catch (error) {
            this.#fail(cell, error);
            return;
        }
        if (request.prepared.awaits) {
            this.#settle(cell, value);
        } else {
            this.#succeed(cell, value);
        }
    }

    #run(cell) {
        const { count, source, js, map, prepared } = cell.request;
        cell.fileName = this.errors.add(count, source, js, map, prepared);
        if (prepared.declare.length > 0) {
            try {
                vm.runInThisContext(`let ${prepared.declare.join(', ')};`, { filename: 'cellkeep:declare' });
            } catch (error) {
                this.front.postMessage({ forget: prepared.declare });
                throw error;
            }
        }
        prepared.kinds.forEach(([name, kind]) => this.kinds.set(name, kind));
        prepared.guards.forEach((name) => this.#guard(name));
        const script = new vm.Script(prepared.code, {
            filename: cell.fileName,
            importModuleDynamically: vm.constants?.USE_MAIN_CONTEXT_DEFAULT_LOADER,
        });
        return script.runInThisContext({ displayErrors: false });
    }

    // The way to assign to what is, or has been, a constant.
    #guard(name) {
        const { constants } = this.host;
        if (Object.hasOwn(constants, name)) {
            return;
        }
        const access = vm.runInThisContext(`({ get: () => ${name}, set: ($v) => { ${name} = $v; } })`);
        const { kinds } = this;
        Object.defineProperty(constants, name, {
            get: access.get,
            set(value) {
                if (kinds.get(name) === 'const') {
                    throw new TypeError('Assignment to constant variable.');
                }
                access.set(value);
            },
        });
    }

    #settle(cell, promise) {
        promise.then(
            (value) => this.#succeed(cell, value),
            (error) => this.#fail(cell, error),
        );
    }

    #succeed(cell, value) {
        if (this.current !== cell) {
            return;
        }
        if (util.types.isPromise(value)) {
            this.#settle(cell, cell.wait(value));
            return;
        }
        let shown;
        let expressions;
        try {
            expressions = this.#userExpressions(cell.request.user_expressions);
            shown = this.#shown(cell, value);
        } catch (error) {
            this.#fail(cell, error);
            return;
        }
        const finish = (bundle) =>
            // Promises that were rejected and callbacks that are due are the cell's own.
            setImmediate(() => {
                if (this.current !== cell) {
                    return;
                }
                // What it waited for has ended by the interrupt, and it has not noticed.
                if (this.#isInterrupted(cell)) {
                    this.#fail(cell, new KeyboardInterrupt());
                    return;
                }
                if (bundle !== null) {
                    this.writer.event({ event: 'result', ...bundle });
                }
                this.#done(cell, { status: 'ok', ...expressions });
            });
        if (util.types.isPromise(shown)) {
            cell.wait(shown).then(finish, (error) => this.#fail(cell, error));
        } else {
            finish(shown);
        }
    }

    #shown(cell, value) {
        if (value === undefined || cell.request.silent || value instanceof Display) {
            return null;
        }
        return bundleOf(value);
    }

    #userExpressions(expressions) {
        if (!expressions || Object.keys(expressions).length === 0) {
            return {};
        }
        const found = {};
        for (const [name, code] of Object.entries(expressions)) {
            try {
                const value = vm.runInThisContext(`(${code}\n)`, { filename: 'expression', displayErrors: false });
                found[name] = { status: 'ok', data: { 'text/plain': inspect(value) }, metadata: {} };
            } catch (error) {
                const { name: ename, message: evalue, traceback } = this.errors.describe(error, null);
                found[name] = { status: 'error', ename, evalue, traceback };
            }
        }
        return { user_expressions: found };
    }

    #fail(cell, error) {
        if (this.current !== cell) {
            return;
        }
        if (error instanceof ProcessExit) {
            const exit_code = Number(error.exitCode) & 0xff;
            if (exit_code === 0) {
                this.#done(cell, { status: 'ok', exit_code });
            } else {
                this.#done(cell, { ...this.errors.describe(error, cell.fileName), exit_code });
            }
            return;
        }
        // A child that the interrupt has ended, or clean-up that has failed, is the interrupt's doing.
        const cause = this.#isInterrupted(cell) ? new KeyboardInterrupt() : error;
        this.#done(cell, this.errors.describe(cause, cell.fileName));
    }

    #isInterrupted(cell) {
        return Atomics.load(this.control, channel.INTERRUPTED) === cell.id;
    }

    // Safe to be ended by an interrupt anywhere: the front thread takes the first `done` only.
    #done(cell, answer) {
        this.endGroups();
        this.writer.done({ event: 'done', id: cell.id, ...answer });
        this.doneId = cell.id;
        this.current = null;
        this.host.cell = NO_CELL;
    }

    #interrupt(id) {
        const cell = this.current;
        if (cell === null || cell.id !== id) {
            if (this.doneId !== id) {
                const lost = new Cell({ id }); // its `done` was cut off
                this.#done(lost, this.errors.describe(new KeyboardInterrupt(), null));
            }
            return;
        }
        cell.interrupt();
        // What catches it or cleans up has this turn of the loop.
        setImmediate(() => this.#fail(cell, new KeyboardInterrupt()));
    }
}

module.exports = { Session };
