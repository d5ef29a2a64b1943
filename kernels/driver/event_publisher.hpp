// SPDX-License-Identifier: Apache-2.0
//
// What a driver says, as the messages that clients read: streams, displays, results, errors,
// and messages of the driver's own making. Order is kept: text that is held is sent before
// anything else. One thread.
#pragma once

#include "kernels/common/interpreter.hpp"
#include "kernels/driver/event_fields.hpp"
#include "protocol/support/result.hpp"

#include <nlohmann/json.hpp>

#include <string>

namespace cellkeep::kernels::driver {

class EventPublisher {
 public:
    explicit EventPublisher(const KernelParts& parts) : parts_(parts) {}

    /// Results and errors of a silent execution are not published. count: of the running cell.
    void begin(int count, bool silent);

    /// stdout, stderr, display, result, clear or message. kProtocol says what is wrong with it;
    /// kNotFound: it is another event.
    Status publish(const nlohmann::json& event);
    void publish_error(const CodeFault& fault);

 private:
    Status stream(StreamName name, const nlohmann::json& event);
    Status display(const nlohmann::json& event);
    Status result(const nlohmann::json& event);
    Status message(const nlohmann::json& event);
    void send(const std::string& type, const nlohmann::json& content);
    void send(const Payload& payload);

    KernelParts parts_;
    int count_ = 0;
    bool silent_ = false;
};

}  // namespace cellkeep::kernels::driver
