// SPDX-License-Identifier: Apache-2.0
//
// A command whose output and input are streams.

import { ProblemError } from '../errors.js';
import { pause } from '../http.js';
import { outputBytes, type Process } from '../processes.js';
import { end, type Stop } from './commands.js';
import { exitCodeOf, requests, SandboxBroken } from './reasons.js';

/** Unread bytes of a stream; beyond it the command waits, as at a full pipe. */
const PIPE_BYTES_MAX = 1 << 20;
/** Bytes of input in one request. */
const INPUT_BYTES = 256 << 10;
/** So often the pause before the next try of a full input doubles: from 0.2 s to 1.6 s. */
const PAUSES_GROW = 3;

class Pipe {
    readonly stream: ReadableStream<Uint8Array>;
    #controller!: ReadableStreamDefaultController<Uint8Array>;
    #open = true;
    #waits = true;
    #room: () => void = () => undefined;

    constructor() {
        const source: UnderlyingDefaultSource<Uint8Array> = {
            start: (controller) => void (this.#controller = controller),
            pull: () => this.#room(),
            cancel: () => this.#close(),
        };
        const size = (piece: Uint8Array | undefined): number => piece?.byteLength ?? 0;
        this.stream = new ReadableStream(source, { highWaterMark: PIPE_BYTES_MAX, size });
    }

    #close(): void {
        this.#open = false;
        this.#room();
    }

    /** Waits until there is room for more. When the reader has cancelled, the piece is dropped. */
    async write(piece: Uint8Array): Promise<void> {
        if (this.#open && piece.byteLength > 0 && (this.#waits || this.#hasRoom())) {
            this.#controller.enqueue(piece);
        }
        while (this.#open && this.#waits && !this.#hasRoom()) {
            await new Promise<void>((done) => (this.#room = done));
        }
    }

    #hasRoom(): boolean {
        return (this.#controller.desiredSize ?? 0) > 0;
    }

    /** From now on write() does not wait: a piece that finds no room is dropped. */
    hurry(): void {
        this.#waits = false;
        this.#room();
    }

    end(error?: unknown): void {
        if (!this.#open) {
            return;
        }
        this.#open = false;
        if (error === undefined) {
            this.#controller.close();
        } else {
            this.#controller.error(error);
        }
    }
}

/** The server answers 429 while the command's input is full. Tries until the command has read, or has ended. */
async function writeAll(process: Process, piece: Uint8Array): Promise<void> {
    for (let attempt = 0; ; ++attempt) {
        try {
            return await process.write(piece);
        } catch (error) {
            if (!(error instanceof ProblemError && error.status === 429)) {
                throw error;
            }
            await pause(Math.min(attempt, PAUSES_GROW), error.retryAfter);
        }
    }
}

function inputOf(process: Process): WritableStream<Uint8Array> {
    return new WritableStream<Uint8Array>({
        async write(chunk) {
            for (let at = 0; at < chunk.byteLength; at += INPUT_BYTES) {
                await writeAll(process, chunk.subarray(at, at + INPUT_BYTES));
            }
        },
        close: () => process.closeStdin(),
        abort: () => process.closeStdin(),
    });
}

/** The handle of a command that goes on: the AI SDK's `Experimental_SandboxProcess`. */
export class Spawned {
    readonly #process: Process;
    readonly #stop: Stop;
    readonly #out = new Pipe();
    readonly #err = new Pipe();
    readonly #pipes = [this.#out, this.#err];
    readonly #hurry = (): void => this.#pipes.forEach((pipe) => pipe.hurry());
    readonly #ended: Promise<{ exitCode: number }>;
    #killed = false;

    constructor(process: Process, stop: Stop) {
        this.#process = process;
        this.#stop = stop;
        stop.signal.addEventListener('abort', this.#hurry, { once: true });
        this.#ended = requests(() => this.#pump()).finally(() => stop.done());
        // Who does not wait for the end does not hear of it; the streams say it, too.
        this.#ended.then(
            () => this.#pipes.forEach((pipe) => pipe.end()),
            (error: unknown) => this.#pipes.forEach((pipe) => pipe.end(error)),
        );
    }

    /** Its number inside the sandbox. */
    get pid(): number | undefined {
        return this.#process.info.pid ?? undefined;
    }

    get stdout(): ReadableStream<Uint8Array> {
        return this.#out.stream;
    }

    get stderr(): ReadableStream<Uint8Array> {
        return this.#err.stream;
    }

    async #pump(): Promise<{ exitCode: number }> {
        const { signal } = this.#stop;
        try {
            for await (const event of this.#process.events({ signal })) {
                if (event.type === 'stdout') {
                    await this.#out.write(outputBytes(event));
                } else if (event.type === 'stderr') {
                    await this.#err.write(outputBytes(event));
                } else if (event.type === 'gap') {
                    const lost = `${event.bytes} bytes of the output were lost on the way`;
                    throw new SandboxBroken('unreachable', lost);
                } else if (event.type === 'exited' && event.process) {
                    return { exitCode: exitCodeOf(event.process, this.#killed) };
                }
                signal.throwIfAborted();
            }
        } catch (error) {
            if (signal.aborted) {
                await end(this.#process);
            }
            throw error;
        }
        throw new SandboxBroken('dead', "the command's output ended before the command did");
    }

    wait = (): Promise<{ exitCode: number }> => this.#ended;

    kill = async (): Promise<void> => {
        this.#killed = true;
        this.#hurry(); // `wait` then ends although nobody reads the output.
        await requests(() => end(this.#process));
    };
}

/** The same, with its input. */
export class WritableSpawned extends Spawned {
    readonly stdin: WritableStream<Uint8Array>;

    constructor(process: Process, stop: Stop) {
        super(process, stop);
        this.stdin = inputOf(process);
    }
}
