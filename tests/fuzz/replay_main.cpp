// SPDX-License-Identifier: Apache-2.0
//
// Runs a fuzz target once on every file of the given directories, without libFuzzer.
#include "protocol/support/syscall.hpp"
#include "tests/fuzz/fuzz_target.hpp"

#include <cstdio>
#include <filesystem>

int main(int argc, char** argv) {
    static constexpr std::size_t kSeedBytesMax = 1ULL << 20U;
    std::size_t count = 0;
    for (int i = 1; i < argc; ++i) {
        for (const auto& entry : std::filesystem::directory_iterator(argv[i])) {
            const auto bytes = cellkeep::read_file(entry.path().string(), kSeedBytesMax);
            if (bytes.has_error()) {
                (void)std::fprintf(stderr, "%s\n", bytes.error().message().c_str());
                return 1;
            }
            // Printed first, so that a crash names its input.
            (void)std::printf("%s\n", entry.path().c_str());
            (void)std::fflush(stdout);
            const auto* data = reinterpret_cast<const std::uint8_t*>(bytes.value().data());
            (void)LLVMFuzzerTestOneInput(data, bytes.value().size());
            ++count;
        }
    }
    (void)std::printf("%zu inputs\n", count);
    return count > 0 ? 0 : 1;  // an empty corpus proves nothing
}
