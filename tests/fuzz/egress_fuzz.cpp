// SPDX-License-Identifier: Apache-2.0
//
// The input of a guest to its proxy: targets, ClientHellos, HTTP messages. Accepted input has one
// spelling and is read the same in pieces of any size. The first byte chooses the kind, the second
// the cuts.
#include "kernel-manager/egress/message/message_reader.hpp"
#include "kernel-manager/egress/message/proxy_request.hpp"
#include "kernel-manager/egress/network_policy.hpp"
#include "kernel-manager/egress/tls/client_hello.hpp"
#include "tests/fuzz/fuzz_target.hpp"

#include <string>

namespace {

using namespace cellkeep::egress;

constexpr std::size_t kHelloBytesMax = 2048;

void check_target(std::string_view text) {
    if (const auto authority = parse_authority(text, 0); authority.has_value()) {
        const auto again = parse_authority(to_string(authority.value()), 0);
        CELLKEEP_CHECK(again.has_value() && again.value() == authority.value());
    }
    if (const auto entry = parse_allowed_host(text); entry.has_value()) {
        const auto again = parse_allowed_host(to_string(entry.value()));
        CELLKEEP_CHECK(again.has_value() && again.value() == entry.value());
    }
    if (const auto target = parse_absolute_target(text); target.has_value()) {
        CELLKEEP_CHECK(check_origin_target(target.value().origin).has_value());
    }
}

void check_hello(std::string_view bytes) {
    const auto whole = read_client_hello(bytes, kHelloBytesMax);
    // Once it is read or refused, more bytes can refuse it but never make it another one.
    for (std::size_t size = 0; size < bytes.size(); ++size) {
        const auto part = read_client_hello(bytes.substr(0, size), kHelloBytesMax);
        CELLKEEP_CHECK(!part.has_error() || whole.has_error());
        if (part.has_value() && part.value() && whole.has_value()) {
            CELLKEEP_CHECK(
                whole.value() && whole.value()->server_name == part.value()->server_name);
        }
    }
}

struct Outcome {
    bool refused = false;
    bool done = false;
    std::string target;
    std::string body;

    bool operator==(const Outcome&) const = default;
};

Outcome read_message(MessageReader::Kind kind, std::string_view bytes, std::size_t piece) {
    MessageReader reader(kind);
    Outcome outcome;
    while (!bytes.empty() && !reader.done() && !outcome.refused) {
        const auto used = reader.feed(bytes.substr(0, piece));
        outcome.refused = used.has_error();
        if (used.has_value()) {
            CELLKEEP_CHECK(used.value() > 0 && used.value() <= bytes.size());
            bytes.remove_prefix(used.value());
            outcome.body += reader.take_body();
        }
    }
    if (outcome.refused) {
        return {true, false, {}, {}};
    }
    outcome.done = reader.done();
    if (reader.head_done() && kind == MessageReader::Kind::kRequest) {
        outcome.target = reader.head().target;
        (void)read_proxy_request(reader.head());
    }
    return outcome;
}

}  // namespace

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    cellkeep::fuzz::Input input(data, size);
    const std::uint8_t mode = input.take_byte() % 4;
    const std::size_t piece = std::size_t{input.take_byte()} + 1;
    const std::string_view bytes = input.rest();
    if (mode == 0) {
        check_target(bytes);
    } else if (mode == 1) {
        check_hello(bytes.substr(0, kHelloBytesMax));
    } else {
        const auto kind =
            mode == 2 ? MessageReader::Kind::kRequest : MessageReader::Kind::kResponse;
        CELLKEEP_CHECK(
            read_message(kind, bytes, piece) ==
            read_message(kind, bytes, std::max<std::size_t>(bytes.size(), 1)));
    }
    return 0;
}
