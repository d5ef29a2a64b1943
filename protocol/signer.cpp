// SPDX-License-Identifier: Apache-2.0
#include "protocol/signer.hpp"

#include "protocol/limits.hpp"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/params.h>

#include <algorithm>
#include <cstring>
#include <utility>

namespace cellkeep::protocol {

namespace {

constexpr std::string_view kDelimiter = "<IDS|MSG>";
// Signed: header, parent_header, metadata, content. Buffers are not (specification, "The Wire
// Protocol").
constexpr std::size_t kSignedParts = 4;

struct MacDeleter {
    void operator()(EVP_MAC* mac) const { EVP_MAC_free(mac); }
};
struct MacContextDeleter {
    void operator()(EVP_MAC_CTX* context) const { EVP_MAC_CTX_free(context); }
};
using MacContext = std::unique_ptr<EVP_MAC_CTX, MacContextDeleter>;

const char* find_digest(std::string_view scheme) {
    if (scheme == "hmac-sha256") {
        return "SHA256";
    }
    if (scheme == "hmac-sha512") {
        return "SHA512";
    }
    if (scheme == "hmac-md5") {
        return "MD5";
    }
    return nullptr;
}

std::string to_hex(std::span<const unsigned char> bytes) {
    static constexpr std::string_view kDigits = "0123456789abcdef";
    std::string text;
    text.reserve(bytes.size() * 2);
    for (const unsigned char byte : bytes) {
        text += kDigits[byte >> 4U];
        text += kDigits[byte & 15U];
    }
    return text;
}

}  // namespace

struct Signer::Mac {
    struct Digest {
        std::array<unsigned char, EVP_MAX_MD_SIZE> bytes{};
        std::size_t size = 0;

        std::span<const unsigned char> view() const { return {bytes.data(), size}; }
    };

    // Keyed once; each message works on a copy, which spares it the two key blocks of HMAC. None if
    // the key is empty.
    MacContext keyed;

    Digest compute(std::span<const std::string_view> parts) const {
        const MacContext context(EVP_MAC_CTX_dup(keyed.get()));
        CELLKEEP_CHECK(context != nullptr);
        for (const std::string_view part : parts) {
            const auto* bytes = reinterpret_cast<const unsigned char*>(part.data());
            CELLKEEP_CHECK(EVP_MAC_update(context.get(), bytes, part.size()) == 1);
        }
        Digest digest;
        CELLKEEP_CHECK(
            EVP_MAC_final(context.get(), digest.bytes.data(), &digest.size, digest.bytes.size()) ==
            1);
        return digest;
    }

    /// Nothing without a key: no key, no check is the specification's rule.
    Result<std::optional<Fingerprint>> verify(
        std::string_view signature, std::span<const std::string_view> parts) const {
        if (keyed == nullptr) {
            return std::optional<Fingerprint>();
        }
        // Two characters for each byte of the digest. First, because it is free and the HMAC is
        // not.
        if (signature.size() != 2 * EVP_MAC_CTX_get_mac_size(keyed.get())) {
            return Error(ErrorCode::kProtocol, "signature: wrong length");
        }
        const Digest digest = compute(parts);
        const std::string expected = to_hex(digest.view());
        CELLKEEP_CHECK(expected.size() == signature.size());
        // Constant time, so that a peer cannot find the right bytes one after the other.
        if (CRYPTO_memcmp(signature.data(), expected.data(), expected.size()) != 0) {
            return Error(ErrorCode::kProtocol, "signature: does not match");
        }
        Fingerprint fingerprint{};
        static_assert(sizeof(fingerprint) <= 16);  // the length of the shortest digest, MD5
        std::memcpy(fingerprint.data(), digest.bytes.data(), sizeof(fingerprint));
        return std::optional(fingerprint);
    }

    Result<Checked> check(Channel channel, std::span<const std::string_view> frames) const;
};

Signer::Signer(std::shared_ptr<const Mac> mac) : mac_(std::move(mac)) {}
Signer::Signer(Signer&& other) noexcept = default;
Signer& Signer::operator=(Signer&& other) noexcept = default;
Signer::~Signer() = default;

Result<Signer> Signer::create(std::string_view scheme, std::string key) {
    const char* digest = find_digest(scheme);
    if (digest == nullptr) {
        return Error(
            ErrorCode::kInvalidArgument,
            "signature_scheme: must be hmac-sha256, hmac-sha512 or hmac-md5");
    }
    auto mac = std::make_shared<Mac>();
    if (key.empty()) {
        return Signer(std::move(mac));
    }
    const std::unique_ptr<EVP_MAC, MacDeleter> algorithm(EVP_MAC_fetch(nullptr, "HMAC", nullptr));
    if (algorithm == nullptr) {
        return Error(ErrorCode::kUnavailable, "EVP_MAC_fetch(HMAC): not offered by this OpenSSL");
    }
    mac->keyed.reset(EVP_MAC_CTX_new(algorithm.get()));
    const std::array<OSSL_PARAM, 2> params{
        // The parameter is read only; the API has one type for both directions.
        OSSL_PARAM_construct_utf8_string("digest", const_cast<char*>(digest), 0),
        OSSL_PARAM_construct_end()};
    const auto* key_bytes = reinterpret_cast<const unsigned char*>(key.data());
    const bool keyed = mac->keyed != nullptr &&
                       EVP_MAC_init(mac->keyed.get(), key_bytes, key.size(), params.data()) == 1;
    OPENSSL_cleanse(key.data(), key.size());
    if (!keyed) {
        return Error(
            ErrorCode::kUnavailable,
            "EVP_MAC_init(" + std::string(digest) + "): refused by this OpenSSL");
    }
    return Signer(std::move(mac));
}

std::string Signer::sign(
    std::string_view header,
    std::string_view parent_header,
    std::string_view metadata,
    std::string_view content) const {
    if (mac_->keyed == nullptr) {
        return {};
    }
    const std::array<std::string_view, kSignedParts> parts{
        header, parent_header, metadata, content};
    return to_hex(mac_->compute(parts).view());
}

struct Signing::Work {
    MacContext context;  // none without a key
    Message message;
    std::size_t part = 0;
    std::size_t at = 0;  // in that part

    std::string_view text() const {
        const std::array<std::string_view, kSignedParts> parts{
            message.header_json(),
            message.parent_header_json(),
            message.metadata_json(),
            message.content_json()};
        return parts[part];
    }
};

Signing Signer::begin_signing(Message message) const {
    MacContext context;
    if (mac_->keyed != nullptr) {
        context.reset(EVP_MAC_CTX_dup(mac_->keyed.get()));
        CELLKEEP_CHECK(context != nullptr);
    }
    return Signing(std::make_unique<Signing::Work>(
        Signing::Work{std::move(context), std::move(message), 0, 0}));
}

Signing::Signing(std::unique_ptr<Work> work) : work_(std::move(work)) {}
Signing::Signing(Signing&& other) noexcept = default;
Signing& Signing::operator=(Signing&& other) noexcept = default;
Signing::~Signing() = default;

bool Signing::advance(std::size_t bytes) {
    while (work_->context != nullptr && work_->part < kSignedParts && bytes > 0) {
        const std::string_view left = work_->text().substr(work_->at);
        const std::string_view slice = left.substr(0, bytes);
        const auto* data = reinterpret_cast<const unsigned char*>(slice.data());
        CELLKEEP_CHECK(EVP_MAC_update(work_->context.get(), data, slice.size()) == 1);
        bytes -= slice.size();
        work_->at += slice.size();
        if (slice.size() == left.size()) {
            ++work_->part;
            work_->at = 0;
        }
    }
    return work_->context == nullptr || work_->part == kSignedParts;
}

std::string Signing::finish() {
    if (work_->context == nullptr) {
        return {};
    }
    std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
    std::size_t size = 0;
    CELLKEEP_CHECK(EVP_MAC_final(work_->context.get(), digest.data(), &size, digest.size()) == 1);
    return to_hex({digest.data(), size});
}

std::vector<std::string_view> Signer::frames(
    const Message& message, const std::string& signature) const {
    std::vector<std::string_view> frames;
    frames.reserve(2 + kSignedParts + message.buffer_count());
    frames.insert(
        frames.end(),
        {kDelimiter,
         signature,
         message.header_json(),
         message.parent_header_json(),
         message.metadata_json(),
         message.content_json()});
    for (std::size_t i = 0; i < message.buffer_count(); ++i) {
        frames.push_back(message.buffer(i));
    }
    return frames;
}

bool Signer::remember(const Fingerprint& fingerprint) {
    if (!seen_.insert(fingerprint).second) {
        return false;
    }
    seen_order_.push_back(fingerprint);
    if (seen_order_.size() > limits::kReplayHistoryMax) {
        seen_.erase(seen_order_.front());
        seen_order_.pop_front();
    }
    return true;
}

std::string Signer::pass_on() const {
    std::string bytes;
    bytes.reserve(seen_order_.size() * sizeof(Fingerprint));
    for (const Fingerprint& one : seen_order_) {
        bytes.append(reinterpret_cast<const char*>(one.data()), sizeof(one));
    }
    return bytes;
}

Status Signer::go_on(std::string_view passed) {
    if (passed.size() % sizeof(Fingerprint) != 0 ||
        passed.size() / sizeof(Fingerprint) > limits::kReplayHistoryMax) {
        return Error(ErrorCode::kProtocol, "passed signatures: not of the form");
    }
    for (; !passed.empty(); passed.remove_prefix(sizeof(Fingerprint))) {
        Fingerprint one{};
        std::memcpy(one.data(), passed.data(), sizeof(one));
        (void)remember(one);  // Ignored: a second time is one.
    }
    return ok();
}

Result<Signer::Checked> Signer::Mac::check(
    Channel channel, std::span<const std::string_view> frames) const {
    if (frames.size() > limits::kZmqFramesMax) {
        return Error(
            ErrorCode::kLimitExceeded,
            "multipart: more than " + std::to_string(limits::kZmqFramesMax) + " frames");
    }
    std::size_t bytes_left = limits::kFrameBytesMax;
    for (const std::string_view frame : frames) {
        if (frame.size() > bytes_left) {
            return Error(
                ErrorCode::kLimitExceeded,
                "multipart: more than " + std::to_string(limits::kFrameBytesMax) + " bytes");
        }
        bytes_left -= frame.size();
    }
    const auto delimiter = std::find(frames.begin(), frames.end(), kDelimiter);
    if (delimiter == frames.end()) {
        return Error(ErrorCode::kProtocol, "multipart: no <IDS|MSG> delimiter");
    }
    const auto identity_count = static_cast<std::size_t>(delimiter - frames.begin());
    const auto signed_frames = frames.subspan(identity_count + 1);
    if (signed_frames.size() < 1 + kSignedParts) {
        return Error(ErrorCode::kProtocol, "multipart: fewer than five frames after the delimiter");
    }
    const auto parts = signed_frames.subspan(1, kSignedParts);
    const auto buffers = signed_frames.subspan(1 + kSignedParts);
    BOOST_OUTCOME_TRY(auto fingerprint, verify(signed_frames[0], parts));
    auto message = Message::create(MessageParts{
        .channel = channel,
        .header = parts[0],
        .parent_header = parts[1],
        .metadata = parts[2],
        .content = parts[3],
        .buffers = {buffers.begin(), buffers.end()}});
    if (message.has_error()) {
        return Checked{fingerprint, message.error()};
    }
    return Checked{
        fingerprint,
        SignedMessage{
            .identities = {frames.begin(), delimiter}, .message = std::move(message).value()}};
}

Signer::Check Signer::check() const {
    return [mac = mac_](Channel channel, std::span<const std::string_view> frames) {
        return mac->check(channel, frames);
    };
}

Result<SignedMessage> Signer::admit(Result<Checked> checked) {
    if (checked.has_error()) {
        return checked.error();
    }
    const std::optional<Fingerprint>& fingerprint = checked.value().fingerprint;
    if (fingerprint && !remember(*fingerprint)) {
        return Error(ErrorCode::kProtocol, "signature: seen before");
    }
    return std::move(checked.value().message);
}

Result<SignedMessage> Signer::open(Channel channel, std::span<const std::string_view> frames) {
    return admit(mac_->check(channel, frames));
}

}  // namespace cellkeep::protocol
