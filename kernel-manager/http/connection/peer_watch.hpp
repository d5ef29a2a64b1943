// SPDX-License-Identifier: Apache-2.0
//
// Sees the client of one request go while its answer is made: a read that waits beside it. What it
// reads is the next request, kept by the RequestReader. Kept alive by its own coroutine; one
// io_context thread.
#pragma once

#include "kernel-manager/http/connection/request_reader.hpp"
#include "kernel-manager/http/connection/wire.hpp"
#include "kernel-manager/http/message/streaming.hpp"

#include <boost/asio/awaitable.hpp>
#include <boost/asio/steady_timer.hpp>

#include <functional>
#include <memory>
#include <string>
#include <utility>

namespace cellkeep::http {

class PeerWatch : public ClientWatch, public std::enable_shared_from_this<PeerWatch> {
 public:
    PeerWatch(std::shared_ptr<Wire> wire, std::shared_ptr<RequestReader> reader);

    /// In the middle of a request's body it notes `gone` and reads nothing: that read is the
    /// handler's.
    void watch(std::function<void()> gone) override;
    bool gone() const override { return gone_; }
    void await(std::string what, std::function<void()> changed) override;
    bool is_passed() const override { return passed_; }
    bool is_held() const override { return held_; }
    /// What the answer waits for; empty: something that cannot pass.
    const std::string& awaited() const { return awaited_; }
    /// A part of the answer is being written.
    void set_writing(bool writing) { writing_ = writing; }
    bool is_writing() const { return writing_; }
    /// The head of the answer has been sent, here or by another program.
    void set_begun() { begun_ = true; }
    bool has_begun() const { return begun_; }
    /// In a pause after which another program may give the answer.
    void hold(bool held);
    /// Another program gives the answer. on_gone is not called any more.
    void pass_on();
    /// Tells the writer of the body that the connection is to close soon.
    void announce_closing();
    bool is_closing() const { return closing_; }
    void watch_closing(std::function<void()> closing) { on_closing_ = std::move(closing); }
    /// Calls no callback any more; returns when the read has ended, so that the next one may begin.
    boost::asio::awaitable<void> end();

 private:
    boost::asio::awaitable<void> run();

    std::shared_ptr<Wire> wire_;
    std::shared_ptr<RequestReader> reader_;
    std::function<void()> on_gone_;
    std::function<void()> on_closing_;
    std::string awaited_;
    std::function<void()> on_changed_;
    boost::asio::steady_timer ended_;  // never expires; cancelled when the read has ended
    bool running_ = false;
    bool stopping_ = false;
    bool gone_ = false;
    bool closing_ = false;
    bool passed_ = false;
    bool held_ = false;
    bool writing_ = false;
    bool begun_ = false;
};

}  // namespace cellkeep::http
