// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/egress/message/message_reader.hpp"

#include <boost/asio/buffer.hpp>
#include <boost/beast/http/basic_parser.hpp>
#include <boost/beast/http/error.hpp>

#include <algorithm>
#include <charconv>
#include <limits>
#include <utility>

namespace cellkeep::egress {

namespace beast = boost::beast;

namespace {

constexpr std::string_view kHeadEnd = "\r\n\r\n";
constexpr std::string_view kTokenSymbols = "!#$%&'*+-.^_`|~";  // RFC 9110, section 5.6.2

constexpr std::string_view kVersionStart = "HTTP/1.";  // no method begins like that

char lower(char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

bool is_token(std::string_view text) {
    return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
        const char small = lower(c);
        return (small >= 'a' && small <= 'z') || (c >= '0' && c <= '9') ||
               kTokenSymbols.find(c) != std::string_view::npos;
    });
}

Error refuse_message(const std::string& why) {
    return {ErrorCode::kProtocol, why};
}

/// The framing fields, at most one of them, once (RFC 9112, section 6.3).
Status check_framing(const MessageHead& head) {
    const auto lengths = values_of(head, "Content-Length");
    const auto codings = values_of(head, "Transfer-Encoding");
    if (lengths.size() > 1) {
        return refuse_message("Content-Length appears more than once");
    }
    if (!lengths.empty() && !codings.empty()) {
        return refuse_message("Content-Length and Transfer-Encoding exclude each other");
    }
    if (codings.size() > 1 || (!codings.empty() && !same_name(codings.front(), "chunked"))) {
        return refuse_message("the only transfer coding that is understood is chunked");
    }
    if (!codings.empty() && !head.version_1_1) {
        return refuse_message("HTTP/1.0 has no transfer codings");
    }
    const bool digits = lengths.empty() ||
                        (!lengths.front().empty() &&
                         lengths.front().find_first_not_of("0123456789") == std::string_view::npos);
    return digits ? Status(ok()) : refuse_message("Content-Length is not a number");
}

/// What the library finds, kept as values.
template <bool is_request>
class Parser final : public beast::http::basic_parser<is_request> {
 public:
    MessageHead head;
    std::string body;

 private:
    using Failure = beast::error_code;
    using View = beast::string_view;

    static std::string copy(View text) { return {text.data(), text.size()}; }

    void on_request_impl(
        beast::http::verb /*verb*/, View method, View target, int version, Failure& ec) override {
        head.method = copy(method);
        head.target = copy(target);
        head.version_1_1 = version == 11;
        ec = {};
    }
    void on_response_impl(int code, View reason, int version, Failure& ec) override {
        head.status = code;
        head.reason = copy(reason);
        head.version_1_1 = version == 11;
        ec = {};
    }
    void on_field_impl(beast::http::field /*field*/, View name, View value, Failure& ec) override {
        if (!trailers_) {
            head.fields.push_back({copy(name), copy(value)});
        }
        ec = {};
    }
    void on_header_impl(Failure& ec) override {
        trailers_ = true;  // fields that still come are dropped (RFC 9112, section 7.1.2)
        ec = {};
    }
    void on_body_init_impl(const boost::optional<std::uint64_t>& /*length*/, Failure& ec) override {
        ec = {};
    }
    std::size_t on_body_impl(View piece, Failure& ec) override {
        body.append(piece.data(), piece.size());
        ec = {};
        return piece.size();
    }
    void on_chunk_header_impl(std::uint64_t /*size*/, View /*extensions*/, Failure& ec) override {
        ec = {};
    }
    std::size_t on_chunk_body_impl(std::uint64_t /*remain*/, View piece, Failure& ec) override {
        body.append(piece.data(), piece.size());
        ec = {};
        return piece.size();
    }
    void on_finish_impl(Failure& ec) override { ec = {}; }

    bool trailers_ = false;
};

}  // namespace

bool same_name(std::string_view left, std::string_view right) {
    return std::equal(left.begin(), left.end(), right.begin(), right.end(), [](char a, char b) {
        return lower(a) == lower(b);
    });
}

std::vector<std::string_view> values_of(const MessageHead& head, std::string_view name) {
    std::vector<std::string_view> values;
    for (const Field& field : head.fields) {
        if (same_name(field.name, name)) {
            values.push_back(field.value);
        }
    }
    return values;
}

Status check_head_bytes(std::string_view head, std::size_t bytes_max, std::size_t fields_max) {
    if (head.size() > bytes_max) {
        return Error(
            ErrorCode::kLimitExceeded,
            "the head is longer than " + std::to_string(bytes_max) + " bytes");
    }
    if (!head.ends_with(kHeadEnd)) {
        return refuse_message("the head does not end with an empty line");
    }
    head.remove_suffix(2);
    std::size_t lines = 0;
    while (!head.empty()) {
        const std::size_t end = head.find("\r\n");
        const std::string_view line = head.substr(0, end);
        head.remove_prefix(end + 2);
        const bool odd = std::any_of(line.begin(), line.end(), [](char c) {
            return (static_cast<unsigned char>(c) < ' ' && c != '\t') || c == '\x7F';
        });
        if (odd) {
            return refuse_message("the head has a control character or a bare line end");
        }
        if (lines > 0 && !is_token(line.substr(0, line.find(':')))) {
            return refuse_message(
                "a line of the head does not begin with a field name and a colon");
        }
        if (lines > 0 && line.find(':') == std::string_view::npos) {
            return refuse_message("a line of the head has no colon");
        }
        // Only an answer's may end so: its reason may be empty (RFC 9112, section 4).
        const bool cut = line.ends_with(' ') && !line.starts_with(kVersionStart);
        if (lines == 0 && (line.empty() || line.front() == ' ' || cut)) {
            return refuse_message("the first line is malformed");
        }
        if (++lines > fields_max + 1) {
            return Error(
                ErrorCode::kLimitExceeded,
                "the head has more than " + std::to_string(fields_max) + " fields");
        }
    }
    return ok();
}

struct MessageReader::State {
    Kind kind = Kind::kRequest;
    std::size_t head_bytes_max = 0;
    std::size_t fields_max = 0;
    Parser<true> request;
    Parser<false> response;
    std::string pending;  // not yet parsed: a head, or a part of a chunked body
    bool head_done = false;
    bool done = false;
    bool fed = false;
    bool body_expected = false;

    template <typename Action>
    auto with_parser(Action action) {
        return kind == Kind::kRequest ? action(request) : action(response);
    }
    Status parse(std::string_view bytes, std::size_t& taken);
    Status take_head();
    Result<std::size_t> feed_head(std::string_view bytes);
    Result<std::size_t> feed_body(std::string_view bytes);
};

MessageReader::MessageReader(Kind kind, std::size_t head_bytes_max, std::size_t fields_max)
    : state_(std::make_unique<State>()) {
    state_->kind = kind;
    state_->head_bytes_max = head_bytes_max;
    state_->fields_max = fields_max;
    const auto prepare = [kind](auto& parser) {
        parser.body_limit(boost::none);
        parser.header_limit(std::numeric_limits<std::uint32_t>::max());  // we have counted
        parser.skip(kind == Kind::kResponseToHead);
        return 0;
    };
    (void)state_->with_parser(prepare);
}

MessageReader::~MessageReader() = default;

Status MessageReader::State::parse(std::string_view bytes, std::size_t& taken) {
    return with_parser([&](auto& parser) -> Status {
        beast::error_code error;
        taken = parser.put(boost::asio::buffer(bytes.data(), bytes.size()), error);
        if (error && error != beast::http::error::need_more) {
            return refuse_message("not HTTP: " + error.message());
        }
        done = parser.is_done();
        return ok();
    });
}

Status MessageReader::State::take_head() {
    BOOST_OUTCOME_TRY(check_head_bytes(pending, head_bytes_max, fields_max));
    // Some servers leave out the space before an empty reason; the library wants it.
    constexpr std::size_t kStatusLine = std::string_view("HTTP/1.1 200").size();
    if (kind != Kind::kRequest && pending.starts_with(kVersionStart) &&
        pending.find("\r\n") == kStatusLine) {
        pending.insert(kStatusLine, 1, ' ');
    }
    std::size_t taken = 0;
    BOOST_OUTCOME_TRY(parse(pending, taken));
    const bool whole = with_parser([](auto& parser) { return parser.is_header_done(); });
    if (!whole || taken != pending.size()) {
        return refuse_message("not HTTP: the head is malformed");
    }
    BOOST_OUTCOME_TRY(with_parser([](auto& parser) {
        parser.eager(true);
        return check_framing(parser.head);
    }));
    pending.clear();
    body_expected = !done;
    head_done = true;
    return ok();
}

Result<std::size_t> MessageReader::State::feed_head(std::string_view bytes) {
    const std::size_t had = pending.size();
    // The end may lie across what was there and what comes.
    const std::size_t from = had < kHeadEnd.size() ? 0 : had - kHeadEnd.size() + 1;
    pending += bytes.substr(0, head_bytes_max + 1 - std::min(had, head_bytes_max + 1));
    const std::size_t end = pending.find(kHeadEnd, from);
    if (end == std::string::npos) {
        if (pending.size() > head_bytes_max) {
            return Error(
                ErrorCode::kLimitExceeded,
                "the head is longer than " + std::to_string(head_bytes_max) + " bytes");
        }
        return bytes.size();
    }
    pending.resize(end + kHeadEnd.size());
    BOOST_OUTCOME_TRY(take_head());
    return end + kHeadEnd.size() - had;
}

Result<std::size_t> MessageReader::State::feed_body(std::string_view bytes) {
    const std::size_t had = pending.size();
    pending += bytes;
    std::size_t taken = 0;
    BOOST_OUTCOME_TRY(parse(pending, taken));
    if (done) {
        pending.clear();
        return taken - std::min(taken, had);
    }
    // What is left is the beginning of a chunk's line, or of the trailer section.
    pending.erase(0, taken);
    if (pending.size() > head_bytes_max) {
        return Error(
            ErrorCode::kLimitExceeded,
            "a line of the body is longer than " + std::to_string(head_bytes_max) + " bytes");
    }
    return bytes.size();
}

Result<std::size_t> MessageReader::feed(std::string_view bytes) {
    state_->fed = state_->fed || !bytes.empty();
    if (state_->done || bytes.empty()) {
        return std::size_t{0};
    }
    if (state_->head_done) {
        return state_->feed_body(bytes);
    }
    BOOST_OUTCOME_TRY(const std::size_t taken, state_->feed_head(bytes));
    if (!state_->head_done || state_->done || taken == bytes.size()) {
        return taken;
    }
    BOOST_OUTCOME_TRY(const std::size_t more, state_->feed_body(bytes.substr(taken)));
    return taken + more;
}

Status MessageReader::end() {
    if (state_->done) {
        return ok();
    }
    if (!state_->head_done || !state_->pending.empty()) {
        return refuse_message("the peer closed in the middle of a message");
    }
    return state_->with_parser([this](auto& parser) -> Status {
        beast::error_code error;
        parser.put_eof(error);
        if (error) {
            return refuse_message("the peer closed in the middle of a message");
        }
        state_->done = true;
        return ok();
    });
}

bool MessageReader::head_done() const {
    return state_->head_done;
}

bool MessageReader::done() const {
    return state_->done;
}

bool MessageReader::fed() const {
    return state_->fed;
}

const MessageHead& MessageReader::head() const {
    return state_->kind == Kind::kRequest ? state_->request.head : state_->response.head;
}

std::string MessageReader::take_body() {
    return state_->with_parser([](auto& parser) { return std::exchange(parser.body, {}); });
}

bool MessageReader::has_body() const {
    return state_->body_expected;
}

std::optional<std::uint64_t> MessageReader::content_length() const {
    const auto lengths = values_of(head(), "Content-Length");
    if (lengths.empty()) {
        return std::nullopt;
    }
    std::uint64_t length = 0;
    const std::string_view digits = lengths.front();
    // Cannot fail: the head was checked, and the library refuses what does not fit.
    (void)std::from_chars(digits.data(), digits.data() + digits.size(), length);
    return length;
}

bool MessageReader::keep_alive() const {
    return state_->with_parser([](auto& parser) { return parser.keep_alive(); });
}

}  // namespace cellkeep::egress
