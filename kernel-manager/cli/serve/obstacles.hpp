// SPDX-License-Identifier: Apache-2.0
//
// What keeps another program from taking the server's place. io_context thread only.
#pragma once

#include "kernel-manager/cli/serve/fronts.hpp"
#include "kernel-manager/cli/serve/listening.hpp"
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

/// What could pass in that format and does something that cannot, by its names.
std::vector<std::string> find_work(
    const session::Service& service, const Listeners& listeners, int format);

}  // namespace cellkeep::cli
