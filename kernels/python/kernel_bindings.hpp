// SPDX-License-Identifier: Apache-2.0
//
// What the Python half of the kernel (package cellkeep_kernel) may ask of the C++ half: the module
// _cellkeep_host. One object, handed to cellkeep_kernel.start(). Its methods let go of the
// interpreter's lock before they wait for the link. Where nothing else is said, a method other than
// write, flush and publish belongs to the main thread.
#pragma once

#include "kernels/common/interpreter.hpp"
#include "kernels/common/memory_reserve.hpp"
#include "kernels/python/python_object.hpp"

#include <atomic>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace cellkeep::kernels::python {

/// The lock is held in all of it, and after it.
class Host {
 public:
    explicit Host(const KernelParts& parts) : parts_(parts) {}

    int link_fd() const { return parts_.inbox.fd(); }
    bool has_held() const { return parts_.inbox.has_held(); }

    /// True: the caller must see to it that flush() is called soon.
    bool write_utf8(bool to_stderr, std::string_view text);
    void flush();
    /// What the C library's stdout and stderr hold for fd 1 and 2.
    static void flush_c_streams();
    /// Room for the words that there is no memory.
    MemoryReserve& reserve() { return reserve_; }

    /// more: another message follows at once (link.hpp). kLimitExceeded: past a limit of the wire.
    Status publish(const Payload& payload, bool more);

    /// The header of the request that output belongs to, as JSON.
    std::string parent_header() const { return std::string(parts_.outbox.output_parent()); }

    /// Fails when the link has closed, as all that follows.
    Status request_input(std::string_view prompt, bool password);
    /// Reads one frame; nothing if it was not the answer.
    Result<std::optional<InputReply>> read_input();

    /// A question on the stdin channel, as a type and the JSON of its content. kLimitExceeded: past
    /// a limit of the wire.
    Status ask(std::string_view type, std::string_view content);
    /// As read_input().
    Result<std::optional<protocol::Message>> read_answer(std::string_view type);

    // --- the debugger's, from any thread

    /// From now on next_debug_request() reads the link, on a thread of its own (Inbox::share).
    Status share_link() { return parts_.inbox.share(); }
    /// Blocks. Nothing: the link has closed.
    std::optional<protocol::Message> next_debug_request();
    /// As a child of header. kLimitExceeded: past a limit of the wire.
    Status send(protocol::Channel channel, std::string_view header, const Payload& payload);

    /// In a forked child: this process no longer speaks for the kernel.
    void abandon();

 private:
    KernelParts parts_;
    MemoryReserve reserve_;
    std::atomic<bool> abandoned_{false};
};

/// The module, for PyImport_AppendInittab() or as what a file of it exports.
PyObject* make_host_module();

/// The object for Python; it must not outlive the host. Null with an exception.
Object expose(Host& host);
/// Of an object that expose() has made; null without an exception for every other.
Host* host_in(PyObject* object);

}  // namespace cellkeep::kernels::python
