// SPDX-License-Identifier: Apache-2.0
export { Approvals } from './approvals.js';
export { Batch } from './batches.js';
export { Branches, type BatchOptions } from './branches.js';
export { Checkpoints } from './checkpoints.js';
export { CellkeepError, ConnectionFailed, ExecutionFailed, ProblemError } from './errors.js';
export { EventDecoder, type Event, type ProcessEvent } from './events.js';
export { type ServerOptions } from './http.js';
export { Ports } from './ports.js';
export { Output, outputBytes, Process, type ProcessOptions } from './processes.js';
export { imageOf, Result, type Image } from './result.js';
export { Client, Execution, Session, type RunOptions } from './session.js';
export { type Tool, type Tools } from './tools.js';
export { type Progress, type Upload } from './transfer.js';
export type * as wire from './schema.js';
export type {
    Approval,
    Artifact,
    BatchLine,
    BatchRequest,
    ExecutionError,
    ExecutionRequest,
    FileChange,
    FileEntry,
    Merged,
    PackagesInstalled,
    Problem,
    SessionRequest,
    SessionUpdate,
} from './schema.js';
