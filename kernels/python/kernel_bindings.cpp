// SPDX-License-Identifier: Apache-2.0
#include "kernels/python/kernel_bindings.hpp"

#include "kernels/common/request_rules.hpp"
#include "kernels/python/cell_hash.hpp"
#include "kernels/python/text_stream.hpp"

#include <pybind11/embed.h>

#include <cstdio>
#include <optional>
#include <string>
#include <vector>

namespace cellkeep::kernels::python {

namespace py = pybind11;

namespace {

/// The memory of one Python object, held while in scope (the buffer protocol).
class HeldBuffer {
 public:
    explicit HeldBuffer(py::handle object) {
        if (PyObject_GetBuffer(object.ptr(), &view_, PyBUF_SIMPLE) != 0) {
            throw py::error_already_set();
        }
    }
    ~HeldBuffer() { PyBuffer_Release(&view_); }
    HeldBuffer(const HeldBuffer&) = delete;
    HeldBuffer& operator=(const HeldBuffer&) = delete;

    std::string_view bytes() const {
        return {static_cast<const char*>(view_.buf), static_cast<std::size_t>(view_.len)};
    }

 private:
    Py_buffer view_{};
};

std::string_view view(const py::bytes& bytes) {
    return static_cast<std::string_view>(bytes);
}

[[noreturn]] void raise(PyObject* type, const Error& error) {
    PyErr_SetString(type, error.message().c_str());
    throw py::error_already_set();
}

}  // namespace

bool Host::write(bool to_stderr, const py::str& text) {
    Py_ssize_t size = 0;
    const char* bytes = PyUnicode_AsUTF8AndSize(text.ptr(), &size);
    if (bytes == nullptr) {
        throw py::error_already_set();
    }
    return write_utf8(to_stderr, {bytes, static_cast<std::size_t>(size)});
}

bool Host::write_utf8(bool to_stderr, std::string_view text) {
    if (abandoned_) {
        return false;
    }
    const AfterWrite next =
        parts_.output.write(to_stderr ? StreamName::kStderr : StreamName::kStdout, text);
    if (next == AfterWrite::kFlush) {
        flush();
    }
    return next == AfterWrite::kSchedule;
}

void Host::flush() {
    if (abandoned_) {
        return;
    }
    const py::gil_scoped_release unlocked;
    parts_.output.flush();
}

void Host::flush_c_streams() {
    const py::gil_scoped_release unlocked;
    // Not every stream: another one may be locked by a thread that waits for its input.
    (void)std::fflush(stdout);
    (void)std::fflush(stderr);
}

void Host::publish(
    std::string_view type,
    const py::bytes& content,
    const py::bytes& metadata,
    const py::sequence& buffers,
    bool more) {
    if (abandoned_) {
        return;
    }
    std::vector<std::unique_ptr<HeldBuffer>> held;
    Payload payload{
        .type = type, .content = view(content), .metadata = view(metadata), .buffers = {}};
    for (const py::handle buffer : buffers) {
        held.push_back(std::make_unique<HeldBuffer>(buffer));
        payload.buffers.push_back(held.back()->bytes());
    }
    std::optional<Error> refused;
    {
        const py::gil_scoped_release unlocked;
        parts_.output.flush();
        if (Status sent = parts_.outbox.publish(payload, more ? More::kYes : More::kNo);
            !sent && sent.error().code() == ErrorCode::kLimitExceeded) {
            refused = std::move(sent).error();  // Any other failure: the peer is gone.
        }
    }
    if (refused) {
        raise(PyExc_ValueError, *refused);
    }
}

py::bytes Host::parent_header() const {
    py::bytes parent(parts_.outbox.output_parent());
    return parent;
}

void Host::request_input(std::string_view prompt, bool password) {
    flush();
    if (const Status sent = parts_.inbox.request_input(parts_.outbox, prompt, password); !sent) {
        raise(PyExc_EOFError, sent.error());
    }
}

py::object Host::read_input() {
    Result<std::optional<InputReply>> reply = [this] {
        const py::gil_scoped_release unlocked;
        return parts_.inbox.read_input();
    }();
    if (!reply) {
        raise(PyExc_EOFError, reply.error());
    }
    if (!reply.value()) {
        return py::none();
    }
    return py::make_tuple(reply.value()->value, reply.value()->eof);
}

void Host::ask(std::string_view type, const py::bytes& content) {
    flush();
    const Status sent = parts_.inbox.ask(parts_.outbox, type, std::string_view(content));
    if (sent.has_error()) {
        raise(
            sent.error().code() == ErrorCode::kLimitExceeded ? PyExc_ValueError : PyExc_EOFError,
            sent.error());
    }
}

py::object Host::read_answer(std::string_view type) {
    Result<std::optional<protocol::Message>> answer = [this, type] {
        const py::gil_scoped_release unlocked;
        return parts_.inbox.read_answer(type);
    }();
    if (!answer) {
        raise(PyExc_EOFError, answer.error());
    }
    if (!answer.value()) {
        return py::none();
    }
    return py::bytes(std::string(answer.value()->content_json()));
}

void Host::share_link() {
    if (const Status shared = parts_.inbox.share(); !shared) {
        raise(PyExc_OSError, shared.error());
    }
}

py::object Host::next_debug_request() {
    std::optional<protocol::Message> request;
    {
        const py::gil_scoped_release unlocked;
        request = parts_.inbox.divert(kDebugRequest);
    }
    if (!request) {
        return py::none();
    }
    return py::make_tuple(
        py::bytes(std::string(request->header_json())),
        py::bytes(std::string(request->content_json())));
}

void Host::send(
    std::string_view channel,
    std::string_view type,
    const py::bytes& header,
    const py::bytes& content) {
    if (abandoned_) {
        return;
    }
    const auto where =
        channel == "control" ? protocol::Channel::kControl : protocol::Channel::kIopub;
    const std::string_view parent = view(header);
    const Payload payload{.type = type, .content = view(content)};
    std::optional<Error> refused;
    {
        const py::gil_scoped_release unlocked;
        if (Result<std::string> sent = parts_.outbox.send(where, parent, payload);
            !sent && sent.error().code() == ErrorCode::kLimitExceeded) {
            refused = std::move(sent).error();  // Any other failure: the peer is gone.
        }
    }
    if (refused) {
        raise(PyExc_ValueError, *refused);
    }
}

void Host::abandon() {
    abandoned_ = true;
    parts_.inbox.abandon();
}

PYBIND11_EMBEDDED_MODULE(_cellkeep_host, module) {
    py::class_<Host>(module, "Host")
        .def("link_fd", &Host::link_fd)
        .def("has_held", &Host::has_held)
        .def("write", &Host::write)
        .def("flush", &Host::flush)
        .def("flush_c_streams", &Host::flush_c_streams)
        .def("publish", &Host::publish)
        .def("parent_header", &Host::parent_header)
        .def("request_input", &Host::request_input)
        .def("read_input", &Host::read_input)
        .def("ask", &Host::ask)
        .def("read_answer", &Host::read_answer)
        .def("share_link", &Host::share_link)
        .def("next_debug_request", &Host::next_debug_request)
        .def("send", &Host::send)
        .def("abandon", &Host::abandon);
    add_text_stream(module);
    module.attr("CELL_HASH_SEED") = kCellHashSeed;
    module.def("cell_hash", [](const std::string& code) { return hash_cell(code); });
}

}  // namespace cellkeep::kernels::python
