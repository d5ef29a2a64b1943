// SPDX-License-Identifier: Apache-2.0
//
// `cellkeep image build` as a process of its own, in a session of its own: it goes on when the
// program that began it ends, however that ends, so that the next one finds more done. Several of
// them make one image, because the store lets one build at a time. io_context thread only.
#pragma once

#include "protocol/support/result.hpp"

#include <boost/asio/io_context.hpp>

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace cellkeep::cli {

/// Longer lines are cut.
inline constexpr std::size_t kBuildLineBytesMax = 4096;

/// The path of this program, for start(): also if another has been installed in its place.
std::string own_program();

class BuildProcess {
 public:
    struct Hooks {
        /// A line of its stderr, without the line's end.
        std::function<void(const std::string&)> on_line;
        /// Once: it has ended, and all its lines were told. kCancelled if a signal ended it,
        /// kUnavailable if it failed.
        std::function<void(const Status&)> on_end;
    };

    /// program: a path. arguments: without the program's name. Neither hook is called before it
    /// returns, or after the object is gone. The process is not waited for then.
    static Result<std::unique_ptr<BuildProcess>> start(
        boost::asio::io_context& io,
        const std::string& program,
        const std::vector<std::string>& arguments,
        Hooks hooks);
    BuildProcess(const BuildProcess&) = delete;
    BuildProcess& operator=(const BuildProcess&) = delete;
    ~BuildProcess();

 private:
    struct State;
    explicit BuildProcess(std::shared_ptr<State> state) : state_(std::move(state)) {}
    std::shared_ptr<State> state_;
};

}  // namespace cellkeep::cli
