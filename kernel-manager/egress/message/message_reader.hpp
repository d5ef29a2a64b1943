// SPDX-License-Identifier: Apache-2.0
//
// One HTTP/1 message out of bytes, strictly: the head is checked byte by byte before the HTTP
// library sees it, so that nothing that two readers could read in two ways is ever passed on
// (RFC 9112, section 11.2). The body comes out decoded, piece by piece. No I/O; it keeps at most
// one head, or one line of a chunked body, of what it is fed. Any one thread.
#pragma once

#include "protocol/limits.hpp"
#include "protocol/support/result.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace cellkeep::egress {

struct Field {
    std::string name;   // as sent
    std::string value;  // without white space around it
};

struct MessageHead {
    std::string method;  // of a request
    std::string target;
    int status = 0;  // of an answer
    std::string reason;
    bool version_1_1 = true;  // else HTTP/1.0
    std::vector<Field> fields;
};

/// The values of every field of that name, in order; names are compared without regard to case.
std::vector<std::string_view> values_of(const MessageHead& head, std::string_view name);
bool same_name(std::string_view left, std::string_view right);

/// Checks a whole head, up to and with the empty line: size and number of its fields
/// (kLimitExceeded), and as kProtocol: NUL, a bare CR or LF, folded lines, white space before a
/// colon, an empty name.
Status check_head_bytes(std::string_view head, std::size_t bytes_max, std::size_t fields_max);

class MessageReader {
 public:
    enum class Kind {
        kRequest,
        kResponse,
        kResponseToHead,  // has no body whatever its head says
    };

    explicit MessageReader(
        Kind kind,
        std::size_t head_bytes_max = limits::kEgressHeadBytesMax,
        std::size_t fields_max = limits::kEgressHeadersMax);
    MessageReader(const MessageReader&) = delete;
    MessageReader& operator=(const MessageReader&) = delete;
    ~MessageReader();

    /// Takes bytes and returns how many it has taken: fewer only when the message is done, the
    /// rest is the next one's. kLimitExceeded for a head that is too large, kProtocol for what is
    /// no HTTP/1 message or could be read in two ways: Content-Length twice or beside
    /// Transfer-Encoding, a transfer coding other than chunked alone. After a failure it is over.
    Result<std::size_t> feed(std::string_view bytes);
    /// The peer closed: kProtocol if the message is not whole then.
    Status end();

    bool head_done() const;
    bool done() const;
    const MessageHead& head() const;  // once head_done()
    /// What has been decoded since the last call.
    std::string take_body();
    /// A body follows the head: of at least one byte, or of unknown length.
    bool has_body() const;
    std::optional<std::uint64_t> content_length() const;
    /// Whether the sender wants to keep the connection.
    bool keep_alive() const;
    bool fed() const;  // at least one byte

 private:
    struct State;
    std::unique_ptr<State> state_;
};

}  // namespace cellkeep::egress
