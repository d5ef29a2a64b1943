// SPDX-License-Identifier: Apache-2.0
//
// Cellkeep's JupyterLab extension: a page that is reloaded, or closed and opened again, gets back
// what its cells have printed meanwhile.
//
// JupyterLab itself forgets on a reload which request belongs to which cell, and the reply to a
// request goes to a client that is no more. So this extension notes in the browser's local storage
// which request each cell sent ("execution" below) until the document has been saved with that
// cell's whole output. After a reload it asks the kernel's server for the output of the noted
// requests (a cellkeep_replay_request on the control channel; labextension/README.md says
// what is in it) and hands it to the cell, followed by what is still to come. Nothing is shown
// twice: a message is known by its msg_id. With kernels of other makers it does nothing.
//
// This file is the whole extension, loaded as it is: a webpack container written by hand, so that
// there is no build and what you read is what runs. It needs JupyterLab 4.
'use strict';

(() => {
    const STORE = 'cellkeep:executions:';
    const IMPLEMENTATION = /^cellkeep/;
    // What one question may name (limits::kReplayRequestsMax on the server).
    const REQUESTS_MAX = 1000;
    const LOST = 'The beginning of this output is no longer kept by the server.\n';

    // --- Which request each cell sent, by kernel: { cell id: { request, done } }

    function load(kernelId) {
        try {
            return JSON.parse(localStorage.getItem(STORE + kernelId)) || {};
        } catch {
            return {}; // not ours, or damaged: as if nothing had been noted
        }
    }

    function store(kernelId, executions) {
        if (Object.keys(executions).length === 0) {
            localStorage.removeItem(STORE + kernelId);
            return;
        }
        try {
            localStorage.setItem(STORE + kernelId, JSON.stringify(executions));
        } catch (error) {
            console.warn('Cellkeep: a reload would lose the output of running cells.', error);
        }
    }

    function change(kernelId, edit) {
        const executions = load(kernelId);
        edit(executions);
        store(kernelId, executions);
    }

    // Kernels that are no more will not be asked again.
    function forgetOthers(kernelIds) {
        for (const key of Object.keys(localStorage)) {
            if (key.startsWith(STORE) && !kernelIds.has(key.slice(STORE.length))) {
                localStorage.removeItem(key);
            }
        }
    }

    // --- A request of an earlier page whose cell is here

    // Stands where JupyterLab's own future of an execution would: the output area takes its
    // messages from here and disposes of it when the cell is run again.
    class Resumed {
        constructor(cell, requestId, kernel) {
            this.cell = cell;
            this.requestId = requestId;
            this.kernel = kernel;
            this.msg = { header: { msg_id: requestId, msg_type: 'execute_request' } };
            this.isDisposed = false;
            this.seen = new Set();
            this.early = []; // live messages that came before the replay was complete
            this.question = null; // an input_request that came before it was
            this.displays = new Set();
            this.done = new Promise(resolve => {
                this.settle = resolve;
            });
            this.onIOPub = this.onReply = this.onStdin = () => {};
        }

        get model() {
            return this.cell.model;
        }

        // Shows the cell as running and clears what the file has of its output.
        begin() {
            this.cell.outputArea.future = this;
            this.model.trusted = true; // this person ran it, as CodeCell.execute takes it
            this.model.executionCount = null;
            this.model.executionState = 'running';
        }

        lostBeginning() {
            this.cell.outputArea.model.add({ output_type: 'stream', name: 'stderr', text: LOST });
        }

        take(message) {
            const { header, content } = message;
            if (this.isDisposed || this.seen.has(header.msg_id)) {
                return;
            }
            this.seen.add(header.msg_id);
            if (content.transient?.display_id) {
                this.displays.add(content.transient.display_id);
            }
            if (header.msg_type === 'execute_input') {
                this.count = content.execution_count;
            }
            this.onIOPub(message);
            if (header.msg_type === 'status' && content.execution_state === 'idle') {
                this.end();
            }
        }

        endReplay() {
            const { early, question } = this;
            this.early = null;
            early.forEach(message => this.take(message));
            if (question) {
                this.ask(question);
            }
        }

        // The cell waits for input: its question comes again with the replay.
        ask(message) {
            if (this.early) {
                this.question = message;
            } else if (!this.isDisposed && !this.seen.has(message.header.msg_id)) {
                this.seen.add(message.header.msg_id);
                this.onStdin(message);
            }
        }

        end() {
            if (this.isDisposed) {
                return;
            }
            if (this.count !== undefined) {
                this.model.executionCount = this.count;
            }
            this.model.executionState = 'idle';
            this.dispose();
        }

        dispose() {
            this.isDisposed = true;
            this.settle();
        }

        sendInputReply(content, parent) {
            this.kernel.sendInputReply(content, parent);
        }

        registerMessageHook() {}
        removeMessageHook() {}
    }

    // --- One notebook and its kernel

    class Keeper {
        constructor(panel) {
            this.panel = panel;
            this.kernel = null;
            this.resumed = new Map(); // by request
            const { context, sessionContext } = panel;
            sessionContext.kernelChanged.connect(() => this.follow());
            context.saveState.connect((_, state) => {
                if (state === 'completed') {
                    this.forgetSaved();
                }
            });
            void Promise.all([context.ready, sessionContext.ready, panel.revealed]).then(() =>
                this.follow()
            );
        }

        follow() {
            const kernel = this.panel.sessionContext.session?.kernel || null;
            if (kernel === this.kernel) {
                return;
            }
            this.resumed.forEach(each => each.end());
            this.resumed.clear();
            this.kernel = kernel;
            if (!kernel) {
                return;
            }
            kernel.anyMessage.connect((_, { msg, direction }) => {
                if (direction === 'send') {
                    this.onSent(kernel, msg);
                } else {
                    this.onReceived(kernel, msg);
                }
            });
            kernel.statusChanged.connect((_, status) => {
                if (/restarting|dead/.test(status)) {
                    this.resumed.forEach(each => each.end());
                    this.resumed.clear();
                }
            });
            this.resume(kernel).catch(error => {
                this.resumed.forEach(each => each.end());
                console.warn('Cellkeep: the output of cells that ran was not asked for.', error);
            });
        }

        onSent(kernel, message) {
            const cellId = message.metadata?.cellId;
            if (message.header.msg_type === 'execute_request' && cellId && this.find(cellId)) {
                change(kernel.id, executions => {
                    executions[cellId] = { request: message.header.msg_id, done: false };
                });
            }
        }

        onReceived(kernel, message) {
            const request = message.parent_header?.msg_id;
            const { msg_type: type } = message.header;
            if (message.channel === 'stdin') {
                this.resumed.get(request)?.ask(message);
                return;
            }
            if (message.channel !== 'iopub') {
                return;
            }
            const resumed = this.resumed.get(request);
            if (resumed?.early) {
                resumed.early.push(message);
            } else if (resumed) {
                resumed.take(message);
            }
            if (type === 'update_display_data') {
                // A later cell may change what an earlier one has shown.
                this.resumed.forEach(each => {
                    if (each !== resumed && each.displays.has(message.content.transient.display_id)) {
                        each.onIOPub(message);
                    }
                });
            }
            if (type === 'status' && message.content.execution_state === 'idle') {
                this.markDone(kernel, request);
            }
        }

        markDone(kernel, request) {
            const executions = load(kernel.id);
            const found = Object.values(executions).find(each => each.request === request);
            if (found && !found.done) {
                found.done = true;
                store(kernel.id, executions);
            }
        }

        // The file now holds what ended cells have said.
        forgetSaved() {
            if (!this.kernel) {
                return;
            }
            change(this.kernel.id, executions => {
                for (const [cellId, { done }] of Object.entries(executions)) {
                    if (done && this.find(cellId)) {
                        delete executions[cellId];
                    }
                }
            });
        }

        find(cellId) {
            return this.panel.content.widgets.find(
                cell => cell.model.type === 'code' && cell.model.id === cellId
            );
        }

        async resume(kernel) {
            const noted = [];
            for (const [cellId, { request }] of Object.entries(load(kernel.id))) {
                const cell = this.find(cellId);
                // One that this page has run itself is none of our business.
                if (cell && cell.model.executionState !== 'running' && noted.length < REQUESTS_MAX) {
                    noted.push([cellId, new Resumed(cell, request, kernel)]);
                }
            }
            if (noted.length === 0) {
                return;
            }
            // Before the question, so that nothing falls between its answer and the live output.
            noted.forEach(([, each]) => this.resumed.set(each.requestId, each));
            const info = await kernel.info;
            if (!IMPLEMENTATION.test(info.implementation)) {
                noted.forEach(([, each]) => this.resumed.delete(each.requestId));
                return;
            }
            const begun = new Set();
            let after = 0;
            do {
                const answer = await ask(kernel, [...this.resumed.keys()], after);
                for (const [cellId, each] of noted) {
                    this.hear(kernel, cellId, each, answer, begun);
                }
                for (const message of answer.messages) {
                    this.resumed.get(message.parent_header.msg_id)?.take(message);
                }
                after = answer.next;
            } while (after);
            noted.forEach(([, each]) => each.endReplay());
        }

        // What the server says of one request, the first time it says anything.
        hear(kernel, cellId, resumed, answer, begun) {
            const { requestId } = resumed;
            if (begun.has(requestId)) {
                return;
            }
            begun.add(requestId);
            const again = load(kernel.id)[cellId]?.request !== requestId; // run while we asked
            if (answer.states[requestId] === 'unknown' || again || resumed.cell.isDisposed) {
                // Nothing is known of it any more: what the file has is all there is.
                this.resumed.delete(requestId);
                resumed.dispose();
                if (!again) {
                    change(kernel.id, executions => {
                        delete executions[cellId];
                    });
                }
                return;
            }
            resumed.begin();
            if (answer.truncated.includes(requestId)) {
                resumed.lostBeginning();
            }
            if (answer.states[requestId] === 'ended') {
                this.markDone(kernel, requestId);
            }
        }
    }

    // One part of the output of these requests, from sequence number `after` on.
    async function ask(kernel, requests, after) {
        const future = kernel.sendControlMessage(
            {
                channel: 'control',
                header: {
                    msg_id: `${kernel.clientId}-replay-${Date.now()}-${after}`,
                    msg_type: 'cellkeep_replay_request',
                    session: kernel.clientId,
                    username: kernel.username,
                    date: new Date().toISOString(),
                    version: '5.4',
                },
                parent_header: {},
                metadata: {},
                content: { msg_ids: requests, after },
                buffers: [],
            },
            true
        );
        const reply = await future.done;
        if (reply.content.status !== 'ok') {
            throw new Error(reply.content.evalue);
        }
        return reply.content;
    }

    // --- What JupyterLab loads

    let scope = null;

    // A module that JupyterLab shares. There is one version of each.
    async function shared(name) {
        const [version] = Object.values(scope[name]);
        return (await version.get())();
    }

    const container = {
        init(shareScope) {
            scope = shareScope;
        },
        async get() {
            const { INotebookTracker } = await shared('@jupyterlab/notebook');
            const plugin = {
                id: 'cellkeep:reload',
                description: 'Gives cells the output that came while the page was away.',
                autoStart: true,
                requires: [INotebookTracker],
                activate: (app, tracker) => {
                    const { kernels } = app.serviceManager;
                    void kernels.ready.then(() => {
                        const running = new Set([...kernels.running()].map(model => model.id));
                        // None at all may be a gateway that cannot be reached right now.
                        if (running.size > 0) {
                            forgetOthers(running);
                        }
                    });
                    tracker.forEach(panel => new Keeper(panel));
                    tracker.widgetAdded.connect((_, panel) => new Keeper(panel));
                },
            };
            return () => ({ __esModule: true, default: plugin });
        },
    };

    window._JUPYTERLAB = window._JUPYTERLAB || {};
    window._JUPYTERLAB.cellkeep = container;
})();
