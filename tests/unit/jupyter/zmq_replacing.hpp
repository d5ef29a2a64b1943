// SPDX-License-Identifier: Apache-2.0
//
// A stage whose front gives way to another one in the same process, as with execve(2): everything
// that passes goes through the bytes that another program would read.
#pragma once

#include "kernel-manager/jupyter/zmq/passed_zmq.hpp"
#include "tests/unit/jupyter/zmq_client.hpp"

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include <functional>
#include <string>
#include <utility>

namespace cellkeep::jupyter::test {

/// Another front in the place of stage.front, which has gone. It does not know the session yet.
inline void take_place(Stage& stage, ZmqLeft left, ZmqFrontConfig config = {}) {
    const auto bytes = nlohmann::json::to_cbor(write_zmq(left.values));
    auto values = read_zmq(nlohmann::json::from_cbor(bytes));
    INFO((values.has_error() ? values.error().message() : "read"));
    REQUIRE(values.has_value());
    left.values = std::move(values).value();
    config.directory = stage.directory.path() + "/c";
    config.socket_directory = stage.directory.path() + "/s";
    config.log = [&stage](const std::string& line) { stage.log.push_back(line); };
    auto created = ZmqFront::create(stage.io, std::move(config), std::move(left));
    INFO((created.has_error() ? created.error().message() : "created"));
    REQUIRE(created.has_value());
    stage.front = std::move(created).value();
}

/// The same with the session. between: while there is no front.
inline void replace(
    Stage& stage, const std::function<void()>& between = [] {}, ZmqFrontConfig config = {}) {
    ZmqLeft left = stage.front->pass_on();
    stage.front->leave_files();
    stage.front.reset();
    between();
    take_place(stage, std::move(left), std::move(config));
    REQUIRE(stage.front->on_session_created(stage.session).has_value());
    stage.front->end_taking_over();
}

}  // namespace cellkeep::jupyter::test
