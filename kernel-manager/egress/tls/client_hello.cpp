// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/egress/tls/client_hello.hpp"

#include <algorithm>
#include <cstdint>
#include <set>

namespace cellkeep::egress {

namespace {

// RFC 8446, sections 4 and 5.1; RFC 6066, section 3; RFC 9849 and its drafts.
constexpr std::uint32_t kHandshakeRecord = 22;
constexpr std::uint32_t kClientHello = 1;
constexpr std::uint32_t kServerNameExtension = 0;
constexpr std::uint32_t kEncryptedClientHello = 0xFE0D;
constexpr std::uint32_t kEncryptedServerName = 0xFFCE;
constexpr std::uint32_t kHostName = 0;
constexpr std::size_t kRecordHeaderBytes = 5;
constexpr std::size_t kRecordBytesMax = 1U << 14U;
constexpr std::size_t kHandshakeHeaderBytes = 4;
constexpr std::size_t kRandomBytes = 32;
constexpr std::size_t kSessionIdBytesMax = 32;

Error refuse_hello(const std::string& why) {
    return {ErrorCode::kProtocol, "ClientHello: " + why};
}

/// Reads big-endian numbers and vectors from the front; remembers that something was missing.
class Cursor {
 public:
    explicit Cursor(std::string_view bytes) : rest_(bytes) {}

    std::uint32_t number(std::size_t size) {
        std::uint32_t value = 0;
        for (const char byte : take(size)) {
            value = (value << 8U) | static_cast<unsigned char>(byte);
        }
        return value;
    }
    std::string_view take(std::size_t size) {
        if (size > rest_.size()) {
            short_ = true;
            rest_ = {};
            return {};
        }
        const std::string_view taken = rest_.substr(0, size);
        rest_.remove_prefix(size);
        return taken;
    }
    /// A vector whose length is written in `size` bytes before it.
    std::string_view vector(std::size_t size) { return take(number(size)); }

    bool ended_early() const { return short_; }
    bool empty() const { return rest_.empty(); }

 private:
    std::string_view rest_;
    bool short_ = false;
};

/// The handshake bytes in the records, as far as they have come.
Result<std::string> gather(std::string_view bytes, std::size_t bytes_max) {
    std::string handshake;
    while (bytes.size() >= kRecordHeaderBytes) {
        Cursor header(bytes.substr(0, kRecordHeaderBytes));
        const std::uint32_t type = header.number(1);
        const std::uint32_t major = header.number(1);
        (void)header.number(1);  // any minor version (RFC 8446, appendix D.5)
        const std::size_t length = header.number(2);
        if (type != kHandshakeRecord || major != 3) {
            return refuse_hello("the bytes are not a TLS handshake");
        }
        if (length == 0 || length > kRecordBytesMax) {
            return refuse_hello("a record is empty or too long");
        }
        bytes.remove_prefix(kRecordHeaderBytes);
        handshake += bytes.substr(0, length);
        if (handshake.size() > bytes_max) {
            return Error(ErrorCode::kLimitExceeded, "ClientHello: it is too long");
        }
        bytes.remove_prefix(std::min(length, bytes.size()));
    }
    // Bytes of a record header that is not whole say what they can.
    if (!bytes.empty() && static_cast<unsigned char>(bytes.front()) != kHandshakeRecord) {
        return refuse_hello("the bytes are not a TLS handshake");
    }
    if (bytes.size() > 1 && bytes[1] != 3) {
        return refuse_hello("the bytes are not a TLS handshake");
    }
    return handshake;
}

Status read_server_name(std::string_view extension, ClientHello& hello) {
    Cursor cursor(extension);
    Cursor list(cursor.vector(2));
    if (cursor.ended_early() || !cursor.empty()) {
        return refuse_hello("the server name extension is malformed");
    }
    const std::uint32_t type = list.number(1);
    const std::string_view name = list.vector(2);
    if (list.ended_early() || !list.empty() || type != kHostName || name.empty()) {
        return refuse_hello("the server name extension does not hold exactly one host name");
    }
    hello.server_name = name;
    return ok();
}

Status read_extensions(std::string_view bytes, ClientHello& hello) {
    Cursor cursor(bytes);
    std::set<std::uint32_t> seen;
    while (!cursor.empty()) {
        const std::uint32_t type = cursor.number(2);
        const std::string_view extension = cursor.vector(2);
        if (cursor.ended_early()) {
            return refuse_hello("an extension is cut off");
        }
        if (!seen.insert(type).second) {
            return refuse_hello("an extension appears twice");
        }
        if (type == kServerNameExtension) {
            BOOST_OUTCOME_TRY(read_server_name(extension, hello));
        }
        hello.encrypted =
            hello.encrypted || type == kEncryptedClientHello || type == kEncryptedServerName;
    }
    return ok();
}

Result<std::optional<ClientHello>> read_body(std::string_view body) {
    Cursor cursor(body);
    const std::uint32_t version = cursor.number(2);
    (void)cursor.take(kRandomBytes);
    const std::string_view session_id = cursor.vector(1);
    const std::string_view ciphers = cursor.vector(2);
    const std::string_view compressions = cursor.vector(1);
    if (cursor.ended_early() || (version >> 8U) != 3 || session_id.size() > kSessionIdBytesMax ||
        ciphers.size() < 2 || ciphers.size() % 2 != 0 || compressions.empty()) {
        return refuse_hello("it is malformed");
    }
    ClientHello hello;
    if (cursor.empty()) {
        return std::optional(hello);  // no extensions: before TLS 1.2 that was usual
    }
    const std::string_view extensions = cursor.vector(2);
    if (cursor.ended_early() || !cursor.empty()) {
        return refuse_hello("its extensions do not end where it ends");
    }
    BOOST_OUTCOME_TRY(read_extensions(extensions, hello));
    return std::optional(hello);
}

}  // namespace

Result<std::optional<ClientHello>> read_client_hello(
    std::string_view bytes, std::size_t bytes_max) {
    const auto gathered = gather(bytes, bytes_max);
    if (gathered.has_error()) {
        return gathered.error();
    }
    const std::string_view handshake = gathered.value();
    if (!handshake.empty() && static_cast<unsigned char>(handshake.front()) != kClientHello) {
        return refuse_hello("the first message is another one");
    }
    if (handshake.size() < kHandshakeHeaderBytes) {
        return std::optional<ClientHello>();
    }
    Cursor header(handshake);
    (void)header.number(1);
    const std::size_t length = header.number(3);
    if (kHandshakeHeaderBytes + length > bytes_max) {
        return Error(ErrorCode::kLimitExceeded, "ClientHello: it is too long");
    }
    if (handshake.size() < kHandshakeHeaderBytes + length) {
        return std::optional<ClientHello>();
    }
    if (handshake.size() > kHandshakeHeaderBytes + length) {
        return refuse_hello("something follows it before the server has answered");
    }
    return read_body(header.take(length));
}

Allowed<bool> check_client_hello(const ClientHello& hello, const Authority& target) {
    if (hello.encrypted) {
        return EgressRefusal{
            Reason::kEncryptedClientHello, "The ClientHello hides the name of the server."};
    }
    if (hello.server_name.empty()) {
        if (target.host.address) {
            return true;
        }
        return EgressRefusal{Reason::kNoServerName, "The ClientHello names no server."};
    }
    const auto host = parse_host(hello.server_name);
    if (host.has_error() || host.value() != target.host) {
        return EgressRefusal{
            Reason::kServerNameMismatch,
            "The ClientHello names another server than " + target.host.text + "."};
    }
    return true;
}

}  // namespace cellkeep::egress
