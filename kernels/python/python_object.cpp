// SPDX-License-Identifier: Apache-2.0
#include "kernels/python/python_object.hpp"

namespace cellkeep::kernels::python {

namespace {

/// str(object) as UTF-8, or other; the exception of a failure is forgotten.
std::string text_of(PyObject* object, const char* other) {
    const Object text(object == nullptr ? nullptr : PyObject_Str(object));
    Py_ssize_t size = 0;
    const char* const utf8 = text ? PyUnicode_AsUTF8AndSize(text.get(), &size) : nullptr;
    if (utf8 == nullptr) {
        PyErr_Clear();
        return other;
    }
    return {utf8, static_cast<std::size_t>(size)};
}

}  // namespace

Object make_bytes(std::string_view bytes) {
    return Object(PyBytes_FromStringAndSize(bytes.data(), static_cast<Py_ssize_t>(bytes.size())));
}

Object make_text(std::string_view utf8) {
    return Object(PyUnicode_FromStringAndSize(utf8.data(), static_cast<Py_ssize_t>(utf8.size())));
}

Object make_int(long value) {
    return Object(PyLong_FromLong(value));
}

Object make_bool(bool value) {
    return Object(PyBool_FromLong(value ? 1 : 0));
}

Object make_tuple(std::initializer_list<const Object*> items) {
    Object tuple(PyTuple_New(static_cast<Py_ssize_t>(items.size())));
    Py_ssize_t at = 0;
    for (const Object* item : items) {
        if (!tuple || item->get() == nullptr) {
            return {};
        }
        Py_IncRef(item->get());
        (void)PyTuple_SetItem(tuple.get(), at++, item->get());  // Ignored: it is there, and new.
    }
    return tuple;
}

Object import_module(const char* name) {
    return Object(PyImport_ImportModule(name));
}

Object attribute(PyObject* of, const char* name) {
    return Object(of == nullptr ? nullptr : PyObject_GetAttrString(of, name));
}

Object call(PyObject* function, std::initializer_list<const Object*> arguments) {
    if (function == nullptr) {
        return {};
    }
    const Object tuple = make_tuple(arguments);
    return Object(tuple ? PyObject_CallObject(function, tuple.get()) : nullptr);
}

Object call_method(PyObject* of, const char* name, std::initializer_list<const Object*> arguments) {
    const Object method = attribute(of, name);
    return call(method.get(), arguments);
}

Result<std::string_view> view_bytes(PyObject* bytes) {
    char* data = nullptr;
    Py_ssize_t size = 0;
    if (bytes == nullptr || PyBytes_AsStringAndSize(bytes, &data, &size) != 0) {
        return take_error("bytes");
    }
    return std::string_view(data, static_cast<std::size_t>(size));
}

int take_text(PyObject* text, void* words) {
    auto& taken = *static_cast<Words*>(words);
    taken.data = PyUnicode_AsUTF8AndSize(text, &taken.size);
    return taken.data == nullptr ? 0 : 1;
}

int take_bytes(PyObject* bytes, void* words) {
    auto& taken = *static_cast<Words*>(words);
    char* data = nullptr;
    if (PyBytes_AsStringAndSize(bytes, &data, &taken.size) != 0) {
        return 0;
    }
    taken.data = data;
    return 1;
}

std::string take_exception() {
    PyObject* type = nullptr;
    PyObject* value = nullptr;
    PyObject* traceback = nullptr;
    PyErr_Fetch(&type, &value, &traceback);
    PyErr_NormalizeException(&type, &value, &traceback);
    const Object held_type(type);
    const Object held_value(value);
    const Object held_traceback(traceback);
    if (type == nullptr) {
        return "an unknown exception";
    }
    const Object name = attribute(type, "__name__");
    const std::string text = text_of(value, "");
    return text_of(name.get(), "an exception") + (text.empty() ? "" : ": " + text);
}

Error take_error(std::string_view doing) {
    return {ErrorCode::kSystem, std::string(doing) + ": " + take_exception()};
}

}  // namespace cellkeep::kernels::python
