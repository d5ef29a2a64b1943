// SPDX-License-Identifier: Apache-2.0
//
// prompt() and input(): what a cell asks the person at the client.
'use strict';

const { Atomics, Error, Promise, String } = globalThis;
const { receiveMessageOnPort } = require('node:worker_threads');

const { ANSWERED } = require('./channel');

class Questions {
    // port: where the front thread puts answers, one for each that it adds to ANSWERED.
    constructor(control, writer, port, currentCell) {
        this.control = control;
        this.writer = writer;
        this.port = port;
        this.currentCell = currentCell;
        this.waits = null; // {cell, resolve} of the input() that has no answer yet
        port.unref();
    }

    // Waits for the answer, and everything with it; null at the end of the input.
    prompt(text) {
        const before = Atomics.load(this.control, ANSWERED);
        this.#ask(text, false);
        while (Atomics.load(this.control, ANSWERED) === before) {
            Atomics.wait(this.control, ANSWERED, before);
        }
        return receiveMessageOnPort(this.port).message;
    }

    // A promise of the answer.
    async input(text, options) {
        this.#ask(text, options?.password === true);
        const cell = this.currentCell();
        const waits = { cell };
        this.waits = waits;
        try {
            return await cell.wait(new Promise((resolve) => (waits.resolve = resolve)));
        } finally {
            if (this.waits === waits) {
                this.waits = null;
            }
        }
    }

    // The front thread says that an answer has come.
    answered() {
        const answer = this.waits === null ? undefined : receiveMessageOnPort(this.port);
        if (answer !== undefined) {
            this.waits.resolve(answer.message); // else prompt() has taken it already
        }
    }

    #ask(text, password) {
        if (!this.currentCell()?.request.allow_stdin) {
            throw new Error('input is not possible here: the request does not allow it');
        }
        // One that a cell has not waited for ends with it.
        if (this.waits !== null && this.waits.cell === this.currentCell()) {
            throw new Error('one question at a time');
        }
        this.waits = null;
        while (receiveMessageOnPort(this.port) !== undefined) {
            // A late answer, to a question that has ended.
        }
        this.writer.event({ event: 'input', prompt: text === undefined ? '' : String(text), password });
    }
}

module.exports = { Questions };
