// SPDX-License-Identifier: Apache-2.0
//
// Why a sandbox failed, as opposed to the program in it. A program's own failure is a value with an exit code.

import { CellkeepError, ProblemError } from '../errors.js';
import type { Result } from '../result.js';
import type { Process } from '../schema.js';

/**
 * `oom`: the memory limit. `timeout`: the time that the caller gave. `dead`: the session or its interpreter has ended.
 * `capacity`: the server takes no more sessions, commands or work, or a budget is spent. `disk_full`: the workspace is.
 * `unreachable`: the server is. `refused`: the server does not do what was asked, as with a wrong token.
 */
export type Reason = 'oom' | 'timeout' | 'dead' | 'capacity' | 'disk_full' | 'unreachable' | 'refused';

/** The sandbox failed. What ran in it has no result. */
export class SandboxBroken extends CellkeepError {
    override name = 'SandboxBroken';
    /** Seconds after which to try again, if the server sent a time. */
    readonly retryAfter: number | undefined;

    constructor(
        readonly reason: Reason,
        readonly detail: string,
        options: { retryAfter?: number | undefined; cause?: unknown } = {},
    ) {
        super(`${reason}: ${detail}`, 'cause' in options ? { cause: options.cause } : undefined);
        this.retryAfter = options.retryAfter;
    }
}

/** A command did not end in the time that the caller gave. It was killed; the sandbox lives on. */
export class OutOfTime extends SandboxBroken {
    override name = 'OutOfTime';

    constructor(readonly milliseconds: number) {
        super('timeout', `the command did not end within ${milliseconds / 1000} s`);
    }
}

/** A command wrote, or a file has, more bytes than the caller takes. The sandbox lives on. */
export class TooMuchOutput extends CellkeepError {
    override name = 'TooMuchOutput';

    constructor(
        what: string,
        readonly bytesMax: number,
    ) {
        super(`${what}: more than ${bytesMax} bytes`);
    }
}

/** What a failed request says about the sandbox. */
export function reasonOf(error: CellkeepError): Reason {
    if (error instanceof SandboxBroken) {
        return error.reason;
    }
    if (!(error instanceof ProblemError)) {
        return 'unreachable';
    }
    switch (error.status) {
        case 429:
        case 503:
            return 'capacity';
        case 404:
        case 410:
            return 'dead';
        case 413:
            return error.kind === 'workspace-full' ? 'disk_full' : 'refused';
        default:
            return error.status >= 500 ? 'unreachable' : 'refused';
    }
}

function brokenBy(error: CellkeepError): SandboxBroken {
    const retryAfter = error instanceof ProblemError ? error.retryAfter : undefined;
    return new SandboxBroken(reasonOf(error), error.message, { retryAfter, cause: error });
}

/** Does something, and throws `SandboxBroken` for each request of it that failed or was refused. */
export async function requests<T>(body: () => Promise<T>): Promise<T> {
    try {
        return await body();
    } catch (error) {
        const ours = error instanceof SandboxBroken || error instanceof TooMuchOutput;
        throw error instanceof CellkeepError && !ours ? brokenBy(error) : error;
    }
}

/** Gives back what a program is responsible for, also an error of its own. */
export function checkResult(result: Result): Result {
    switch (result.status) {
        case 'oom':
        case 'timeout':
        case 'dead':
        case 'disk_full':
            throw new SandboxBroken(result.status, result.error?.message ?? result.status);
        default:
            return result;
    }
}

/** As strerror(3) says them: no room for another process is no program's fault. */
const NO_ROOM = [
    'Resource temporarily unavailable',
    'Cannot allocate memory',
    'Too many open files',
    'Too many open files in system',
];

const SIGNALS: Record<string, number> = {
    SIGHUP: 1,
    SIGINT: 2,
    SIGQUIT: 3,
    SIGILL: 4,
    SIGTRAP: 5,
    SIGABRT: 6,
    SIGBUS: 7,
    SIGFPE: 8,
    SIGKILL: 9,
    SIGUSR1: 10,
    SIGSEGV: 11,
    SIGUSR2: 12,
    SIGPIPE: 13,
    SIGALRM: 14,
    SIGTERM: 15,
    SIGXCPU: 24,
    SIGXFSZ: 25,
    SIGSYS: 31,
};

/** The exit code of a command that ended by its own doing, as a shell gives it. `killed`: its caller killed it. */
export function exitCodeOf(info: Process, killed: boolean): number {
    const { reason, exit_code, signal, error } = info.end ?? { reason: 'session_ended' };
    if (reason === 'session_ended') {
        throw new SandboxBroken('dead', 'the session ended while the command ran');
    }
    // SIGKILL is what the kernel sends at the memory limit, and what a shell reports as 137.
    if (!killed && (signal === 'SIGKILL' || exit_code === 137)) {
        throw new SandboxBroken('oom', 'the command was killed, as happens at the memory limit');
    }
    if (reason === 'not_started') {
        if (NO_ROOM.some((text) => error?.endsWith(text))) {
            throw new SandboxBroken('capacity', `the command could not be started: ${error}`);
        }
        return error?.endsWith('Permission denied') ? 126 : 127;
    }
    return exit_code ?? 128 + (SIGNALS[signal ?? ''] ?? 0);
}
