// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/http/message/multipart.hpp"

#include "kernel-manager/http/message/headers.hpp"
#include "protocol/support/text.hpp"

#include <algorithm>
#include <utility>

namespace cellkeep::http {

namespace {

Error bad_body(const char* why) {
    return {ErrorCode::kProtocol, std::string("The multipart body ") + why + "."};
}

/// The value of NAME="…" or NAME=… behind a semicolon of a header's value.
std::optional<std::string> parameter(std::string_view value, std::string_view wanted) {
    std::size_t at = value.find(';');
    while (at != std::string_view::npos) {
        value = trim(value.substr(at + 1));
        const std::size_t equals = std::min(value.find('='), value.size());
        const bool found = http::equals_ignoring_case(trim(value.substr(0, equals)), wanted);
        value.remove_prefix(std::min(equals + 1, value.size()));
        std::string text;
        std::size_t end = 0;
        if (value.starts_with('"')) {
            for (end = 1; end < value.size() && value[end] != '"'; ++end) {
                if (value[end] == '\\' && end + 1 < value.size()) {
                    ++end;
                }
                text += value[end];
            }
            if (end >= value.size()) {
                return std::nullopt;
            }
        } else {
            text = trim(value.substr(0, value.find(';')));
        }
        if (found) {
            return text;
        }
        at = value.find(';', end);
    }
    return std::nullopt;
}

}  // namespace

std::optional<std::string> boundary_of(std::string_view content_type) {
    const std::string_view type = trim(content_type.substr(0, content_type.find(';')));
    if (!http::equals_ignoring_case(type, "multipart/form-data")) {
        return std::nullopt;
    }
    auto boundary = parameter(content_type, "boundary");
    const bool usable = boundary && !boundary->empty() && boundary->size() <= kBoundaryBytesMax;
    return usable ? boundary : std::nullopt;
}

MultipartReader::MultipartReader(const std::string& boundary)
    : delimiter_("\r\n--" + boundary), buffer_("\r\n") {}

Result<MultipartReader::Step> MultipartReader::next() {
    buffer_.erase(0, std::exchange(taken_, 0));
    switch (state_) {
        case State::kPreamble: {
            const std::size_t at = buffer_.find(delimiter_);
            if (at == std::string::npos) {
                take(buffer_.size() - std::min(buffer_.size(), delimiter_.size() - 1));
                return Step{};
            }
            buffer_.erase(0, at + delimiter_.size());
            state_ = State::kDelimiter;
            return read_delimiter();
        }
        case State::kDelimiter:
            return read_delimiter();
        case State::kHead:
            return read_head();
        case State::kData:
            return read_data();
        case State::kEnd:
            break;
    }
    buffer_.clear();
    Step end;
    end.kind = Step::Kind::kEnd;
    return end;
}

Result<MultipartReader::Step> MultipartReader::read_delimiter() {
    if (buffer_.size() < 2) {
        return Step{};
    }
    const std::string behind = buffer_.substr(0, 2);
    buffer_.erase(0, 2);
    if (behind == "--") {
        state_ = State::kEnd;
        return next();
    }
    if (behind != "\r\n") {
        return bad_body("has something behind a boundary");
    }
    state_ = State::kHead;
    return read_head();
}

Result<MultipartReader::Step> MultipartReader::read_head() {
    const std::size_t end = buffer_.find("\r\n\r\n");
    if (end == std::string::npos || end > kPartHeadBytesMax) {
        if (buffer_.size() > kPartHeadBytesMax) {
            return Error(ErrorCode::kLimitExceeded, "The head of a part is too long.");
        }
        return Step{};
    }
    if (++parts_ > kPartsMax) {
        return Error(ErrorCode::kLimitExceeded, "The body has too many parts.");
    }
    std::string_view head(buffer_.data(), end);
    Step step;
    step.kind = Step::Kind::kPart;
    bool named = false;
    while (!head.empty()) {
        const std::size_t line_end = std::min(head.find("\r\n"), head.size());
        const std::string_view line = head.substr(0, line_end);
        head.remove_prefix(std::min(line_end + 2, head.size()));
        const std::size_t colon = std::min(line.find(':'), line.size());
        if (http::equals_ignoring_case(line.substr(0, colon), "Content-Disposition")) {
            auto name = parameter(line, "name");
            named = name.has_value();
            step.name = name.value_or("");
            step.filename = parameter(line, "filename").value_or("");
        }
    }
    if (!named) {
        return bad_body("has a part without a name");
    }
    take(end + 4);
    state_ = State::kData;
    return step;
}

MultipartReader::Step MultipartReader::read_data() {
    Step step;
    const std::size_t at = buffer_.find(delimiter_);
    if (at == 0) {
        buffer_.erase(0, delimiter_.size());
        state_ = State::kDelimiter;
        step.kind = Step::Kind::kPartEnd;
        return step;
    }
    const std::size_t doubtful = std::min(buffer_.size(), delimiter_.size() - 1);
    const std::size_t sure = at != std::string::npos ? at : buffer_.size() - doubtful;
    if (sure == 0) {
        return step;
    }
    step.kind = Step::Kind::kData;
    step.data = std::string_view(buffer_).substr(0, sure);
    take(sure);
    return step;
}

}  // namespace cellkeep::http
