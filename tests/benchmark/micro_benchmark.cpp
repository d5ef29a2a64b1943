// SPDX-License-Identifier: Apache-2.0
//
// What one message costs in the server, part by part: the v1 frame codec, ZeroMQ's signatures, the
// output journal. scripts/bench --micro runs it; a test runs it briefly, so that it cannot rot.
#include "kernel-manager/output/journal.hpp"
#include "protocol/frame.hpp"
#include "protocol/limits.hpp"
#include "protocol/message.hpp"
#include "protocol/signer.hpp"

#include <benchmark/benchmark.h>

#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

namespace cellkeep::benchmarks {

namespace {

using ::benchmark::State;
using protocol::Channel;
using protocol::Message;

constexpr const char* kKey = "a key as long as those that connection files have, in hexadecimal";
constexpr std::size_t kSmallBytes = 64;
constexpr std::size_t kLargeBytes = 64UL << 10U;

std::string make_header_text(std::string_view type) {
    return protocol::to_json_text(protocol::make_header(type, "0123456789abcdef", "user"));
}

/// A stream message with this many bytes of text.
struct Texts {
    explicit Texts(std::size_t bytes)
        : header(make_header_text("stream")),
          parent(make_header_text("execute_request")),
          content(R"({"name":"stdout","text":")" + std::string(bytes, 'x') + "\"}") {}

    std::vector<std::string_view> parts() const {
        return {protocol::to_string(Channel::kIopub), header, parent, metadata, content};
    }

    std::string header;
    std::string parent;
    std::string metadata = "{}";
    std::string content;
};

void count_bytes(State& state, std::size_t each) {
    state.SetItemsProcessed(state.iterations());
    state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(each));
}

void encode_frame(State& state) {
    const Texts texts(static_cast<std::size_t>(state.range(0)));
    const auto parts = texts.parts();
    std::size_t bytes = 0;
    for ([[maybe_unused]] const auto turn : state) {
        const auto frame = protocol::encode_frame(parts);
        if (frame.has_error()) {
            state.SkipWithError("encode_frame");
            return;
        }
        bytes = frame.value().size();
        benchmark::DoNotOptimize(frame.value().data());
    }
    count_bytes(state, bytes);
}

/// From the bytes on the kernel link to a message whose two headers are known.
void decode_frame(State& state) {
    const Texts texts(static_cast<std::size_t>(state.range(0)));
    const std::string frame = protocol::encode_frame(texts.parts()).value();
    const std::string bytes = protocol::encode_link_prefix(frame.size()) + frame;
    protocol::LinkDecoder decoder;
    for ([[maybe_unused]] const auto turn : state) {
        decoder.append(bytes);
        auto next = decoder.next();
        if (next.has_error() || !next.value().has_value() ||
            Message::from_frame(std::move(*next.value())).has_error()) {
            state.SkipWithError("decode_frame");
            return;
        }
    }
    count_bytes(state, bytes.size());
}

void sign(State& state) {
    const Texts texts(static_cast<std::size_t>(state.range(0)));
    const auto signer = protocol::Signer::create("hmac-sha256", kKey);
    for ([[maybe_unused]] const auto turn : state) {
        const std::string signature =
            signer.value().sign(texts.header, texts.parent, texts.metadata, texts.content);
        if (signature.size() != 64) {
            state.SkipWithError("sign");
            return;
        }
        benchmark::DoNotOptimize(signature.data());
    }
    count_bytes(
        state,
        texts.header.size() + texts.parent.size() + texts.metadata.size() + texts.content.size());
}

/// From a client's frames to a message that was verified. No signature is accepted twice, so the
/// verifier is a new one after each round.
void verify(State& state) {
    constexpr std::size_t kRound = 1024;
    static_assert(kRound < limits::kReplayHistoryMax);
    const auto size = static_cast<std::size_t>(state.range(0));
    auto signer = protocol::Signer::create("hmac-sha256", kKey);
    std::vector<Texts> texts;
    std::vector<std::string> signatures;
    for (std::size_t i = 0; i < kRound; ++i) {
        texts.emplace_back(size);  // its msg_id is its own
        const Texts& one = texts.back();
        signatures.push_back(
            signer.value().sign(one.header, one.parent, one.metadata, one.content));
    }
    std::size_t at = 0;
    for ([[maybe_unused]] const auto turn : state) {
        const Texts& one = texts[at];
        const std::vector<std::string_view> frames{
            "<IDS|MSG>", signatures[at], one.header, one.parent, one.metadata, one.content};
        if (signer.value().open(Channel::kShell, frames).has_error()) {
            state.SkipWithError("verify");
            return;
        }
        if (++at == kRound) {
            state.PauseTiming();
            at = 0;
            signer = protocol::Signer::create("hmac-sha256", kKey);
            state.ResumeTiming();
        }
    }
    count_bytes(state, texts.front().content.size());
}

/// Appends to a full journal: for most of a busy session's life it is full.
void append_to_journal(State& state) {
    session::OutputJournal journal(limits::kJournalMessagesMax, limits::kJournalBytesMax);
    const Texts texts(kSmallBytes);
    const Message message =
        Message::from_frame(protocol::encode_frame(texts.parts()).value()).value();
    for (std::size_t i = 0; i < limits::kJournalMessagesMax; ++i) {
        (void)journal.append(message);
    }
    for ([[maybe_unused]] const auto turn : state) {
        benchmark::DoNotOptimize(journal.append(message).sequence);
    }
    if (journal.size() != limits::kJournalMessagesMax || journal.dropped() == 0) {
        state.SkipWithError("append_to_journal");
    }
    state.SetItemsProcessed(state.iterations());
}

/// Replays the journal as for a client that comes back.
void replay_journal(State& state) {
    const auto missed = static_cast<std::size_t>(state.range(0));
    session::OutputJournal journal(limits::kJournalMessagesMax, limits::kJournalBytesMax);
    const Texts texts(kSmallBytes);
    const Message message =
        Message::from_frame(protocol::encode_frame(texts.parts()).value()).value();
    for (std::size_t i = 0; i < limits::kJournalMessagesMax; ++i) {
        (void)journal.append(message);
    }
    for ([[maybe_unused]] const auto turn : state) {
        const auto replay = journal.since(journal.last_sequence() - missed);
        if (replay.entries.size() != missed) {
            state.SkipWithError("replay_journal");
            return;
        }
    }
    state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(missed));
}

BENCHMARK(encode_frame)->Arg(kSmallBytes)->Arg(kLargeBytes);
BENCHMARK(decode_frame)->Arg(kSmallBytes)->Arg(kLargeBytes);
BENCHMARK(sign)->Arg(kSmallBytes)->Arg(kLargeBytes);
BENCHMARK(verify)->Arg(kSmallBytes)->Arg(kLargeBytes);
BENCHMARK(append_to_journal);
BENCHMARK(replay_journal)->Arg(10)->Arg(10'000);

/// Google Benchmark itself ends with 0 also after errors.
class FailureCounter : public ::benchmark::ConsoleReporter {
 public:
    void ReportRuns(const std::vector<Run>& runs) override {
        for (const Run& run : runs) {
            failures_ += run.error_occurred ? 1 : 0;
        }
        ConsoleReporter::ReportRuns(runs);
    }
    int failures() const { return failures_; }

 private:
    int failures_ = 0;
};

}  // namespace

}  // namespace cellkeep::benchmarks

int main(int argc, char** argv) {
    benchmark::Initialize(&argc, argv);
    if (benchmark::ReportUnrecognizedArguments(argc, argv)) {
        return 2;
    }
    cellkeep::benchmarks::FailureCounter reporter;
    const std::size_t ran = benchmark::RunSpecifiedBenchmarks(&reporter);
    benchmark::Shutdown();
    return ran > 0 && reporter.failures() == 0 ? 0 : 1;
}
