// SPDX-License-Identifier: Apache-2.0
//
// The bounds of the operator's tool servers: what the file may say, what a server may send, what a
// session may ask. Those of one call are in protocol/limits.hpp.
#pragma once

#include <chrono>
#include <cstddef>

namespace cellkeep::tools {

// --- what the file says
inline constexpr std::size_t kServersFileBytesMax = 1ULL << 20U;
inline constexpr std::size_t kServersMax = 32;
inline constexpr std::size_t kServerNameBytesMax = 64;
/// Arguments, variables or headers of one server, and the text of one.
inline constexpr std::size_t kServerTextsMax = 256;
inline constexpr std::size_t kServerTextBytesMax = 32ULL << 10U;
inline constexpr std::chrono::milliseconds kCallPatience{60'000};
inline constexpr std::chrono::milliseconds kCallPatienceMax{600'000};

// --- what a server sends
/// One message, and all that comes over HTTP for one request. Longer: the connection ends.
inline constexpr std::size_t kServerMessageBytesMax = 16ULL << 20U;
/// A message of more bytes is read by a work thread.
inline constexpr std::size_t kReadAtOnceBytesMax = 64ULL << 10U;
/// Values in one message, containers included.
inline constexpr std::size_t kServerMessageValuesMax = 200'000;
/// Of the revisions that a server lists, how many are looked at.
inline constexpr std::size_t kRevisionsMax = 64;
/// Arguments of one tool that its server wants in headers, and the bytes of one of these.
inline constexpr std::size_t kParameterHeadersMax = 16;
inline constexpr std::size_t kParameterHeaderBytesMax = 4096;
/// Pages of one list of tools, and the tools of one server. More are left out.
inline constexpr std::size_t kListPagesMax = 16;
inline constexpr std::size_t kServerToolsMax = 256;
/// Name, description and schema of one tool; a tool with more is left out.
inline constexpr std::size_t kToolTextBytesMax = 32ULL << 10U;
/// Of a description, what code is shown.
inline constexpr std::size_t kDescriptionBytesMax = 4ULL << 10U;
/// Of all tools of one server.
inline constexpr std::size_t kServerToolTextBytesMax = 256ULL << 10U;
/// Of all that one session is told of tools; the rest can be called, but is not listed.
inline constexpr std::size_t kListBytesMax = 1ULL << 20U;
/// A line of a server's stderr; the rest of a longer one is not logged.
inline constexpr std::size_t kErrorLineBytesMax = 4096;
/// Lines of stderr that one server may log in a minute.
inline constexpr std::size_t kErrorLinesMax = 100;
/// Of the arguments of a call, what a person sees who is asked about it.
inline constexpr std::size_t kShownArgumentsBytesMax = 16ULL << 10U;
/// Of a failed call, what the code is told.
inline constexpr std::size_t kFailureBytesMax = 16ULL << 10U;

// --- what is sent to a server
/// Messages that a server has not read.
inline constexpr std::size_t kUnsentBytesMax = 8ULL << 20U;
/// Calls at once; one that was given up counts until the server answers it.
inline constexpr std::size_t kServerCallsMax = 16;
/// Messages without an answer that are on their way over HTTP at once.
inline constexpr std::size_t kNoticesMax = 16;
inline constexpr std::chrono::milliseconds kNoticePatience{10'000};

// --- what a session asks
/// Calls that it may begin at once, and how many more each second. Further ones wait for their
/// turn; code that waits for each answer has one of these. What comes when so many wait is refused.
inline constexpr std::size_t kSessionCallsBurst = 100;
inline constexpr std::size_t kSessionCallsPerSecond = 20;
inline constexpr std::size_t kSessionCallsWaitingMax = 20;

// --- the life of a server
/// From its start to its list of tools: it may have to be downloaded first.
inline constexpr std::chrono::milliseconds kStartPatience{120'000};
/// One that is older than server/discover may not answer it at all.
inline constexpr std::chrono::milliseconds kDiscoverPatience{10'000};
/// How long one subscription to changes lasts.
inline constexpr std::chrono::milliseconds kListenPatience{3'600'000};
/// Between two attempts: the first pause, and the longest. Each is twice the one before.
inline constexpr std::chrono::milliseconds kRestartPause{1'000};
inline constexpr std::chrono::milliseconds kRestartPauseMax{60'000};
/// The list is asked for again after this time, and no sooner than this after the last time.
inline constexpr std::chrono::milliseconds kListAge{300'000};
inline constexpr std::chrono::milliseconds kListPause{1'000};
/// From the end of its input to SIGKILL.
inline constexpr std::chrono::milliseconds kEndPatience{1'000};

}  // namespace cellkeep::tools
