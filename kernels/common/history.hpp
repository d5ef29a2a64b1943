// SPDX-License-Identifier: Apache-2.0
//
// xeus's history manager, answered by the interpreter: the language keeps its own history with true
// sessions, line numbers and outputs. xeus's own store is never used.
#pragma once

#include "kernels/common/interpreter.hpp"

#include <xeus/xhistory_manager.hpp>

#include <memory>

namespace cellkeep::kernels {

/// interpreter must outlive it.
std::unique_ptr<xeus::xhistory_manager> make_history(Interpreter& interpreter);

}  // namespace cellkeep::kernels
