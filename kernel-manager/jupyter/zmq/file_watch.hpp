// SPDX-License-Identifier: Apache-2.0
//
// Reports which files of one directory are opened, by any process (inotify(7)). All calls on the
// io_context thread.
#pragma once

#include "protocol/support/result.hpp"
#include "protocol/support/unique_fd.hpp"

#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>

#include <functional>
#include <memory>
#include <string>

namespace cellkeep::jupyter {

class FileWatch : public std::enable_shared_from_this<FileWatch> {
 public:
    struct Events {
        /// The name within the directory. A file that appears by rename(2) counts when it is opened
        /// under its new name.
        std::function<void(const std::string& name)> on_opened;
        /// Events were lost because they came faster than they were read: any file may be open.
        std::function<void()> on_lost;
    };

    /// kUnavailable if this user has no inotify instance left.
    static Result<std::shared_ptr<FileWatch>> create(
        boost::asio::io_context& io, const std::string& directory, Events events);

    class Key {
        friend class FileWatch;
        Key() = default;
    };
    FileWatch(Key key, boost::asio::io_context& io, Events events);
    FileWatch(const FileWatch&) = delete;
    FileWatch& operator=(const FileWatch&) = delete;
    ~FileWatch() = default;

    /// Takes the watch that another program in this process has passed on. Linux has kept the
    /// events since then, and this reports them. kInvalidArgument if it is no inotify descriptor.
    static Result<std::shared_ptr<FileWatch>> go_on(
        boost::asio::io_context& io, UniqueFd passed, Events events);

    /// No event comes any more. The destructor does the same.
    void close();
    /// The same, and what happens from now on waits in the descriptor. None if it is closed.
    UniqueFd pass_on();

 private:
    static Result<std::shared_ptr<FileWatch>> begin(
        boost::asio::io_context& io, UniqueFd fd, Events events);
    void wait();
    void drain();

    boost::asio::posix::stream_descriptor descriptor_;
    Events events_;
};

}  // namespace cellkeep::jupyter
