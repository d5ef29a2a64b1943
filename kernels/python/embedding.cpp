// SPDX-License-Identifier: Apache-2.0
#include "kernels/python/embedding.hpp"

#include "kernels/python/kernel_bindings.hpp"
#include "kernels/python/python_object.hpp"

#include <unistd.h>

#include <cstdlib>
#include <initializer_list>
#include <utility>

namespace cellkeep::kernels::python {

namespace {

/// Owns a PyConfig (PEP 587); remembers the first failure.
class Config {
 public:
    Config() {
        PyConfig_InitIsolatedConfig(&config_);
        // The handlers of an ordinary python: SIGPIPE ignored, SIGINT noted (cellkeep_kernel.loop
        // replaces what the note does).
        config_.install_signal_handlers = 1;
        config_.site_import = 0;     // done explicitly, below
        config_.write_bytecode = 0;  // no __pycache__ in the user's workspace
        config_.module_search_paths_set = 1;
    }
    ~Config() { PyConfig_Clear(&config_); }
    Config(const Config&) = delete;
    Config& operator=(const Config&) = delete;

    void set(wchar_t*& field, const std::string& value) {
        note(PyConfig_SetBytesString(&config_, &field, value.c_str()));
    }

    void append_search_path(const std::string& path) {
        wchar_t* wide = Py_DecodeLocale(path.c_str(), nullptr);
        if (wide == nullptr) {
            note(PyStatus_NoMemory());
            return;
        }
        note(PyWideStringList_Append(&config_.module_search_paths, wide));
        PyMem_RawFree(wide);
    }

    Status start() {
        if (PyStatus_Exception(status_) == 0) {
            status_ = Py_InitializeFromConfig(&config_);
        }
        if (PyStatus_Exception(status_) != 0) {
            const char* why = status_.err_msg == nullptr ? "unknown reason" : status_.err_msg;
            return Error(ErrorCode::kSystem, std::string("start CPython: ") + why);
        }
        return ok();
    }

    PyConfig& fields() { return config_; }

 private:
    void note(const PyStatus& status) {
        if (PyStatus_Exception(status_) == 0) {
            status_ = status;
        }
    }

    PyConfig config_{};
    PyStatus status_ = PyStatus_Ok();
};

/// What the site module does for an ordinary python: exit(), help() … and the environment's
/// packages.
Status import_site(const std::string& environment) {
    const Object site = import_module("site");
    const Object prefix = make_text(environment);
    const Object prefixes = make_tuple({&prefix});
    const Object no = make_bool(false);
    const Object none = Object::none();
    const bool done =
        site && prefixes && PyObject_SetAttrString(site.get(), "ENABLE_USER_SITE", no.get()) == 0 &&
        PyObject_SetAttrString(site.get(), "PREFIXES", prefixes.get()) == 0 &&
        call_method(site.get(), "setquit") && call_method(site.get(), "setcopyright") &&
        call_method(site.get(), "sethelper") && call_method(site.get(), "addsitepackages", {&none});
    return done ? Status(ok()) : take_error("import site");
}

}  // namespace

Result<EmbeddingPaths> find_paths() {
    EmbeddingPaths paths;
    for (auto [name, field] :
         {std::pair{"CELLKEEP_ENVIRONMENT", &paths.environment},
          std::pair{"CELLKEEP_PYTHONPATH", &paths.package_root}}) {
        const char* value = std::getenv(name);  // NOLINT(concurrency-mt-unsafe): one thread yet.
        if (value == nullptr || *value == '\0') {
            return Error(
                ErrorCode::kInvalidArgument,
                std::string("the environment variable ") + name + " is not set");
        }
        *field = value;
    }
    const std::string interpreter = paths.environment + "/bin/python";
    if (::access(interpreter.c_str(), X_OK) != 0) {
        return Error(
            ErrorCode::kInvalidArgument,
            "CELLKEEP_ENVIRONMENT: " + interpreter + " is not a program");
    }
    return paths;
}

Status start_python(const EmbeddingPaths& paths) {
    PyPreConfig before{};
    PyPreConfig_InitIsolatedConfig(&before);
    before.utf8_mode = 1;         // text is UTF-8, whatever LANG says
    before.configure_locale = 1;  // C code gets the session's LC_CTYPE
    const PyStatus status = Py_PreInitialize(&before);
    if (PyStatus_Exception(status) != 0) {
        return Error(ErrorCode::kSystem, "start CPython: pre-initialisation failed");
    }

    if (PyImport_AppendInittab("_cellkeep_host", make_host_module) != 0) {
        return Error(ErrorCode::kSystem, "start CPython: no memory for a module");
    }
    const std::string base = CELLKEEP_PYTHON_BASE;
    const std::string library = CELLKEEP_PYTHON_STDLIB;
    Config config;
    PyConfig& fields = config.fields();
    config.set(fields.program_name, paths.environment + "/bin/python");
    config.set(fields.executable, paths.environment + "/bin/python");
    config.set(fields.base_executable, CELLKEEP_PYTHON_EXECUTABLE);
    config.set(fields.prefix, paths.environment);
    config.set(fields.exec_prefix, paths.environment);
    config.set(fields.base_prefix, base);
    config.set(fields.base_exec_prefix, base);
    config.append_search_path(library);
    config.append_search_path(library + "/lib-dynload");
    config.append_search_path(paths.package_root);
    BOOST_OUTCOME_TRY(config.start());
    return import_site(paths.environment);
}

}  // namespace cellkeep::kernels::python
