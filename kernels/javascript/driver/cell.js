// SPDX-License-Identifier: Apache-2.0
//
// One execution, as its own code sees it: what an await of it waits for.
'use strict';

const { Promise, Set } = globalThis;

const { KeyboardInterrupt } = require('./errors');

class Cell {
    constructor(request) {
        this.id = request.id;
        this.request = request;
        this.interrupted = false;
        this.waits = new Set();
    }

    // What an await at the cell's top waits for: the promise, or the interrupt. A cell that went on
    // after its interrupt waits for ever.
    wait(promise) {
        if (this.interrupted) {
            return new Promise(() => {});
        }
        if (promise === null || (typeof promise !== 'object' && typeof promise !== 'function')) {
            return promise;
        }
        return new Promise((resolve, reject) => {
            this.waits.add(reject);
            Promise.resolve(promise).then(
                (value) => {
                    this.waits.delete(reject);
                    resolve(value);
                },
                (error) => {
                    this.waits.delete(reject);
                    reject(error);
                },
            );
        });
    }

    // After an await in a function that the cell has called.
    go(value) {
        if (this.interrupted) {
            throw new KeyboardInterrupt();
        }
        return value;
    }

    interrupt() {
        this.interrupted = true;
        const waits = [...this.waits];
        this.waits.clear();
        const error = new KeyboardInterrupt();
        waits.forEach((reject) => reject(error));
    }
}

module.exports = { Cell };
