// SPDX-License-Identifier: Apache-2.0
//
// Signer::open: nothing opens without the right signature, nothing opens twice, and what opens is
// what was sent. Input: a byte (bit 0: put the right signature in, so that what comes after it is
// reached too; bits 1 and 2: the scheme), then blocks (length, bytes), one for each frame.
#include "protocol/limits.hpp"
#include "protocol/signer.hpp"
#include "tests/fuzz/fuzz_target.hpp"

#include <array>

namespace {

using namespace cellkeep::protocol;

constexpr std::array<std::string_view, 4> kSchemes{
    "hmac-sha256", "hmac-sha512", "hmac-md5", "hmac-sha256"};

Signer make_signer(std::string_view scheme) {
    auto signer = Signer::create(scheme, "key");
    CELLKEEP_CHECK(signer.has_value());
    return std::move(signer).value();
}

}  // namespace

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    cellkeep::fuzz::Input input(data, size);
    const std::uint8_t mode = input.take_byte();
    const std::string_view scheme = kSchemes[mode >> 1U & 3U];
    std::vector<std::string_view> frames;
    while (!input.empty() && frames.size() <= cellkeep::limits::kZmqFramesMax) {
        frames.push_back(input.take_block());
    }
    Signer signer = make_signer(scheme);
    const auto delimiter = std::find(frames.begin(), frames.end(), "<IDS|MSG>");
    const auto identity_count = static_cast<std::size_t>(delimiter - frames.begin());
    std::string signature;
    if (frames.size() >= identity_count + 6) {
        const auto* part = &frames[identity_count + 2];
        signature = signer.sign(part[0], part[1], part[2], part[3]);
        if ((mode & 1U) != 0) {
            frames[identity_count + 1] = signature;
        }
    }
    const auto opened = signer.open(Channel::kShell, frames);
    if (opened.has_error()) {
        return 0;
    }
    CELLKEEP_CHECK(!signature.empty() && frames[identity_count + 1] == signature);
    CELLKEEP_CHECK(opened.value().identities.size() == identity_count);
    CELLKEEP_CHECK(signer.open(Channel::kShell, frames).has_error());

    const auto sent = signer.frames(opened.value().message, signature);
    CELLKEEP_CHECK(std::equal(delimiter, frames.end(), sent.begin(), sent.end()));
    const auto again = make_signer(scheme).open(Channel::kShell, sent);
    CELLKEEP_CHECK(again.has_value());
    CELLKEEP_CHECK(again.value().message.frame() == opened.value().message.frame());
    return 0;
}
