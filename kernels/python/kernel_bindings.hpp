// SPDX-License-Identifier: Apache-2.0
//
// What the Python half of the kernel (package cellkeep_kernel) may ask of the C++ half. One object,
// handed to cellkeep_kernel.start(). Its methods let go of the interpreter's lock before they wait
// for the link. Where nothing else is said, a
// method other than write, flush and publish belongs to the main thread.
#pragma once

#include "kernels/common/interpreter.hpp"

#include <pybind11/pybind11.h>

#include <atomic>
#include <string_view>

namespace cellkeep::kernels::python {

class Host {
 public:
    explicit Host(const KernelParts& parts) : parts_(parts) {}

    int link_fd() const { return parts_.inbox.fd(); }
    bool has_held() const { return parts_.inbox.has_held(); }

    /// True: the caller must see to it that flush() is called soon. UnicodeEncodeError for a lone
    /// surrogate.
    bool write(bool to_stderr, const pybind11::str& text);
    /// The same for UTF-8.
    bool write_utf8(bool to_stderr, std::string_view text);
    void flush();
    /// What the C library's stdout and stderr hold for fd 1 and 2.
    void flush_c_streams();

    /// content and metadata are JSON; buffers a sequence of objects with contiguous memory. more:
    /// another message follows at once (link.hpp). ValueError: past a limit of the wire.
    void publish(
        std::string_view type,
        const pybind11::bytes& content,
        const pybind11::bytes& metadata,
        const pybind11::sequence& buffers,
        bool more);

    /// The header of the request that output belongs to, as JSON.
    pybind11::bytes parent_header() const;

    void request_input(std::string_view prompt, bool password);
    /// Reads one frame: None if it was not the answer, else (value, is_end_of_input). EOFError: the
    /// link closed.
    pybind11::object read_input();

    /// A question on the stdin channel, as a type and the JSON of its content. ValueError: past a
    /// limit of the wire. EOFError: the link closed.
    void ask(std::string_view type, const pybind11::bytes& content);
    /// As read_input(): the JSON of the answer's content.
    pybind11::object read_answer(std::string_view type);

    // --- the debugger's, from any thread

    /// From now on next_debug_request() reads the link, on a thread of its own (Inbox::share).
    void share_link();
    /// Blocks. (header, content) as JSON; None: the link has closed.
    pybind11::object next_debug_request();
    /// Sends on "control" or "iopub" as a child of header. ValueError: past a limit of the wire.
    void send(
        std::string_view channel,
        std::string_view type,
        const pybind11::bytes& header,
        const pybind11::bytes& content);

    /// In a forked child: this process no longer speaks for the kernel.
    void abandon();

 private:
    KernelParts parts_;
    std::atomic<bool> abandoned_{false};
};

}  // namespace cellkeep::kernels::python
