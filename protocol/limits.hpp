// SPDX-License-Identifier: Apache-2.0
//
// Every bound on what crosses a wire, in one table. Each is enforced where the name is used and
// tested at the limit and one past it (tests name the constant). Bounds on what a session may
// consume are its policy (sandbox/policy/policy.hpp, kernel-manager/limits/limits.hpp), not here.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>

namespace cellkeep::limits {

// --- Jupyter messages
/// One message on the kernel link, all parts together. Room for a 50 MB picture in base64.
inline constexpr std::size_t kFrameBytesMax = 128ULL << 20U;
/// Binary buffers in one message.
inline constexpr std::size_t kBuffersMax = 1024;
/// header and parent_header, as JSON text, each.
inline constexpr std::size_t kHeaderBytesMax = 64ULL << 10U;
/// Nesting of a JSON document that we parse; deeper ones are refused before recursion can hurt.
inline constexpr int kJsonDepthMax = 256;
/// Values in a JSON document that we parse, containers included: text of kFrameBytesMax could
/// otherwise become gigabytes of them. On the event loop the two smaller bounds below hold.
inline constexpr std::size_t kJsonValuesMax = 2'000'000;
/// The same of a client's message over a WebSocket that does not stand on one line. (Of the others
/// no values are built.)
inline constexpr std::size_t kClientJsonValuesMax = 250'000;
/// Each string field of a header: msg_id, session, username, date, msg_type, version, subshell_id.
inline constexpr std::size_t kHeaderFieldBytesMax = 1024;

// --- Connection files
/// A connection file's text when read.
inline constexpr std::size_t kConnectionFileBytesMax = 64ULL << 10U;

// --- ZeroMQ
/// Frames in one multipart message: identities, delimiter, signature, four JSON parts, buffers.
inline constexpr std::size_t kZmqFramesMax = kBuffersMax + 16;
/// Signatures remembered against replay, per connection file.
inline constexpr std::size_t kReplayHistoryMax = 65'536;
/// Messages that ZeroMQ may hold for one slow subscriber before the session waits for it.
inline constexpr int kZmqHighWaterMark = 10'000;
/// Messages of one client that ZeroMQ may hold for shell, control or stdin, each, before it stops
/// reading from that client: their signatures are not checked yet.
inline constexpr int kZmqReceiveHighWaterMark = 64;
/// One frame of a heartbeat, frames of one beat (an identity, a delimiter, the beat, one to spare)
/// and beats of one client that ZeroMQ may hold. Heartbeats are not signed.
inline constexpr std::size_t kHeartbeatBytesMax = 1024;
inline constexpr std::size_t kHeartbeatFramesMax = 4;
inline constexpr int kHeartbeatHighWaterMark = 16;
/// One subscription as it crosses the wire, which is not signed either. A topic longer than
/// kHeaderFieldBytesMax is refused and counted; beyond this ZeroMQ drops the connection.
inline constexpr std::size_t kZmqSubscriptionBytesMax = 2 * kHeaderFieldBytesMax;
/// How many topics of one session's subscribers are remembered, to know whether any is left.
inline constexpr std::size_t kZmqTopicsMax = 64;
/// Bytes that ZeroMQ may hold for the slow subscribers of one session, counted where they are not
/// copied, before the session waits. One message larger than this passes when nothing else waits.
inline constexpr std::size_t kZmqUnsentBytesMax = 64ULL << 20U;
/// Output messages, and their bytes, that wait in one session's front while it is waited for.
inline constexpr std::size_t kZmqWaitingMessagesMax = 10'000;
inline constexpr std::size_t kZmqWaitingBytesMax = 2 * kFrameBytesMax;
/// Messages taken from one socket before every other socket has its turn.
inline constexpr std::size_t kZmqTurnMessagesMax = 64;
/// Bytes of one session's output that are signed in one turn of the loop.
inline constexpr std::size_t kSignTurnBytesMax = 128ULL << 10U;
/// How long what was sent to a slow client goes on being sent after its session ended.
inline constexpr std::chrono::milliseconds kZmqLinger{1000};
/// How long a session waits for a subscriber that is at the high-water mark before it goes on
/// without it (its messages are then dropped and counted).
inline constexpr std::chrono::seconds kZmqStallMax{30};

// --- Kernel link and output
/// Shell requests waiting in one session, all clients together.
inline constexpr std::size_t kShellQueueMax = 1024;
/// Bytes of the requests waiting in one session.
inline constexpr std::size_t kShellQueueBytesMax = 256ULL << 20U;
/// Bytes waiting to be written to one kernel.
inline constexpr std::size_t kLinkWriteQueueBytesMax = 256ULL << 20U;
/// What one session's link may have done in one turn of the loop before every other handler has had
/// its own: bytes that are read and looked at, and time. The message that passes the time is
/// handled to its end.
inline constexpr std::size_t kLinkTurnBytesMax = 128ULL << 10U;
inline constexpr std::chrono::microseconds kLinkTurnTimeMax{200};
/// Stream text in one message, as JSON; longer text becomes several messages.
inline constexpr std::size_t kStreamMessageBytesMax = 256ULL << 10U;
/// A frame that is still to be looked at when its process has ended is passed on as it came if it
/// is longer.
inline constexpr std::size_t kLinkDrainFrameBytesMax = 16ULL << 20U;
/// How long a link waits, in all, for the rest of a frame that has begun, and as much longer as
/// what has arrived takes at kLinkFrameBytesPerSecond. Then the link is broken.
inline constexpr std::chrono::milliseconds kLinkFrameWaitMax{10'000};
inline constexpr std::size_t kLinkFrameBytesPerSecond = 8ULL << 20U;
/// Bytes of the larger frames that are arriving or are looked at, of all sessions together. The
/// next such frame is not read before they fit. Frames of up to kLinkFrameUnclaimedBytesMax are not
/// counted there.
inline constexpr std::size_t kLinkFramesBytesMax = 512ULL << 20U;
inline constexpr std::size_t kLinkFrameUnclaimedBytesMax = 1ULL << 20U;
/// An empty receive buffer of up to this is kept for the next frame; a larger one is given back.
inline constexpr std::size_t kLinkBufferKeptBytesMax = 1ULL << 20U;
/// Output messages that one session's journal keeps.
inline constexpr std::size_t kJournalMessagesMax = 20'000;
/// Bytes of output that one session's journal keeps.
inline constexpr std::size_t kJournalBytesMax = 16ULL << 20U;
/// Bytes read from a kernel's fd 1 or 2 before they are published as one stream message.
inline constexpr std::size_t kStreamChunkBytesMax = 64ULL << 10U;

/// Requests whose output one cellkeep_replay_request may ask for.
inline constexpr std::size_t kReplayRequestsMax = 1000;
/// Output in one cellkeep_replay_reply. Jupyter Server takes 10 MiB messages from a gateway.
inline constexpr std::size_t kReplayBytesMax = 4ULL << 20U;

/// A kernel's description of itself, which the server keeps and repeats.
inline constexpr std::size_t kKernelInfoBytesMax = 1ULL << 20U;
/// One input_request of a kernel on its way to a client.
inline constexpr std::size_t kInputRequestBytesMax = 1ULL << 20U;
/// Tools that the caller of one execution lends to its code, their names, and the bytes of their
/// names, descriptions and schemas together.
inline constexpr std::size_t kToolsLentMax = 64;
inline constexpr std::size_t kToolNameBytesMax = 128;
inline constexpr std::size_t kToolsBytesMax = 256ULL << 10U;
/// Calls of tools by the code of one execution, one at a time; one request for a call, and what it
/// is answered with.
inline constexpr std::size_t kToolCallsMax = 10'000;
/// Questions of one execution for the list of its tools.
inline constexpr std::size_t kToolListsMax = 1'000;
inline constexpr std::size_t kToolRequestBytesMax = 1ULL << 20U;
inline constexpr std::size_t kToolResultBytesMax = 4ULL << 20U;
/// After a deadline's interrupt the code has this long, and this much CPU time, to end before its
/// interpreter is killed; both must have passed.
inline constexpr std::chrono::milliseconds kInterruptGrace{500};
inline constexpr std::chrono::milliseconds kInterruptCpuGrace{250};
/// This long after the deadline the interpreter is killed however little CPU time it got: the
/// answer is due within a second.
inline constexpr std::chrono::milliseconds kInterruptGraceMax{900};
/// A kernel whose link has closed has this long to be reported dead before it is killed.
inline constexpr std::chrono::milliseconds kLinkClosedGrace{500};
/// Interpreters that may die in one session within kRestartWindow before it stays dead.
inline constexpr std::size_t kRestartsMax = 5;
inline constexpr std::chrono::seconds kRestartWindow{60};

// --- Checkpoints
/// Checkpoints of one session; the oldest without a label is evicted for the next.
inline constexpr std::size_t kCheckpointsMax = 8;
/// A checkpoint's label.
inline constexpr std::size_t kCheckpointLabelBytesMax = 128;
/// An interpreter's answer to the request for a copy of itself.
inline constexpr std::size_t kCopyAnswerBytesMax = 16ULL << 10U;
/// How long an interpreter may take to copy itself, and a copy to fork.
inline constexpr std::chrono::seconds kCopyPatience{10};
/// Messages of a copy that are none of the answers asked for, before it counts as gone.
inline constexpr int kStrayWakeRepliesMax = 16;

// --- HTTP
/// Request line and headers.
inline constexpr std::size_t kHttpHeadBytesMax = 32ULL << 10U;
/// A JSON request body.
inline constexpr std::size_t kHttpBodyBytesMax = 32ULL << 20U;
/// Values in a JSON request body, containers included: the largest that has a use names
/// kFilesPerRequestMax files.
inline constexpr std::size_t kHttpBodyJsonValuesMax = 20'000;
/// The body of a request that needs none: read and ignored.
inline constexpr std::size_t kHttpIgnoredBodyBytesMax = 1024;
/// An uploaded file's bytes, per request (the workspace's own size bounds it again).
inline constexpr std::uint64_t kUploadBytesMax = 1ULL << 30U;
/// Open connections.
inline constexpr std::size_t kHttpConnectionsMax = 12'000;
/// A client must deliver its request head within this, from its first byte.
inline constexpr std::chrono::seconds kHttpHeadTimeout{15};
/// Longest silence while a body is on its way. A client may also keep the server waiting for a
/// whole body only this long, and as much longer as what it sent takes at kHttpBodyBytesPerSecond.
inline constexpr std::chrono::seconds kHttpBodyTimeout{30};
inline constexpr std::uint64_t kHttpBodyBytesPerSecond = 64ULL << 10U;
/// Bytes of request bodies and WebSocket messages that are arriving, for one listening address.
inline constexpr std::size_t kArrivalBytesMax = 512ULL << 20U;
/// The part of it that one principal's requests and messages may hold: one of the largest messages.
inline constexpr std::size_t kArrivalPrincipalBytesMax = 128ULL << 20U;
/// A body or message up to this length is read without a claim on that memory.
inline constexpr std::size_t kArrivalFreeBytesMax = 64ULL << 10U;
/// How long a body or message waits for that memory before its client is refused.
inline constexpr std::chrono::seconds kArrivalWaitMax{30};
/// An idle keep-alive connection is closed after this.
inline constexpr std::chrono::seconds kHttpIdleTimeout{120};
/// What is still read and thrown away, after a refusal, from a client that is in the middle of a
/// body.
inline constexpr std::uint64_t kHttpDrainBytesMax = 256ULL << 20U;
inline constexpr std::chrono::seconds kHttpDrainTimeout{10};
/// How long a client may take to take a piece (64 KB) of a streamed answer, and to acknowledge what
/// it was sent, before it is cut off.
inline constexpr std::chrono::seconds kHttpStreamStallMax{30};
/// Pieces of all streamed answers that are written in one turn of the event loop.
inline constexpr std::size_t kHttpStreamPiecesPerTurn = 4;
/// What of an answer is written before others have their turn. A socket takes megabytes at once: of
/// forty answers of 20 MB, the one that came last would wait for all the others.
inline constexpr std::size_t kHttpWriteAtOnceBytesMax = 64ULL << 10U;
/// What a client may send ahead while its answer is on the way. Behind that it is no longer seen
/// that it went, until something is written to it.
inline constexpr std::size_t kHttpAheadBytesMax = 32ULL << 10U;

// --- Principals (serve --token-file)
/// The file's text.
inline constexpr std::size_t kTokenFileBytesMax = 256ULL << 10U;
/// Principals that it names: each is compared with the token of every request.
inline constexpr std::size_t kPrincipalsMax = 256;
inline constexpr std::size_t kPrincipalNameBytesMax = 64;
/// A named principal's token. 32 hexadecimal digits are 128 bits, too many to find by trying.
inline constexpr std::size_t kTokenBytesMin = 32;
inline constexpr std::size_t kTokenBytesMax = 512;

// --- WebSocket
/// How often the server pings, and how long a peer may give no sign of life.
inline constexpr std::chrono::seconds kWebSocketPingInterval{30};
inline constexpr std::chrono::seconds kWebSocketPongTimeout{90};
/// How long a peer may take nothing of what is sent to it before it is cut off.
inline constexpr std::chrono::seconds kWebSocketStallMax{30};
/// What one WebSocket client that is behind keeps in memory beyond what its session's journal keeps
/// anyway. At half of it the session waits for the client. One message larger than this passes when
/// nothing else waits.
inline constexpr std::size_t kChannelsWaitingMessagesMax = 10'000;
inline constexpr std::size_t kChannelsWaitingBytesMax = 64ULL << 20U;
/// How long a session waits for a client to take an eighth of that before it goes on without it
/// (what the journal no longer keeps is then lost to this client, which gets a notice of it).
inline constexpr std::chrono::seconds kChannelsStallMax{30};
/// How long what a client is behind is kept for it beyond the journal, after it left.
inline constexpr std::chrono::seconds kChannelsHoldMax{10};
/// Messages and bytes that were sent to a client and of which it has not proved receipt; older ones
/// count as received.
inline constexpr std::size_t kChannelsUnprovenMessagesMax = 65'536;
inline constexpr std::size_t kChannelsUnprovenBytesMax = 64ULL << 20U;
/// Clients whose place in the output is remembered after they left, per session.
inline constexpr std::size_t kChannelsPlacesMax = 64;

// --- Jupyter Server API
/// Documents that have a kernel, of all clients together.
inline constexpr std::size_t kJupyterSessionsMax = 10'000;
/// A text field of a request: a kernel's name, a document's path, name or type.
inline constexpr std::size_t kJupyterFieldBytesMax = 4096;

// --- A run's output (all of one run, of any client: stream text, displays, results, errors)
/// A run is cut, with output_limit, when what it says is more than this, or than kOutputCutFactor
/// times the session's output_bytes if that is more, beyond kOutputBytesPerSecond. Text is
/// truncated long before; back-pressure of slow clients is another thing and is never a reason to
/// cut.
inline constexpr std::uint64_t kOutputCutBytes = 128ULL << 20U;
inline constexpr std::uint64_t kOutputCutFactor = 4;
inline constexpr std::uint64_t kOutputBytesPerSecond = 1ULL << 20U;
/// The same of messages: this many, and kOutputMessagesPerSecond for each second that it runs.
inline constexpr std::uint64_t kOutputCutMessages = 200'000;
inline constexpr std::uint64_t kOutputMessagesPerSecond = 1000;
/// Different system calls that are remembered as refused to one run.
inline constexpr std::size_t kDenialsRememberedMax = 16;
/// How long a circuit breaker that opened refuses executions; twice as long after each probe that
/// fails, up to the second.
inline constexpr std::chrono::seconds kBreakerCooldownFirst{10};
inline constexpr std::chrono::seconds kBreakerCooldownMax{300};

// --- Agent API
/// Source code of one execution.
inline constexpr std::size_t kCodeBytesMax = 8ULL << 20U;
/// Standard input given with one execution.
inline constexpr std::size_t kStdinBytesMax = 8ULL << 20U;
/// Files named in one request.
inline constexpr std::size_t kFilesPerRequestMax = 256;
/// Environment variables of one session.
inline constexpr std::size_t kEnvironmentVariablesMax = 128;
inline constexpr std::size_t kEnvironmentBytesMax = 32ULL << 10U;
/// Serialized metadata of one session or execution.
inline constexpr std::size_t kMetadataBytesMax = 16ULL << 10U;
/// Executions waiting or running in one session.
inline constexpr std::size_t kExecutionsQueuedMax = 256;
/// Display data and results kept in one execution's answer; what is beyond is left out and counted.
inline constexpr std::uint64_t kAnswerDisplayBytesMax = 64ULL << 20U;
/// Outputs of any kind in one answer.
inline constexpr std::size_t kAnswerOutputsMax = 2000;
/// Answers remembered per session for idempotency keys and for GET of an execution.
inline constexpr std::size_t kExecutionHistoryMax = 256;
inline constexpr std::size_t kExecutionHistoryBytesMax = 32ULL << 20U;
inline constexpr std::size_t kIdempotencyKeyBytesMax = 255;
/// Keys that are known to have run, per session and, for one-shot executions, per principal: more
/// than there are answers, for a key whose answer is forgotten must not run again.
inline constexpr std::size_t kIdempotencyKeysMax = 4096;
/// Files that one answer lists as made or changed.
inline constexpr std::size_t kArtifactsMax = 256;
/// An answer waits no longer than this for the digests of its files.
inline constexpr std::chrono::milliseconds kArtifactTimeMax{400};
/// One file copied from the inputs directory for an execution. (For a session they are mounted.)
inline constexpr std::uint64_t kInputCopyBytesMax = 32ULL << 20U;
/// The whole of a stream's text that was too long for the answer, saved in the workspace.
inline constexpr std::uint64_t kSavedTextBytesMax = 64ULL << 20U;
/// Executions of one session whose saved texts are kept, and their bytes.
inline constexpr std::size_t kSavedTextsMax = 32;
inline constexpr std::uint64_t kSavedTextsBytesMax = 128ULL << 20U;
/// Text of an error's message, and of its traceback as JSON, that is read for answers and events.
/// An answer's notebook form has the whole.
inline constexpr std::size_t kErrorTextBytesMax = 256ULL << 10U;
/// Metadata of a reply in which our kernels tell about errors and exit codes; of a stream message,
/// what is repeated if it becomes several.
inline constexpr std::size_t kReplyMetadataBytesMax = 64ULL << 10U;
/// A display_id as JSON; a display with a longer one cannot be updated in an answer.
inline constexpr std::size_t kDisplayIdBytesMax = 1024;
/// Events of one execution that are kept for its streams. The newest one is kept whatever its size.
inline constexpr std::size_t kExecutionEventsMax = 10'000;
inline constexpr std::size_t kExecutionEventsBytesMax = 8ULL << 20U;
/// Events of all finished executions of one session together; the oldest execution's go first.
inline constexpr std::size_t kExecutionJournalsBytesMax = 32ULL << 20U;
/// How often a stream of events that has nothing to say says so.
inline constexpr std::chrono::seconds kEventHeartbeat{5};
/// One-shot executions that are remembered after their end, per principal.
inline constexpr std::size_t kOneShotsMax = 256;
inline constexpr std::size_t kOneShotsBytesMax = 64ULL << 20U;
/// The same of all principals together: who has most loses its oldest.
inline constexpr std::size_t kOneShotsAllBytesMax = 512ULL << 20U;
inline constexpr std::chrono::seconds kOneShotMemory{3600};
/// Answers kept for identical one-shot executions.
inline constexpr std::size_t kCachedAnswersMax = 256;
inline constexpr std::size_t kCachedAnswersBytesMax = 64ULL << 20U;
inline constexpr std::chrono::seconds kCacheTtlMax{86'400};

// --- Store
/// What waits to be written to the server's store, and its bytes; more is counted and lost.
inline constexpr std::size_t kStoreQueueMax = 10'000;
inline constexpr std::size_t kStoreQueueBytesMax = 64ULL << 20U;
/// Rows that the store keeps; the oldest go first.
inline constexpr std::size_t kStoredSessionsMax = 20'000;
inline constexpr std::size_t kStoredExecutionsMax = 200'000;
/// A text in the store: reasoning, an error's message.
inline constexpr std::size_t kStoredTextBytesMax = 16ULL << 10U;

// --- Egress (all per session, unless it says otherwise)
/// Entries of an allowlist.
inline constexpr std::size_t kEgressAllowedHostsMax = 64;
/// A host's name, in its normalised form (RFC 1035, section 2.3.4, without the trailing dot).
inline constexpr std::size_t kEgressHostBytesMax = 253;
/// Secrets that one session uses, and secrets that an operator names in one file.
inline constexpr std::size_t kEgressSecretsMax = 16;
inline constexpr std::size_t kEgressNamedSecretsMax = 256;
/// One secret's value.
inline constexpr std::size_t kEgressSecretBytesMax = 8ULL << 10U;
/// Connections from inside to the proxy; more are answered 503.
inline constexpr std::size_t kEgressConnectionsMax = 64;
/// A message's head (request or answer), a ClientHello, a line of a chunked body.
inline constexpr std::size_t kEgressHeadBytesMax = 32ULL << 10U;
inline constexpr std::size_t kEgressHeadersMax = 128;
inline constexpr std::size_t kEgressClientHelloBytesMax = 16ULL << 10U;
/// Requests in any 60 seconds; more are answered 429.
inline constexpr std::size_t kEgressRequestsPerMinuteMax = 1200;
/// Bytes of the session's life in each direction, heads included.
inline constexpr std::uint64_t kEgressBytesUpMax = 256ULL << 20U;
inline constexpr std::uint64_t kEgressBytesDownMax = 4ULL << 30U;
/// For a whole request head or ClientHello or TLS handshake, from its first byte.
inline constexpr std::chrono::seconds kEgressHeadTimeout{15};
/// For a name's addresses, and for a connection to one of them.
inline constexpr std::chrono::seconds kEgressResolveTimeout{10};
inline constexpr std::chrono::seconds kEgressConnectTimeout{10};
/// Longest silence in both directions of a tunnel, between requests, or before an answer.
inline constexpr std::chrono::seconds kEgressIdleTimeout{120};
/// Addresses of one name that are tried.
inline constexpr std::size_t kEgressAddressesMax = 8;
/// Names being looked up, of all sessions together.
inline constexpr std::size_t kEgressLookupsMax = 64;
/// Certificates kept for bound hosts, of all sessions together.
inline constexpr std::size_t kEgressCertificatesMax = 64;

}  // namespace cellkeep::limits
