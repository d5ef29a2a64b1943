// SPDX-License-Identifier: Apache-2.0
#include "kernels/python/text_stream.hpp"

#include "kernels/python/kernel_bindings.hpp"

#include <array>
#include <cstddef>
#include <cstring>
#include <string_view>

namespace cellkeep::kernels::python {

namespace py = pybind11;

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
    PyObject** const dictionary = _PyObject_GetDictPtr(self);
    return dictionary != nullptr && *dictionary != nullptr && name != nullptr &&
           PyDict_GetItemWithError(*dictionary, name) != nullptr;
}

PyObject* write_slowly(PyObject* self, PyObject* text) {
    // NOLINTNEXTLINE(cppcoreguidelines-avoid-non-const-global-variables): Python has no const.
    static PyObject* const name = PyUnicode_InternFromString("write_slowly");
    return name == nullptr ? nullptr : PyObject_CallMethodOneArg(self, name, text);
}

PyObject* schedule_flush(PyObject* self) {
    // NOLINTNEXTLINE(cppcoreguidelines-avoid-non-const-global-variables): Python has no const.
    static PyObject* const name = PyUnicode_InternFromString("schedule_flush");
    return name == nullptr ? nullptr : PyObject_CallMethodNoArgs(self, name);
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
            PyObject* const done = schedule_flush(self);
            if (done == nullptr) {
                return nullptr;
            }
            Py_DECREF(done);
        }
    } catch (const std::bad_alloc&) {
        return PyErr_NoMemory();
    }
    return PyLong_FromSsize_t(PyUnicode_GET_LENGTH(text));
}

PyObject* flush(PyObject* self, PyObject* /*none*/) {
    if (Host* const host = part_of(self).host; host != nullptr) {
        host->flush();
    }
    Py_RETURN_NONE;
}

PyObject* bind(PyObject* self, PyObject* arguments) {
    PyObject* host = nullptr;
    int to_stderr = 0;
    if (PyArg_ParseTuple(arguments, "Op:bind", &host, &to_stderr) == 0) {
        return nullptr;
    }
    try {
        part_of(self) = {py::handle(host).cast<Host*>(), to_stderr != 0};  // None is null
    } catch (const py::cast_error&) {
        PyErr_SetString(PyExc_TypeError, "bind: not a host");
        return nullptr;
    }
    Py_RETURN_NONE;
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

void add_text_stream(py::module_& module) {
    const py::object base = py::module_::import("_io").attr("_TextIOBase");
    constexpr Py_ssize_t kAlignment = alignof(Part);
    const Py_ssize_t size = reinterpret_cast<PyTypeObject*>(base.ptr())->tp_basicsize;
    base_size() = (size + kAlignment - 1) / kAlignment * kAlignment;
    PyType_Spec spec{
        .name = "_cellkeep_host.TextStream",
        .basicsize = static_cast<int>(base_size() + static_cast<Py_ssize_t>(sizeof(Part))),
        .itemsize = 0,
        .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE,
        .slots = slots.data()};
    const py::object bases = py::make_tuple(base);
    PyObject* const type = PyType_FromSpecWithBases(&spec, bases.ptr());
    if (type == nullptr) {
        throw py::error_already_set();
    }
    module.attr("TextStream") = py::reinterpret_steal<py::object>(type);
}

}  // namespace cellkeep::kernels::python
