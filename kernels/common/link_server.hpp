// SPDX-License-Identifier: Apache-2.0
//
// The xeus server that speaks the kernel link. xkernel dispatches shell and control requests but
// executions and the shutdown through it; what xeus gets wrong on the wire is put right here, and
// only here and in Interpreter (README.md has the table). One thread, no sockets but the link, no
// queue of its own: the session service sends one shell request at a time and holds the others.
#pragma once

#include "kernels/common/checkpoint.hpp"
#include "kernels/common/interpreter.hpp"
#include "protocol/message.hpp"
#include "protocol/support/result.hpp"

#include <xeus/xcontrol_messenger.hpp>
#include <xeus/xeus_context.hpp>
#include <xeus/xkernel_configuration.hpp>
#include <xeus/xserver.hpp>

#include <memory>
#include <streambuf>
#include <string>
#include <string_view>

namespace cellkeep::kernels {

/// What the server works on. xkernel hands it to the builder inside its context.
struct ServerParts {
    KernelParts kernel;
    Interpreter* interpreter = nullptr;  // Owned by xkernel, which destroys the server first.
    Status* outcome = nullptr;           // Where start() leaves how it ended.
    std::streambuf* log = nullptr;       // std::clog's own buffer; start() gives it back.
    Checkpoint* checkpoint = nullptr;
};

class LinkServer final : public xeus::xserver {
 public:
    explicit LinkServer(const ServerParts& parts) : parts_(parts) {}

 private:
    class NoMessenger final : public xeus::xcontrol_messenger {
        nlohmann::json send_to_shell_impl(const nlohmann::json& /*message*/) override {
            return nlohmann::json::object();  // There is no control thread that could ask.
        }
    };

    xeus::xcontrol_messenger& get_control_messenger_impl() override { return messenger_; }
    void send_shell_impl(xeus::xmessage message) override;
    void send_control_impl(xeus::xmessage message) override;
    void send_stdin_impl(xeus::xmessage message) override;
    void publish_impl(xeus::xpub_message message, xeus::channel channel) override;
    void start_impl(xeus::xpub_message message) override;
    void abort_queue_impl(const listener& abort, long polling_interval) override;
    void stop_impl() override { stopped_ = true; }
    void update_config_impl(xeus::xconfiguration& /*config*/) const override {}

    Status serve();
    void dispatch(const protocol::Message& message);
    void dispatch_shell(const protocol::Message& message);
    void dispatch_control(const protocol::Message& message);
    void answer_request(const protocol::Message& message);
    void dispatch_to_xeus(const protocol::Message& message, nlohmann::json content);
    void answer_execute(nlohmann::json content);
    void answer_shutdown(const nlohmann::json& content);
    void answer_comm_info(const protocol::Message& message);
    void answer_adopt(const protocol::Message& message);
    void answer_checkpoint(const protocol::Message& message);
    void forward_comm(const protocol::Message& message);
    void reply(
        const nlohmann::json& content, const nlohmann::json& metadata, More more = More::kNo);
    void publish_status(std::string_view state, More more = More::kNo);
    void log_ignored(const protocol::Message& message) const;

    ServerParts parts_;
    NoMessenger messenger_;
    bool stopped_ = false;
    // The request being dispatched.
    protocol::Channel channel_ = protocol::Channel::kShell;
    std::string parent_ = "{}";
    std::string request_type_;
    bool replied_ = false;
};

/// An xkernel server_builder; context wraps a ServerParts.
std::unique_ptr<xeus::xserver> make_link_server(
    xeus::xcontext& context,
    const xeus::xconfiguration& config,
    nlohmann::json::error_handler_t error_handler);

}  // namespace cellkeep::kernels
