// SPDX-License-Identifier: Apache-2.0
#include "kernels/python/text_stream.hpp"

#include "kernels/python/kernel_bindings.hpp"

#include <array>
#include <cstddef>
#include <new>
#include <string_view>

namespace cellkeep::kernels::python {

namespace {

/// What an object has behind its base's part, whose size only the interpreter knows.
struct Part {
    Host* host;  // null: every write is write_slowly's
    bool to_stderr;
};

Py_ssize_t& base_size() {
    static Py_ssize_t size = 0;
    return size;
}

Part& part_of(PyObject* self) {
    // Objects are made with tp_basicsize zeroed bytes (tp_alloc), so the part is there and empty.
    return *reinterpret_cast<Part*>(reinterpret_cast<char*>(self) + base_size());
}

/// io's own mark of a closed file.
bool is_closed(PyObject* self) {
    // NOLINTNEXTLINE(cppcoreguidelines-avoid-non-const-global-variables): Python has no const.
    static PyObject* const name = PyUnicode_InternFromString("__IOBase_closed");
    const Object dictionary(PyObject_GenericGetDict(self, nullptr));
    return dictionary && name != nullptr &&
           PyDict_GetItemWithError(dictionary.get(), name) != nullptr;
}

PyObject* write_slowly(PyObject* self, PyObject* text) {
    // NOLINTNEXTLINE(cppcoreguidelines-avoid-non-const-global-variables): Python has no const.
    static PyObject* const name = PyUnicode_InternFromString("write_slowly");
    return name == nullptr ? nullptr : PyObject_CallMethodObjArgs(self, name, text, nullptr);
}

PyObject* schedule_flush(PyObject* self) {
    // NOLINTNEXTLINE(cppcoreguidelines-avoid-non-const-global-variables): Python has no const.
    static PyObject* const name = PyUnicode_InternFromString("schedule_flush");
    return name == nullptr ? nullptr : PyObject_CallMethodObjArgs(self, name, nullptr);
}

PyObject* write(PyObject* self, PyObject* text) {
    const Part& part = part_of(self);
    if (part.host == nullptr || PyUnicode_Check(text) == 0 || is_closed(self)) {
        return PyErr_Occurred() != nullptr ? nullptr : write_slowly(self, text);
    }
    Py_ssize_t size = 0;
    const char* const bytes = PyUnicode_AsUTF8AndSize(text, &size);
    if (bytes == nullptr) {
        PyErr_Clear();  // a lone surrogate: the error handler decides
        return write_slowly(self, text);
    }
    try {
        if (part.host->write_utf8(part.to_stderr, {bytes, static_cast<std::size_t>(size)})) {
            if (!Object(schedule_flush(self))) {
                return nullptr;
            }
        }
    } catch (const std::bad_alloc&) {
        return PyErr_NoMemory();
    }
    return PyLong_FromSsize_t(PyUnicode_GetLength(text));
}

PyObject* flush(PyObject* self, PyObject* /*none*/) {
    if (Host* const host = part_of(self).host; host != nullptr) {
        host->flush();
    }
    return Object::none().release();
}

PyObject* bind(PyObject* self, PyObject* arguments) {
    PyObject* host = nullptr;
    int to_stderr = 0;
    if (PyArg_ParseTuple(arguments, "Op:bind", &host, &to_stderr) == 0) {
        return nullptr;
    }
    Host* const known = host_in(host);
    if (known == nullptr && host != Py_None) {
        PyErr_SetString(PyExc_TypeError, "bind: not a host");
        return nullptr;
    }
    part_of(self) = {known, to_stderr != 0};
    return Object::none().release();
}

// Not const, because Python takes both by plain pointers.
// NOLINTBEGIN(cppcoreguidelines-avoid-non-const-global-variables)
std::array<PyMethodDef, 4> methods{{
    {"write", write, METH_O, "Write text; the number of its characters."},
    {"flush", flush, METH_NOARGS, "Send what is held."},
    {"bind", bind, METH_VARARGS, "bind(host, to_stderr); a host of None ends it."},
    {nullptr, nullptr, 0, nullptr},
}};

std::array<PyType_Slot, 2> slots{{
    {Py_tp_methods, methods.data()},
    {0, nullptr},
}};
// NOLINTEND(cppcoreguidelines-avoid-non-const-global-variables)

}  // namespace

Object make_text_stream() {
    const Object base = attribute(import_module("_io").get(), "_TextIOBase");
    const Object told = attribute(base.get(), "__basicsize__");
    const Py_ssize_t size = told ? PyLong_AsSsize_t(told.get()) : -1;
    if (size <= 0) {
        return {};
    }
    constexpr Py_ssize_t kAlignment = alignof(Part);
    base_size() = (size + kAlignment - 1) / kAlignment * kAlignment;
    PyType_Spec spec{
        .name = "_cellkeep_host.TextStream",
        .basicsize = static_cast<int>(base_size() + static_cast<Py_ssize_t>(sizeof(Part))),
        .itemsize = 0,
        .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE,
        .slots = slots.data()};
    const Object bases = make_tuple({&base});
    return Object(bases ? PyType_FromSpecWithBases(&spec, bases.get()) : nullptr);
}

}  // namespace cellkeep::kernels::python
