// SPDX-License-Identifier: Apache-2.0
#include "kernels/python/kernel_bindings.hpp"

#include "kernels/python/cell_hash.hpp"
#include "kernels/python/text_stream.hpp"

#include <array>
#include <memory>
#include <new>
#include <string>
#include <vector>

namespace cellkeep::kernels::python {

namespace {

/// What Python has of a host.
struct HostObject {
    PyObject_HEAD Host* host;
};

/// The type _cellkeep_host.Host; set with the module, which is there for good.
PyObject*& host_type() {
    // NOLINTNEXTLINE(cppcoreguidelines-avoid-non-const-global-variables): Python has no const.
    static PyObject* type = nullptr;
    return type;
}

Host& host_of(PyObject* self) {
    // Never null: only expose() makes one.
    return *reinterpret_cast<HostObject*>(self)->host;
}

PyObject* none() {
    return Object::none().release();
}

PyObject* raise(PyObject* type, const Error& error) {
    PyErr_SetString(type, error.message().c_str());
    return nullptr;
}

PyObject* none_or(PyObject* type, const Status& status) {
    return status.has_error() ? raise(type, status.error()) : none();
}

/// Of what can fail at the wire's limits, or because the link has closed.
PyObject* none_or_refusal(const Status& status) {
    const bool is_limit = status.has_error() && status.error().code() == ErrorCode::kLimitExceeded;
    return none_or(is_limit ? PyExc_ValueError : PyExc_EOFError, status);
}

/// Runs a method's body; what C++ throws becomes Python's exception.
template <typename Body>
PyObject* guarded(const Body& body) {
    try {
        return body();
    } catch (const std::bad_alloc&) {
        return PyErr_NoMemory();
    } catch (const std::exception& error) {
        PyErr_SetString(PyExc_RuntimeError, error.what());
        return nullptr;
    }
}

PyObject* link_fd(PyObject* self, PyObject* /*none*/) {
    return make_int(host_of(self).link_fd()).release();
}

PyObject* has_held(PyObject* self, PyObject* /*none*/) {
    return make_bool(host_of(self).has_held()).release();
}

PyObject* hold_reserve(PyObject* self, PyObject* /*none*/) {
    host_of(self).reserve().hold();
    return none();
}

PyObject* release_reserve(PyObject* self, PyObject* /*none*/) {
    host_of(self).reserve().release();
    return none();
}

PyObject* write_text(PyObject* self, PyObject* arguments) {
    int to_stderr = 0;
    PyObject* text = nullptr;
    Py_ssize_t size = 0;
    if (PyArg_ParseTuple(arguments, "pU:write", &to_stderr, &text) == 0) {
        return nullptr;
    }
    // UnicodeEncodeError for a lone surrogate.
    const char* const utf8 = PyUnicode_AsUTF8AndSize(text, &size);
    return utf8 == nullptr ? nullptr : guarded([&] {
        return make_bool(
                   host_of(self).write_utf8(to_stderr != 0, {utf8, static_cast<std::size_t>(size)}))
            .release();
    });
}

PyObject* flush_host(PyObject* self, PyObject* /*none*/) {
    return guarded([&] {
        host_of(self).flush();
        return none();
    });
}

PyObject* flush_c_streams(PyObject* /*self*/, PyObject* /*none*/) {
    Host::flush_c_streams();
    return none();
}

/// The memory of each of a sequence's objects. False with an exception.
bool hold_all(
    PyObject* sequence, std::vector<std::unique_ptr<HeldBuffer>>& held, Payload& payload) {
    const Py_ssize_t count = PySequence_Size(sequence);
    for (Py_ssize_t at = 0; at < count; ++at) {
        const Object item(PySequence_GetItem(sequence, at));
        held.push_back(std::make_unique<HeldBuffer>());
        if (!item || !held.back()->hold(item.get())) {
            return false;
        }
        payload.buffers.push_back(held.back()->bytes());
    }
    return count >= 0;
}

/// publish(type, content, metadata, buffers, more): content and metadata are JSON; buffers a
/// sequence of objects with contiguous memory.
PyObject* publish(PyObject* self, PyObject* arguments) {
    Words type;
    Words content;
    Words metadata;
    PyObject* buffers = nullptr;
    int more = 0;
    if (PyArg_ParseTuple(
            arguments,
            "O&O&O&Op:publish",
            take_text,
            &type,
            take_bytes,
            &content,
            take_bytes,
            &metadata,
            &buffers,
            &more) == 0) {
        return nullptr;
    }
    return guarded([&]() -> PyObject* {
        std::vector<std::unique_ptr<HeldBuffer>> held;
        Payload payload{
            .type = type.view(),
            .content = content.view(),
            .metadata = metadata.view(),
            .buffers = {}};
        if (!hold_all(buffers, held, payload)) {
            return nullptr;
        }
        return none_or(PyExc_ValueError, host_of(self).publish(payload, more != 0));
    });
}

PyObject* parent_header(PyObject* self, PyObject* /*none*/) {
    return guarded([&] { return make_bytes(host_of(self).parent_header()).release(); });
}

PyObject* request_input(PyObject* self, PyObject* arguments) {
    Words prompt;
    int password = 0;
    if (PyArg_ParseTuple(arguments, "O&p:request_input", take_text, &prompt, &password) == 0) {
        return nullptr;
    }
    return guarded([&] {
        return none_or(PyExc_EOFError, host_of(self).request_input(prompt.view(), password != 0));
    });
}

/// None if the frame was not the answer, else (value, is_end_of_input). EOFError: the link closed.
PyObject* read_input(PyObject* self, PyObject* /*none*/) {
    return guarded([&] {
        const auto reply = host_of(self).read_input();
        if (reply.has_error()) {
            return raise(PyExc_EOFError, reply.error());
        }
        if (!reply.value()) {
            return none();
        }
        const Object value = make_text(reply.value()->value);
        const Object eof = make_bool(reply.value()->eof);
        return make_tuple({&value, &eof}).release();
    });
}

PyObject* ask(PyObject* self, PyObject* arguments) {
    Words type;
    Words content;
    if (PyArg_ParseTuple(arguments, "O&O&:ask", take_text, &type, take_bytes, &content) == 0) {
        return nullptr;
    }
    return guarded([&] { return none_or_refusal(host_of(self).ask(type.view(), content.view())); });
}

/// As read_input(): the JSON of the answer's content.
PyObject* read_answer(PyObject* self, PyObject* arguments) {
    Words type;
    if (PyArg_ParseTuple(arguments, "O&:read_answer", take_text, &type) == 0) {
        return nullptr;
    }
    return guarded([&] {
        const auto answer = host_of(self).read_answer(type.view());
        if (answer.has_error()) {
            return raise(PyExc_EOFError, answer.error());
        }
        return answer.value() ? make_bytes(answer.value()->content_json()).release() : none();
    });
}

PyObject* share_link(PyObject* self, PyObject* /*none*/) {
    return guarded([&] { return none_or(PyExc_OSError, host_of(self).share_link()); });
}

/// (header, content) as JSON; None: the link has closed.
PyObject* next_debug_request(PyObject* self, PyObject* /*none*/) {
    return guarded([&] {
        const auto request = host_of(self).next_debug_request();
        if (!request) {
            return none();
        }
        const Object header = make_bytes(request->header_json());
        const Object content = make_bytes(request->content_json());
        return make_tuple({&header, &content}).release();
    });
}

/// send(channel, type, header, content) on "control" or "iopub".
PyObject* send(PyObject* self, PyObject* arguments) {
    Words channel;
    Words type;
    Words header;
    Words content;
    if (PyArg_ParseTuple(
            arguments,
            "O&O&O&O&:send",
            take_text,
            &channel,
            take_text,
            &type,
            take_bytes,
            &header,
            take_bytes,
            &content) == 0) {
        return nullptr;
    }
    return guarded([&] {
        const auto where =
            channel.view() == "control" ? protocol::Channel::kControl : protocol::Channel::kIopub;
        const Payload payload{.type = type.view(), .content = content.view()};
        return none_or(PyExc_ValueError, host_of(self).send(where, header.view(), payload));
    });
}

PyObject* abandon(PyObject* self, PyObject* /*none*/) {
    host_of(self).abandon();
    return none();
}

PyObject* refuse_new(PyTypeObject* /*type*/, PyObject* /*arguments*/, PyObject* /*words*/) {
    PyErr_SetString(PyExc_TypeError, "only the kernel makes a Host");
    return nullptr;
}

PyObject* cell_hash(PyObject* /*module*/, PyObject* arguments) {
    Words code;
    if (PyArg_ParseTuple(arguments, "O&:cell_hash", take_bytes, &code) == 0) {
        return nullptr;
    }
    return PyLong_FromUnsignedLong(hash_cell(code.view()));
}

// Not const, because Python takes all of them by plain pointers.
// NOLINTBEGIN(cppcoreguidelines-avoid-non-const-global-variables)
std::array<PyMethodDef, 18> host_methods{{
    {"link_fd", link_fd, METH_NOARGS, nullptr},
    {"has_held", has_held, METH_NOARGS, nullptr},
    {"hold_reserve", hold_reserve, METH_NOARGS, nullptr},
    {"release_reserve", release_reserve, METH_NOARGS, nullptr},
    {"write", write_text, METH_VARARGS, nullptr},
    {"flush", flush_host, METH_NOARGS, nullptr},
    {"flush_c_streams", flush_c_streams, METH_NOARGS, nullptr},
    {"publish", publish, METH_VARARGS, nullptr},
    {"parent_header", parent_header, METH_NOARGS, nullptr},
    {"request_input", request_input, METH_VARARGS, nullptr},
    {"read_input", read_input, METH_NOARGS, nullptr},
    {"ask", ask, METH_VARARGS, nullptr},
    {"read_answer", read_answer, METH_VARARGS, nullptr},
    {"share_link", share_link, METH_NOARGS, nullptr},
    {"next_debug_request", next_debug_request, METH_NOARGS, nullptr},
    {"send", send, METH_VARARGS, nullptr},
    {"abandon", abandon, METH_NOARGS, nullptr},
    {nullptr, nullptr, 0, nullptr},
}};

std::array<PyType_Slot, 3> host_slots{{
    {Py_tp_methods, host_methods.data()},
    {Py_tp_new, reinterpret_cast<void*>(refuse_new)},
    {0, nullptr},
}};

PyType_Spec host_spec{
    .name = "_cellkeep_host.Host",
    .basicsize = sizeof(HostObject),
    .itemsize = 0,
    .flags = Py_TPFLAGS_DEFAULT,
    .slots = host_slots.data()};

std::array<PyMethodDef, 2> module_functions{{
    {"cell_hash", cell_hash, METH_VARARGS, nullptr},
    {nullptr, nullptr, 0, nullptr},
}};

PyModuleDef module_definition{
    .m_base = PyModuleDef_HEAD_INIT,
    .m_name = "_cellkeep_host",
    .m_doc = nullptr,
    .m_size = -1,
    .m_methods = module_functions.data(),
    .m_slots = nullptr,
    .m_traverse = nullptr,
    .m_clear = nullptr,
    .m_free = nullptr};
// NOLINTEND(cppcoreguidelines-avoid-non-const-global-variables)

bool set(const Object& module, const char* name, const Object& value) {
    return value && PyObject_SetAttrString(module.get(), name, value.get()) == 0;
}

}  // namespace

PyObject* make_host_module() {
    Object module(PyModule_Create(&module_definition));
    Object type(PyType_FromSpec(&host_spec));
    if (!module || !set(module, "Host", type) || !set(module, "TextStream", make_text_stream()) ||
        !set(module, "CELL_HASH_SEED", Object(PyLong_FromUnsignedLong(kCellHashSeed)))) {
        return nullptr;
    }
    host_type() = type.release();
    return module.release();
}

Object expose(Host& host) {
    if (host_type() == nullptr) {
        PyErr_SetString(PyExc_RuntimeError, "the module _cellkeep_host was not imported");
        return {};
    }
    Object object(PyType_GenericAlloc(reinterpret_cast<PyTypeObject*>(host_type()), 0));
    if (object) {
        reinterpret_cast<HostObject*>(object.get())->host = &host;
    }
    return object;
}

Host* host_in(PyObject* object) {
    if (host_type() == nullptr || PyObject_IsInstance(object, host_type()) != 1) {
        PyErr_Clear();
        return nullptr;
    }
    return &host_of(object);
}

}  // namespace cellkeep::kernels::python
