// SPDX-License-Identifier: Apache-2.0
//
// LinkDecoder: the same frames, and the same failure, however the stream is cut; no byte lost or
// made. The first byte of the input is the size of the cuts less one.
#include "protocol/frame.hpp"
#include "tests/fuzz/fuzz_target.hpp"

namespace {

using cellkeep::protocol::LinkDecoder;

struct DecodeOutcome {
    std::vector<std::string> frames;
    bool broken = false;
    std::size_t pending = 0;

    bool operator==(const DecodeOutcome&) const = default;
};

DecodeOutcome decode(std::string_view stream, std::size_t chunk_bytes) {
    LinkDecoder decoder;
    DecodeOutcome outcome;
    for (std::size_t at = 0; at < stream.size(); at += chunk_bytes) {
        decoder.append(stream.substr(at, chunk_bytes));
        while (true) {
            auto next = decoder.next();
            outcome.broken = next.has_error();
            if (next.has_error() || !next.value()) {
                break;
            }
            outcome.frames.push_back(*std::move(next).value());
        }
    }
    outcome.pending = decoder.pending();
    return outcome;
}

}  // namespace

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace cellkeep::protocol;
    cellkeep::fuzz::Input input(data, size);
    const std::size_t chunk_bytes = std::size_t{input.take_byte()} + 1;
    const std::string_view stream = input.rest();
    const DecodeOutcome whole = decode(stream, std::max<std::size_t>(stream.size(), 1));
    CELLKEEP_CHECK(whole == decode(stream, chunk_bytes));
    std::string again;
    for (const std::string& frame : whole.frames) {
        again += encode_link_prefix(frame.size()) + frame;
    }
    CELLKEEP_CHECK(stream.substr(0, again.size()) == again);
    CELLKEEP_CHECK(whole.pending == (whole.broken ? 0 : stream.size() - again.size()));
    return 0;
}
