// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/kernel/process/copy_request.hpp"

#include "protocol/internal_request.hpp"

#include <utility>

namespace cellkeep::session {

using protocol::Channel;
using protocol::Message;

boost::asio::awaitable<CopyRequest::Answer> CopyRequest::ask(
    std::shared_ptr<Interpreter> interpreter,
    ServerMessages messages,
    UniqueFd socket,
    checkpoint::OnThreads on_threads,
    std::chrono::milliseconds patience) {
    const Message request = messages.request(
        Channel::kControl, protocol::kCheckpointRequest, {{"on_threads", to_string(on_threads)}});
    request_id_ = request.header().msg_id;
    const auto answered = answered_ = std::make_shared<Completion<Answer>>(io_);
    if (const Status sent = interpreter->send_with(request, std::move(socket)); sent.has_error()) {
        answered->set(sent.error());
    }
    interpreter.reset();  // it may be lost while this waits
    timer_.expires_after(patience);
    timer_.async_wait([answered](const boost::system::error_code& error) {
        if (!error) {
            answered->set(
                Error(ErrorCode::kTimeout, "checkpoint: the interpreter does not answer"));
        }
    });
    Answer answer = co_await Completion<Answer>::wait(answered);
    answered_.reset();
    timer_.cancel();
    co_return answer;
}

bool CopyRequest::take(const Message& message) {
    if (!answered_ || message.channel() != Channel::kControl ||
        message.parent().msg_id != request_id_) {
        return false;
    }
    answered_->set(checkpoint::read_copy_answer(message.content_json()));
    return true;
}

void CopyRequest::fail(const std::string& why) {
    if (answered_) {
        answered_->set(Error(ErrorCode::kUnavailable, why));
    }
}

}  // namespace cellkeep::session
