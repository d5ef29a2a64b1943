// SPDX-License-Identifier: Apache-2.0
//
// What keeps another program from taking the server's place. io_context thread only.
#pragma once

#include "kernel-manager/cli/serve/fronts.hpp"
#include "kernel-manager/jupyter/zmq/zmq_front.hpp"
#include "kernel-manager/service/service.hpp"

#include <string>
#include <vector>

namespace cellkeep::cli {

/// What cannot pass in that format of a hand-over, by its names. Nothing is given up.
std::vector<std::string> find_in_the_way(
    const session::Service& service,
    Fronts& fronts,
    const jupyter::ZmqFront& zmq_front,
    int format);

}  // namespace cellkeep::cli
