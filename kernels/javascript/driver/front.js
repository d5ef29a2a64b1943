// SPDX-License-Identifier: Apache-2.0
//
// The front thread. It owns descriptors 3 and 4, so requests are read and output is written whatever
// user code does; it parses and rewrites cells; and it interrupts the main thread.
'use strict';

const fs = require('node:fs');
const inspector = require('node:inspector');
const net = require('node:net');
const { parentPort, workerData } = require('node:worker_threads');

const channel = require('./channel');
const { Compiler } = require('./compile');
const { interruptChildren } = require('./children');
const { lineText, offsetToSubmitted } = require('./positions');
const { CodeSyntaxError, completeness, parse } = require('./syntax');

const REQUESTS_FD = 3;
const EVENTS_FD = 4;
const LINE_BYTES_MAX = 128 * 1024 * 1024;
// The most bytes that are taken from the ring between two looks at requests, and text in one event.
const SLICE_BYTES = 256 * 1024;
const EVENT_TEXT_MAX = 128 * 1024;
// A cell that waits ends itself on an interrupt. One that has not ended after this is terminated.
const SOFT_INTERRUPT_MS = 50;
const RETRY_INTERRUPT_MS = 250;
// After descriptor 3 has closed, user code has this long to let the process end.
const END_GRACE_MS = 1000;

const typescript = workerData.typescript ? require('./typescript') : null;

// Descriptor 4: records of the ring and our own events, in order.
class Events {
    constructor(onDone) {
        this.reader = new channel.Reader(workerData.shared);
        this.socket = new net.Socket({ fd: EVENTS_FD, readable: false, writable: true });
        this.socket.on('error', () => process.kill(process.pid, 'SIGKILL')); // the kernel is gone
        this.socket.on('drain', () => this.drain());
        this.onDone = onDone;
        this.pieces = [];
        this.scheduled = false;
    }

    // An event of the front thread's own, after everything that is in the ring at this moment.
    send(event) {
        const there = this.reader.available;
        if (there > 0) {
            this.drain(there, true);
        }
        this.socket.write(channel.toJson(event) + '\n');
    }

    // evenIfFull: what the socket cannot take now, it keeps.
    drain(bytes_max = SLICE_BYTES, evenIfFull = false) {
        let kind = 0;
        let text = [];
        let size = 0;
        const flush = () => {
            if (size > 0) {
                const event = kind === channel.STDOUT ? 'stdout' : 'stderr';
                this.#write(channel.toJson({ event, text: Buffer.concat(text, size).toString() }) + '\n');
            }
            text = [];
            size = 0;
        };
        for (let taken = 0; ; ) {
            if (taken >= bytes_max || (!evenIfFull && this.socket.writableNeedDrain)) {
                flush();
                if (!this.socket.writableNeedDrain) {
                    setImmediate(() => this.drain());
                }
                return;
            }
            const record = this.reader.next();
            if (record === null) {
                flush();
                if (this.reader.sleep()) {
                    this.#ended();
                    return;
                }
                continue;
            }
            taken += channel.HEADER_BYTES + record[1].length;
            if (record[0] === channel.STDOUT || record[0] === channel.STDERR) {
                if (record[0] !== kind || size > EVENT_TEXT_MAX) {
                    flush();
                }
                kind = record[0];
                text.push(record[1]);
                size += record[1].length;
            } else {
                flush();
                this.#event(record[0], record[1]);
            }
        }
    }

    #event(kind, bytes) {
        this.pieces.push(bytes);
        if (kind === channel.PIECE) {
            return;
        }
        const whole = this.pieces.length === 1 ? bytes : Buffer.concat(this.pieces);
        this.pieces = [];
        if (kind === channel.DONE) {
            // An interrupt can make the main thread say it twice.
            const id = Number(/^\{"event":"done","id":(\d+)/.exec(whole.toString('latin1', 0, 64))[1]);
            if (!this.onDone(id, whole)) {
                return;
            }
        }
        this.#write(whole);
    }

    #write(data) {
        this.socket.write(data);
    }

    // The process ends as soon as this is written.
    #ended() {
        const { control } = this.reader;
        if (Atomics.load(control, channel.ENDING) === 1) {
            this.socket.write('', () => {
                Atomics.store(control, channel.ENDING, 2);
                Atomics.notify(control, channel.ENDING);
            });
        }
    }
}

// Ends what the main thread does: first by asking, then by terminating its JavaScript, which leaves
// all state as it is. Goes on until the request is done.
class Interrupter {
    constructor(control, onSettled) {
        this.control = control;
        this.onSettled = onSettled;
        this.timer = null;
        this.session = null;
    }

    // A termination is on its way. One that finds nothing to end is for the next thing that runs.
    get isPending() {
        return this.session !== null;
    }

    begin(id) {
        if (this.timer !== null) {
            return;
        }
        Atomics.store(this.control, channel.INTERRUPTED, id);
        parentPort.postMessage({ request: 'interrupt', id });
        interruptChildren(this.control);
        this.timer = setTimeout(() => this.#terminate(id), SOFT_INTERRUPT_MS);
    }

    // The request is done.
    end() {
        clearTimeout(this.timer);
        this.timer = null;
        if (this.isPending) {
            parentPort.postMessage({ request: 'nothing' }); // for it to hit
        }
    }

    #terminate(id) {
        this.timer = setTimeout(() => this.#terminate(id), RETRY_INTERRUPT_MS);
        interruptChildren(this.control);
        if (this.session !== null) {
            return; // the main thread has not come to it: it is in a system call
        }
        this.session = new inspector.Session();
        this.session.connectToMainThread();
        this.session.post('Runtime.terminateExecution', () => {
            this.session.disconnect();
            this.session = null;
            parentPort.postMessage({ request: 'interrupt', id });
            this.onSettled();
        });
    }
}

class Front {
    constructor() {
        this.compiler = new Compiler();
        this.running = null; // the request that the main thread works on
        this.waiting = []; // what came meanwhile
        this.answers = workerData.answers;
        this.events = new Events((id, bytes) => this.#done(id, bytes));
        this.interrupter = new Interrupter(this.events.reader.control, () => {
            this.events.drain(); // what it ended may have been just about to wake us
            this.#next();
        });
        this.control = this.events.reader.control;
    }

    start() {
        typescript?.load();
        parse('0');
        const input = new net.Socket({ fd: REQUESTS_FD, readable: true, writable: false });
        let parts = [];
        let size = 0;
        input.on('data', (data) => {
            let at = 0;
            for (let end; (end = data.indexOf(10, at)) >= 0; at = end + 1) {
                const line = Buffer.concat([...parts, data.subarray(at, end)]).toString();
                parts = [];
                size = 0;
                this.#line(line);
            }
            parts.push(data.subarray(at));
            size += data.length - at;
            if (size > LINE_BYTES_MAX) {
                this.#fault('a request is too long');
            }
        });
        const ended = () => {
            parentPort.postMessage({ request: 'end' });
            setTimeout(() => process.kill(process.pid, 'SIGKILL'), END_GRACE_MS);
        };
        input.on('end', ended);
        input.on('error', ended);
        parentPort.on('message', (message) => this.#fromMain(message));
        this.events.send({
            event: 'ready',
            version: process.versions.node,
            banner: workerData.banner,
            language_info: workerData.languageInfo,
        });
        this.events.drain();
    }

    #fault(text) {
        fs.writeSync(2, `the driver cannot go on: ${text}\n`);
        process.kill(process.pid, 'SIGKILL');
    }

    #fromMain(message) {
        if (message !== null && message.forget) {
            this.compiler.forget(message.forget);
        }
        this.events.drain();
    }

    #line(line) {
        const request = JSON.parse(line);
        switch (request.request) {
            case 'interrupt':
                this.#interrupt();
                return;
            case 'input':
                this.#answered(request.eof ? null : String(request.value));
                return;
            case 'tool':
            case 'tools':
                this.#answered(request);
                return;
        }
        this.waiting.push(request);
        this.#next();
    }

    // To the question that the cell has asked.
    #answered(answer) {
        this.answers.postMessage(answer);
        Atomics.add(this.control, channel.ANSWERED, 1);
        Atomics.notify(this.control, channel.ANSWERED);
        parentPort.postMessage({ request: 'answered' });
    }

    // The cell that runs, or that waits for the end of the one before to be settled.
    #interrupt() {
        const cell = [this.running, ...this.waiting].find((request) => request?.request === 'execute');
        if (cell === undefined) {
            return;
        }
        cell.interrupted = true;
        if (cell === this.running) {
            this.interrupter.begin(cell.id);
        }
    }

    #begin(request) {
        switch (request.request) {
            case 'execute':
                this.#execute(request);
                break;
            case 'is_complete':
                this.#answer(request, completeness(request.code, (code) => this.#check(code)));
                break;
            case 'complete':
            case 'inspect':
            case 'adopt':
                this.running = request;
                parentPort.postMessage(request);
                break;
            default:
                this.#answer(request, {
                    status: 'error',
                    name: 'NotImplementedError',
                    message: `${request.request} is not implemented`,
                    traceback: [],
                });
        }
    }

    #answer(request, fields) {
        this.events.send({ event: 'done', id: request.id, ...fields });
    }

    #done(id) {
        if (this.running?.id !== id) {
            return false;
        }
        this.running = null;
        this.interrupter.end();
        if (this.waiting.length > 0) {
            setImmediate(() => this.#next());
        }
        return true;
    }

    #next() {
        while (this.running === null && !this.interrupter.isPending && this.waiting.length > 0) {
            this.#begin(this.waiting.shift());
        }
    }

    #check(code) {
        parse(typescript === null ? code : typescript.toJavaScript(code).code);
    }

    #execute(request) {
        const { code, ...rest } = request;
        let js = { code, map: null };
        let prepared;
        try {
            if (typescript !== null) {
                js = typescript.toJavaScript(code);
            }
            prepared = this.compiler.prepare(js.code, js.map !== null);
        } catch (error) {
            if (!(error instanceof CodeSyntaxError)) {
                throw error;
            }
            this.#syntaxError(request, js, error);
            return;
        }
        this.running = request;
        parentPort.postMessage({ ...rest, source: code, js: js.code, map: js.map, prepared });
        if (request.interrupted) {
            this.interrupter.begin(request.id);
        }
    }

    #syntaxError(request, js, error) {
        // The text that the library wrote has a map, its parser did not see it: as exact as it gets.
        const at = js.map === null ? offsetToSubmitted(request.code, error.offset) : {};
        const { line, column } = at;
        const traceback = [`${error.name}: ${error.message}`];
        if (line !== undefined) {
            const text = lineText(request.code, line);
            const caret = ' '.repeat(Math.max(column - 1, 0)) + '^';
            traceback.unshift(`[cell ${request.count}]:${line}:${column}`, text, caret, '');
        }
        this.#answer(request, {
            status: 'error',
            name: error.name,
            message: error.message,
            traceback,
            kind: 'syntax',
            ...at,
        });
    }
}

new Front().start();
