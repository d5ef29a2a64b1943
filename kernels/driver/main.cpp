// SPDX-License-Identifier: Apache-2.0
//
// cellkeep-kernel-driver FOLDER [NAME=VALUE…]: the kernel of the language in FOLDER. The values are
// those of the placeholders in its kernel.json. The server starts it.
#include "kernels/common/kernel_main.hpp"
#include "kernels/driver/driver_interpreter.hpp"

#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

namespace {

using cellkeep::kernels::driver::Options;

/// From main() to make(): run_kernel takes a plain function.
Options& options() {
    static Options value;
    return value;
}

cellkeep::Result<std::unique_ptr<cellkeep::kernels::Interpreter>> make(
    const cellkeep::kernels::KernelParts& parts) {
    return cellkeep::kernels::driver::DriverInterpreter::create(parts, options());
}

}  // namespace

int main(int argc, char** argv) {
    constexpr std::string_view kProgram = "cellkeep-kernel-driver";
    if (argc < 2) {
        (void)std::fputs("usage: cellkeep-kernel-driver FOLDER [NAME=VALUE...]\n", stderr);
        return static_cast<int>(cellkeep::kernels::ExitCode::kUsage);
    }
    options().folder = argv[1];
    for (int index = 2; index < argc; ++index) {
        const std::string_view value(argv[index]);
        const std::size_t equals = value.find('=');
        if (equals == std::string_view::npos) {
            (void)std::fprintf(stderr, "cellkeep-kernel-driver: %s: no NAME=VALUE\n", argv[index]);
            return static_cast<int>(cellkeep::kernels::ExitCode::kUsage);
        }
        options().values.emplace(value.substr(0, equals), value.substr(equals + 1));
    }
    cellkeep::kernels::run_kernel(kProgram, make);
}
