// SPDX-License-Identifier: Apache-2.0
//
// What a cell asks: prompt() and input() the person at the client, a call of a tool its caller.
'use strict';

const { Atomics, Error, Promise, String } = globalThis;
const { receiveMessageOnPort } = require('node:worker_threads');

const { ANSWERED } = require('./channel');
const { ToolError } = require('./tools');

class Questions {
    // port: where the front thread puts answers, one for each that it adds to ANSWERED.
    constructor(control, writer, port, currentCell) {
        this.control = control;
        this.writer = writer;
        this.port = port;
        this.currentCell = currentCell;
        // {cell, resolve, ended, end} of the input() or the call that has no answer yet
        this.waits = null;
        port.unref();
    }

    // Waits for the answer, and everything with it; null at the end of the input.
    prompt(text) {
        const before = Atomics.load(this.control, ANSWERED);
        this.#askClient(text, false);
        while (Atomics.load(this.control, ANSWERED) === before) {
            Atomics.wait(this.control, ANSWERED, before);
        }
        return receiveMessageOnPort(this.port).message;
    }

    // A promise of the answer.
    async input(text, options) {
        this.#askClient(text, options?.password === true);
        return await this.#answer(this.currentCell());
    }

    // A promise of the request that answers this event. The calls of a cell follow one another.
    async tool(event) {
        const cell = this.currentCell();
        while (cell !== null && this.waits?.cell === cell) {
            await cell.wait(this.waits.ended);
        }
        if (cell === null || cell !== this.currentCell()) {
            throw new ToolError('no_caller', 'Tools can be called while a cell runs.');
        }
        this.#ask(event);
        return await this.#answer(cell);
    }

    // The front thread says that an answer has come.
    answered() {
        const answer = this.waits === null ? undefined : receiveMessageOnPort(this.port);
        if (answer !== undefined) {
            this.waits.resolve(answer.message); // else prompt() has taken it already
        }
    }

    async #answer(cell) {
        const waits = { cell };
        waits.ended = new Promise((end) => (waits.end = end));
        this.waits = waits;
        try {
            return await cell.wait(new Promise((resolve) => (waits.resolve = resolve)));
        } finally {
            if (this.waits === waits) {
                this.waits = null;
            }
            waits.end();
        }
    }

    #askClient(text, password) {
        if (!this.currentCell()?.request.allow_stdin) {
            throw new Error('input is not possible here: the request does not allow it');
        }
        // One that a cell has not waited for ends with it.
        if (this.waits !== null && this.waits.cell === this.currentCell()) {
            throw new Error('one question at a time');
        }
        this.#ask({ event: 'input', prompt: text === undefined ? '' : String(text), password });
    }

    #ask(event) {
        this.waits = null;
        while (receiveMessageOnPort(this.port) !== undefined) {
            // A late answer, to a question that has ended.
        }
        this.writer.event(event);
    }
}

module.exports = { Questions };
