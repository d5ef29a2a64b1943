// SPDX-License-Identifier: Apache-2.0
//
// The bounds of the MCP front end. What a session may consume is its own policy
// (kernel-manager/limits/limits.hpp); what HTTP lets through is in protocol/limits.hpp.
#pragma once

#include <chrono>
#include <cstddef>

namespace cellkeep::mcp {

// --- what a client sends
/// Values in one message, containers included.
inline constexpr std::size_t kMessageValuesMax = 20'000;
/// A request's id or progress token that is a string.
inline constexpr std::size_t kIdBytesMax = 256;
/// One line of the stdio transport.
inline constexpr std::size_t kLineBytesMax = 32ULL << 20U;
/// Requests of one stdio client that are answered at once.
inline constexpr std::size_t kStdioCallsMax = 64;
/// Answers that wait for a stdio client to read them; no request is read before there are fewer.
inline constexpr std::size_t kStdioUnsentBytesMax = 64ULL << 20U;
/// Client sessions of the revisions that have them, of all principals. The one that was not used
/// for longest is forgotten for the next; its client begins anew.
inline constexpr std::size_t kClientSessionsMax = 4096;
/// The same of one principal.
inline constexpr std::size_t kPrincipalClientSessionsMax = 256;

// --- what a client is asked, and what it hears
/// Questions to one client that it has not answered.
inline constexpr std::size_t kQuestionsMax = 16;
/// How long an answer is waited for. A person gives it.
inline constexpr std::chrono::milliseconds kAnswerPatience{600'000};
/// Calls of tools that the client's person is asked about while one request is answered, all of its
/// rounds together. Further ones wait for an answer over /v1/approvals, or for the next request.
/// Official clients give up after ten rounds.
inline constexpr std::size_t kCallApprovalsMax = 8;
/// What a request carries from one round to the next, sealed.
inline constexpr std::size_t kRequestStateBytesMax = 64ULL << 10U;
/// How long a client may take from one round to the next.
inline constexpr std::chrono::minutes kRequestStateLife{60};
/// Resources that one client subscribes to, and all of them together.
inline constexpr std::size_t kSubscribedUrisMax = 64;
inline constexpr std::size_t kSubscribedUrisPrincipalMax = 512;
inline constexpr std::size_t kSubscribedUrisTotalMax = 4096;
/// A URI that is subscribed to.
inline constexpr std::size_t kUriBytesMax = 8ULL << 10U;
/// Streams of subscriptions/listen at once, of one principal.
inline constexpr std::size_t kListensMax = 64;
/// How often what is subscribed to is looked at; at how many resources before other work has its
/// turn, and how long that turn is.
inline constexpr std::chrono::milliseconds kLookInterval{500};
inline constexpr std::size_t kLooksPerTurn = 256;
inline constexpr std::chrono::milliseconds kLookRest{20};
/// Values that one completion offers; it says how many there are.
inline constexpr std::size_t kCompletionsMax = 100;

/// One argument of a prompt.
inline constexpr std::size_t kPromptArgumentBytesMax = 64ULL << 10U;

// --- tasks
/// Those of all principals, and of one. A run beyond that is read on as without them.
inline constexpr std::size_t kTasksMax = 1024;
inline constexpr std::size_t kPrincipalTasksMax = 64;
/// From its beginning. The run has deadlines of its own.
inline constexpr std::chrono::hours kTaskLife{6};
/// A run that takes longer becomes one, unless the caller says how long it waits.
inline constexpr std::chrono::milliseconds kTaskAfter{5'000};
/// How often a client is to ask for one.
inline constexpr std::chrono::milliseconds kTaskPollInterval{2'000};

// --- names
/// The name that a client gives a session.
inline constexpr std::size_t kSessionNameBytesMax = 64;
/// Names of one principal that are remembered, those whose session has ended included.
inline constexpr std::size_t kSessionNamesMax = 256;

// --- what a model gets
/// The beginning and the end of a text that is longer than both together.
inline constexpr std::size_t kTextHeadBytes = 6000;
inline constexpr std::size_t kTextTailBytes = 4000;
/// Base64 of all pictures of one answer. Clients take one event of up to 1 MiB.
inline constexpr std::size_t kPicturesBytesMax = 768ULL << 10U;
/// Displays and results of one answer, as the JSON in which they came, that are looked into.
inline constexpr std::size_t kDisplaysBytesMax = 4ULL << 20U;
/// Files that an answer names; it says how many there are.
inline constexpr std::size_t kArtifactsShownMax = 20;
/// Entries of a directory that an answer names.
inline constexpr std::size_t kEntriesShownMax = 200;
/// Entries of all sessions' directories that resources/list looks at before it lists no further
/// session.
inline constexpr std::size_t kEntriesLookedAtMax = 2000;
/// Lines of a traceback.
inline constexpr std::size_t kTracebackLinesMax = 30;
/// What read_file gives unless it is asked for more, and at most.
inline constexpr std::size_t kReadBytesDefault = 16ULL << 10U;
inline constexpr std::size_t kReadBytesMax = 512ULL << 10U;
/// What write_file takes.
inline constexpr std::size_t kWriteBytesMax = 8ULL << 20U;
/// Output of a run that goes on, as the JSON in which it came, that one answer looks into.
inline constexpr std::size_t kNewOutputBytesMax = 1ULL << 20U;
/// The line of output that a progress notification repeats.
inline constexpr std::size_t kProgressLineBytes = 200;
/// Sessions that list_sessions names.
inline constexpr std::size_t kSessionsShownMax = 100;

/// What the description of run_code says of tools that code may call, and the list of them that is
/// looked into. With the first the whole list of tools stays below 2,000 tokens.
inline constexpr std::size_t kStubsBytesMax = 800;
inline constexpr std::size_t kStubsSourceBytesMax = 64ULL << 10U;

// --- time
/// How long a run may take unless the caller says so, and the session allows it. Without an end a
/// mistake would hold the session.
inline constexpr std::chrono::milliseconds kRunTime{600'000};
/// How long a run is waited for before its execution's id is the answer.
inline constexpr std::chrono::milliseconds kWaitDefault{50'000};
inline constexpr std::chrono::milliseconds kWaitMax{600'000};
/// How often a client that asked for it hears of progress, and every other one a comment line.
/// Some HTTP clients give up after 5 s without a byte.
inline constexpr std::chrono::milliseconds kProgressInterval{3'000};
/// Messages of one request, or of one client, that wait to be written. Then there is no room: what
/// the server may leave out it leaves out, and a change is told later.
inline constexpr std::size_t kNotificationsWaitingMax = 16;
/// How long the calls of a stdio client that closed its end may go on before they are interrupted.
inline constexpr std::chrono::milliseconds kStdioLastWork{5'000};

}  // namespace cellkeep::mcp
