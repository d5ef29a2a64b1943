// SPDX-License-Identifier: Apache-2.0
//
// Signed multipart messages for ZeroMQ (Jupyter messaging specification 5.5, "The Wire Protocol"):
// [identities…] "<IDS|MSG>" hex-HMAC header parent_header metadata content [buffers…]. This file
// knows no ZeroMQ: it works on byte strings. Order of work on input: structure, signature (length,
// then constant-time comparison), only then JSON, and replay.
// One Signer serves one connection file; not thread-safe, but for check().
#pragma once

#include "protocol/message.hpp"
#include "protocol/support/result.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

namespace cellkeep::protocol {

/// What came over a ZeroMQ socket: the routing identities and the message.
struct SignedMessage {
    std::vector<std::string> identities;
    Message message;
};

class Signing;

class Signer {
 public:
    /// scheme: "hmac-sha256", "hmac-sha512" or "hmac-md5" (JEP 106). An empty key turns signing
    /// off, as the specification says; Cellkeep itself never makes one.
    static Result<Signer> create(std::string_view scheme, std::string key);

    Signer(Signer&& other) noexcept;
    Signer& operator=(Signer&& other) noexcept;
    Signer(const Signer&) = delete;
    Signer& operator=(const Signer&) = delete;
    ~Signer();

    /// Lower-case hexadecimal HMAC over the four JSON texts, in order; "" without a key.
    std::string sign(
        std::string_view header,
        std::string_view parent_header,
        std::string_view metadata,
        std::string_view content) const;

    /// The signature of a message in slices, for one that is large. The Signer need not outlive it.
    Signing begin_signing(Message message) const;

    /// Frames to send after the identities: delimiter, signature, the four JSON texts, buffers.
    /// Views into message, into this Signer's constants and into signature, which the caller keeps.
    std::vector<std::string_view> frames(
        const Message& message, const std::string& signature) const;

    /// Verifies and decodes what arrived on channel. kProtocol for a bad structure, a wrong or
    /// missing signature, a repeated signature (replay), bad JSON; kLimitExceeded past a bound.
    Result<SignedMessage> open(Channel channel, std::span<const std::string_view> frames);

    /// 128 bits of a verified HMAC identify a message: only the owner of the key could find two
    /// messages that agree in them.
    using Fingerprint = std::array<std::uint64_t, 2>;
    /// What is signed rightly, whether it came before or not.
    struct Checked {
        std::optional<Fingerprint> fingerprint;  // nothing without a key
        Result<SignedMessage> message;           // kProtocol: bad JSON
    };
    using Check =
        std::function<Result<Checked>(Channel channel, std::span<const std::string_view> frames)>;
    /// open() in two steps, for a large message: what check() gives does all the work and may be
    /// called on another thread, also after the Signer's end. admit() refuses what came before.
    Check check() const;
    Result<SignedMessage> admit(Result<Checked> checked);

    /// Which messages came, oldest first, for another Signer of the same key, which then refuses
    /// them: bytes that mean nothing to anybody else.
    std::string pass_on() const;
    /// How long that is.
    std::size_t passed_bytes() const { return seen_order_.size() * sizeof(Fingerprint); }
    /// kProtocol: bytes of another form, or more than limits::kReplayHistoryMax messages.
    Status go_on(std::string_view passed);

 private:
    friend class Signing;
    struct Mac;
    struct FingerprintHash {
        std::size_t operator()(const Fingerprint& value) const { return value[0]; }
    };

    explicit Signer(std::shared_ptr<const Mac> mac);
    bool remember(const Fingerprint& fingerprint);

    std::shared_ptr<const Mac> mac_;
    std::unordered_set<Fingerprint, FingerprintHash> seen_;
    std::deque<Fingerprint> seen_order_;
};

/// Made by Signer::begin_signing. Not thread-safe.
class Signing {
 public:
    Signing(Signing&& other) noexcept;
    Signing& operator=(Signing&& other) noexcept;
    Signing(const Signing&) = delete;
    Signing& operator=(const Signing&) = delete;
    ~Signing();

    /// Works on `bytes` more bytes of the message. Returns true once it is done.
    bool advance(std::size_t bytes);
    /// As Signer::sign. Call it once. Precondition: advance() has returned true.
    std::string finish();

 private:
    friend class Signer;
    struct Work;
    explicit Signing(std::unique_ptr<Work> work);
    std::unique_ptr<Work> work_;
};

}  // namespace cellkeep::protocol
