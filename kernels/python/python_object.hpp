// SPDX-License-Identifier: Apache-2.0
//
// References to Python objects, the interpreter's lock, and calls, over CPython's limited C API
// alone (PEP 384), so that the same bytes run in every CPython from 3.9 on: no macro that looks
// into an object, no function that is younger. Reference counts change by calls, because what a
// count looks like depends on the version.
#pragma once

#include "protocol/support/result.hpp"

#include <Python.h>

#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>

namespace cellkeep::kernels::python {

/// An owned reference. Null: what should have made it failed, and Python's exception is set.
/// Whoever has one that is not null has the lock.
class Object {
 public:
    Object() = default;
    /// Takes what the C API calls a new reference.
    explicit Object(PyObject* owned) : held_(owned) {}
    Object(Object&& other) noexcept : held_(std::exchange(other.held_, nullptr)) {}
    Object& operator=(Object&& other) noexcept {
        std::swap(held_, other.held_);
        return *this;
    }
    Object(const Object&) = delete;
    Object& operator=(const Object&) = delete;
    ~Object() { Py_DecRef(held_); }

    /// Of what somebody else owns.
    static Object of(PyObject* borrowed) {
        Py_IncRef(borrowed);
        return Object(borrowed);
    }
    static Object none() { return of(Py_None); }

    PyObject* get() const { return held_; }
    PyObject* release() { return std::exchange(held_, nullptr); }
    explicit operator bool() const { return held_ != nullptr; }

 private:
    PyObject* held_ = nullptr;
};

/// The interpreter's lock, from any thread.
class Locked {
 public:
    Locked() : state_(PyGILState_Ensure()) {}
    ~Locked() { PyGILState_Release(state_); }
    Locked(const Locked&) = delete;
    Locked& operator=(const Locked&) = delete;

 private:
    PyGILState_STATE state_;
};

/// Within a Locked: without the lock, while something waits.
class Unlocked {
 public:
    Unlocked() : state_(PyEval_SaveThread()) {}
    ~Unlocked() { PyEval_RestoreThread(state_); }
    Unlocked(const Unlocked&) = delete;
    Unlocked& operator=(const Unlocked&) = delete;

 private:
    PyThreadState* state_;
};

Object make_bytes(std::string_view bytes);
/// A str of UTF-8.
Object make_text(std::string_view utf8);
Object make_int(long value);
Object make_bool(bool value);
/// Null if one of them is.
Object make_tuple(std::initializer_list<const Object*> items);

Object import_module(const char* name);
Object attribute(PyObject* of, const char* name);
Object call(PyObject* function, std::initializer_list<const Object*> arguments);
Object call_method(
    PyObject* of, const char* name, std::initializer_list<const Object*> arguments = {});

/// Of a bytes object; it lives as long as that. TypeError: it is none.
Result<std::string_view> view_bytes(PyObject* bytes);

/// What a call of ours got as text or bytes; it lives as long as the arguments.
struct Words {
    const char* data = nullptr;
    Py_ssize_t size = 0;
    std::string_view view() const { return {data, static_cast<std::size_t>(size)}; }
};

/// A str and a bytes object for a Words, as "O&" of PyArg_ParseTuple() calls them. Not "s#" and
/// "y#": by the headers of CPython 3.13 on, these call what 3.9 takes for lengths that are ints,
/// and 3.10 to 3.12 refuse.
int take_text(PyObject* text, void* words);
int take_bytes(PyObject* bytes, void* words);

/// Forgets the exception that is set; "ValueError: what it says". Never fails.
std::string take_exception();
Error take_error(std::string_view doing);

/// The memory of one Python object, held while in scope (the buffer protocol).
class HeldBuffer {
 public:
    HeldBuffer() = default;
    ~HeldBuffer() {
        if (held_) {
            PyBuffer_Release(&view_);
        }
    }
    HeldBuffer(const HeldBuffer&) = delete;
    HeldBuffer& operator=(const HeldBuffer&) = delete;

    /// False: it has none, and the exception is set.
    bool hold(PyObject* object) {
        held_ = PyObject_GetBuffer(object, &view_, PyBUF_SIMPLE) == 0;
        return held_;
    }
    std::string_view bytes() const {
        return {static_cast<const char*>(view_.buf), static_cast<std::size_t>(view_.len)};
    }

 private:
    Py_buffer view_{};
    bool held_ = false;
};

}  // namespace cellkeep::kernels::python
