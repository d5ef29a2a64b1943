// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/session/kernel_catalog.hpp"

#include "protocol/support/syscall.hpp"

#include <filesystem>
#include <utility>

namespace cellkeep::session {

namespace fs = std::filesystem;

namespace {

constexpr std::size_t kStampBytesMax = 4096;

constexpr const char* kInsideBinary = "/opt/cellkeep/bin/cellkeep-kernel-python";
constexpr const char* kInsidePackage = "/opt/cellkeep/python";
constexpr const char* kInsideEnvironment = "/opt/cellkeep/environment";

Status require(const std::string& path, const std::string& what, const std::string& hint) {
    std::error_code error;
    if (fs::exists(path, error)) {
        return ok();
    }
    return Error(ErrorCode::kUnavailable, what + " is missing: " + path, hint);
}

/// What of the host's system every interpreter needs: programs and libraries, time zones, fonts and
/// the certificates' public halves. No /etc of the host, no /home, no /var, no /sys.
std::vector<sandbox::ReadOnlyPath> system_paths() {
    std::vector<sandbox::ReadOnlyPath> paths = {
        {"/usr/bin", "/usr/bin"},
        {"/usr/lib", "/usr/lib"},
    };
    const auto add_optional = [&paths](const char* path, bool executable) {
        paths.push_back(
            {.source = path, .target = path, .executable = executable, .optional = true});
    };
    add_optional("/usr/lib64", true);
    for (const char* data :
         {"/usr/share/zoneinfo",
          "/usr/share/fonts",
          "/usr/share/fontconfig",
          "/usr/share/ca-certificates",
          "/usr/share/mime",
          "/usr/share/locale",
          "/etc/ssl/certs",
          "/etc/fonts",
          "/etc/alternatives",
          "/etc/ld.so.cache",
          "/etc/localtime"}) {
        add_optional(data, false);
    }
    return paths;
}

/// The same, from private copies: no inode of the host's. What is in them is image_recipe.cpp's.
void add_image_paths(const image::Prepared& images, KernelSpec& spec) {
    const auto add = [&spec](const image::ImageInUse& image, const std::string& path, bool runs) {
        spec.read_only.push_back(
            {.source = image.root + path, .target = path, .executable = runs, .optional = true});
    };
    add(images.environment, "/usr", true);
    for (const char* data :
         {"/etc/ssl", "/etc/fonts", "/etc/alternatives", "/etc/ld.so.cache", "/etc/localtime"}) {
        add(images.environment, data, false);
    }
    add(images.environment, kInsideEnvironment, true);
    add(images.programs, kInsideBinary, true);
    add(images.programs, kInsidePackage, false);
    spec.images = images.images();
    spec.leases = {images.environment.lease, images.programs.lease};
    spec.environment.digest = images.environment.record.digest;
}

/// "sha256:…" of the lock that the set-up made the environment from and left its hash in;
/// "unlocked" for an environment of the operator's own making.
std::string digest_of(const std::string& environment) {
    const auto stamp = read_file(environment + "/.made-from", kStampBytesMax);
    if (stamp.has_error()) {
        return "unlocked";
    }
    const std::string hex = stamp.value().substr(0, stamp.value().find('\n'));
    const bool is_hash =
        hex.size() == 64 && hex.find_first_not_of("0123456789abcdef") == std::string::npos;
    return is_hash ? "sha256:" + hex : "unlocked";
}

std::string kernel_program(const Installation& installation) {
    return installation.binary_dir + "/cellkeep-kernel-python";
}

void add_host_paths(const Installation& installation, KernelSpec& spec) {
    spec.read_only = system_paths();
    spec.read_only.push_back({.source = kernel_program(installation), .target = kInsideBinary});
    spec.read_only.push_back(
        {.source = installation.python_package_dir, .target = kInsidePackage, .executable = false});
    spec.read_only.push_back(
        {.source = installation.python_environment, .target = kInsideEnvironment});
    spec.environment.digest = digest_of(installation.python_environment);
}

/// Whether the virtual environment has a package of that name.
bool has_package(const std::string& environment, const char* name) {
    std::error_code error;
    const fs::path library = fs::path(environment) / "lib";
    for (fs::directory_iterator entry(library, error), end; !error && entry != end;
         entry.increment(error)) {
        if (fs::exists(entry->path() / "site-packages" / name, error)) {
            return true;
        }
    }
    return false;
}

Result<KernelSpec> make_python(const Installation& installation, const image::Prepared* images) {
    const std::string kernel = kernel_program(installation);
    BOOST_OUTCOME_TRY(
        require(kernel, "the Python kernel", "Build it: cmake --build --preset release"));
    BOOST_OUTCOME_TRY(require(
        installation.python_package_dir + "/cellkeep_kernel",
        "the Python kernel's package",
        "Reinstall."));
    BOOST_OUTCOME_TRY(require(
        installation.python_environment + "/pyvenv.cfg",
        "the Python environment",
        "./scripts/run makes it from kernels/python/environment/requirements.lock."));

    KernelSpec spec;
    spec.language = "python";
    spec.display_name = "Python 3 (Cellkeep)";
    spec.argv = {kInsideBinary};
    spec.forkable = true;
    spec.env = {
        "HOME=/workspace",
        "USER=cellkeep",
        "LOGNAME=cellkeep",
        "LANG=C.UTF-8",
        "PATH=" + std::string(kInsideEnvironment) + "/bin:/usr/bin:/bin",
        "TMPDIR=/tmp",
        "CELLKEEP_ENVIRONMENT=" + std::string(kInsideEnvironment),
        "CELLKEEP_PYTHONPATH=" + std::string(kInsidePackage)};
    spec.environment.name = "default";
    if (images != nullptr) {
        add_image_paths(*images, spec);
    } else {
        add_host_paths(installation, spec);
    }
    spec.debugger = has_package(installation.python_environment, "debugpy");
    return spec;
}

}  // namespace

Result<Installation> find_installation() {
    std::error_code error;
    const fs::path program = fs::read_symlink("/proc/self/exe", error);
    if (error) {
        return Error(ErrorCode::kSystem, "readlink(/proc/self/exe): " + error.message());
    }
    Installation found;
    const fs::path bin = program.parent_path();
    found.binary_dir = bin.string();
    // Installed: PREFIX/bin and PREFIX/lib/cellkeep. Built: build/<preset>/bin, and the sources and
    // environments two and three levels up.
    const fs::path installed = bin.parent_path() / "lib" / "cellkeep";
    if (fs::exists(installed, error)) {
        found.python_package_dir = (installed / "python").string();
        found.python_environment = (installed / "environments" / "python").string();
        return found;
    }
    const fs::path build = bin.parent_path().parent_path();
    found.python_package_dir = (build.parent_path() / "kernels" / "python").string();
    found.python_environment = (build / "environments" / "python").string();
    return found;
}

image::Sources image_sources(const Installation& installation) {
    image::Sources sources;
    sources.kernel_program = kernel_program(installation);
    sources.python_package_dir = installation.python_package_dir;
    sources.python_environment = installation.python_environment;
    return sources;
}

Result<KernelCatalog> KernelCatalog::create(
    const Installation& installation, const image::Prepared* images) {
    KernelCatalog catalog;
    BOOST_OUTCOME_TRY(auto python, make_python(installation, images));
    catalog.add(std::move(python));
    return catalog;
}

const KernelSpec* KernelCatalog::find(const std::string& language) const {
    const auto found = specs_.find(language);
    return found == specs_.end() ? nullptr : &found->second;
}

std::vector<std::string> KernelCatalog::languages() const {
    std::vector<std::string> names;
    for (const auto& [name, spec] : specs_) {
        names.push_back(name);
    }
    return names;
}

void KernelCatalog::add(KernelSpec spec) {
    std::string name = spec.language;
    specs_.insert_or_assign(std::move(name), std::move(spec));
}

}  // namespace cellkeep::session
