// SPDX-License-Identifier: Apache-2.0
//
// Files as the commands of a sandbox see them, in all of it and not beneath the workspace alone.

import { CellkeepError } from '../errors.js';
import type { Session } from '../session.js';
import { HOME, run, runWithInput, type Bounds, type Ran } from './commands.js';
import { SandboxBroken } from './reasons.js';

/** Bytes of a file that is read or written. */
export const FILE_BYTES_MAX = 100 << 20;
/** How long the sandbox may take for a file. */
const FILE_MS_MAX = 300_000;

/** A file operation failed as it would for a program inside: `code` is `EISDIR`, `EACCES` … */
export class FileError extends CellkeepError {
    override name = 'FileError';

    constructor(
        readonly code: string,
        readonly path: string,
    ) {
        super(`${code}: ${path}`);
    }
}

export type FileStat = { type: 'file' | 'directory' | 'other'; size: number };
export type DirectoryEntry = { name: string; type: 'file' | 'directory' | 'symlink' | 'other' };

/** The helper's exit code when the system refused: stderr names the error. */
const FAILED = 117;

// An interpreter that no PATH and no file of the workspace can replace. argv: what to do, the path, and of a write the
// file with its content, or "" for stdin. The line's end behind a file that is read shows that all of it came.
const HELPER = `
import errno, json, os, shutil, stat, sys
what, path, source = sys.argv[1:]
kinds = {stat.S_IFREG: "file", stat.S_IFDIR: "directory", stat.S_IFLNK: "symlink"}
def kind(mode):
    return kinds.get(stat.S_IFMT(mode), "other")
try:
    if what == "read":
        with open(path, "rb") as file:
            shutil.copyfileobj(file, sys.stdout.buffer, 1 << 20)
        sys.stdout.buffer.write(b"\\n")
    elif what == "write":
        content = sys.stdin.buffer
        if source:
            content = open(source, "rb")
            os.unlink(source)
        os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
        with open(path, "wb") as file:
            shutil.copyfileobj(content, file, 1 << 20)
    elif what == "stat":
        found = os.stat(path)
        print(json.dumps({"type": kind(found.st_mode), "size": found.st_size}))
    elif what == "list":
        with os.scandir(path) as entries:
            found = [{"name": one.name, "type": kind(one.stat(follow_symlinks=False).st_mode)} for one in entries]
        print(json.dumps(found))
    elif what == "delete":
        os.unlink(path)
except OSError as error:
    sys.stderr.write(errno.errorcode.get(error.errno, "EIO"))
    sys.exit(117)
`;

function helper(what: string, path: string): string[] {
    return ['/usr/bin/python3', '-I', '-S', '-c', HELPER, what, path];
}

/** What the helper wrote; else what it met. */
function checked(ran: Ran, path: string): Uint8Array {
    if (ran.exitCode === 0) {
        return ran.stdout;
    }
    const said = new TextDecoder().decode(ran.stderr);
    if (ran.exitCode !== FAILED || !/^E[A-Z0-9]+$/.test(said)) {
        throw new SandboxBroken('dead', `the helper for files ended with ${ran.exitCode}: ${said.slice(0, 500)}`);
    }
    if (said === 'ENOSPC' || said === 'EDQUOT') {
        throw new SandboxBroken('disk_full', `no room for ${path}`);
    }
    if (said === 'ENOMEM') {
        throw new SandboxBroken('oom', `no memory for ${path}`);
    }
    throw new FileError(said, path);
}

function absent(error: unknown, codes: string[]): boolean {
    return error instanceof FileError && codes.includes(error.code);
}

/** The files of one session. Relative paths begin at `folder`. A path that cannot be one is a `FileError`. */
export class Files {
    constructor(
        readonly session: Session,
        readonly folder: string,
    ) {}

    #absolute(path: string): string {
        if (path === '' || path.includes('\0')) {
            throw new FileError('EINVAL', path);
        }
        return path.startsWith('/') ? path : `${this.folder}/${path}`;
    }

    #bounds(signal: AbortSignal | undefined): Bounds {
        return { signal, milliseconds: FILE_MS_MAX, outputBytesMax: FILE_BYTES_MAX + 1 };
    }

    async #ask(what: string, path: string, signal: AbortSignal | undefined): Promise<Uint8Array> {
        const command = [...helper(what, this.#absolute(path)), ''];
        return checked(await run(this.session, { command, cwd: HOME }, this.#bounds(signal)), path);
    }

    async #askIfThere(what: string, path: string, signal: AbortSignal | undefined): Promise<Uint8Array | null> {
        try {
            return await this.#ask(what, path, signal);
        } catch (error) {
            // What is beneath a file is not there; but a file is no directory to list.
            if (absent(error, what === 'list' ? ['ENOENT'] : ['ENOENT', 'ENOTDIR'])) {
                return null;
            }
            throw error;
        }
    }

    /** `null`: there is none. */
    async read(path: string, signal?: AbortSignal): Promise<Uint8Array | null> {
        const bytes = await this.#askIfThere('read', path, signal);
        if (bytes !== null && bytes.at(-1) !== 0x0a) {
            throw new SandboxBroken('unreachable', `the end of ${path} was lost on the way`);
        }
        return bytes && bytes.subarray(0, -1);
    }

    /** Makes the folders above it, and replaces what is there. */
    async write(path: string, content: Uint8Array, signal?: AbortSignal): Promise<void> {
        if (content.byteLength > FILE_BYTES_MAX) {
            throw new FileError('EFBIG', path);
        }
        const argv = helper('write', this.#absolute(path));
        checked(await runWithInput(this.session, argv, content, this.#bounds(signal)), path);
    }

    async stat(path: string, signal?: AbortSignal): Promise<FileStat | null> {
        const found = await this.#askIfThere('stat', path, signal);
        return found && (JSON.parse(new TextDecoder().decode(found)) as FileStat);
    }

    async list(path: string, signal?: AbortSignal): Promise<DirectoryEntry[] | null> {
        const found = await this.#askIfThere('list', path, signal);
        return found && (JSON.parse(new TextDecoder().decode(found)) as DirectoryEntry[]);
    }

    /** `false`: there was none. */
    async delete(path: string, signal?: AbortSignal): Promise<boolean> {
        return (await this.#askIfThere('delete', path, signal)) !== null;
    }
}
