# SPDX-License-Identifier: Apache-2.0
# Builds for aarch64 on another machine that has Debian 12's packages of both, for example g++-aarch64-linux-gnu,
# qemu-user and libseccomp-dev:arm64; tests are emulated: cmake --preset release --toolchain cmake/aarch64.cmake
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)
set(CMAKE_CROSSCOMPILING_EMULATOR qemu-aarch64)
set(ENV{PKG_CONFIG_LIBDIR} /usr/lib/aarch64-linux-gnu/pkgconfig:/usr/share/pkgconfig)
# The interpreter is this machine's, what is linked is not.
set(Python_LIBRARY /usr/lib/aarch64-linux-gnu/libpython3.11.so)
set(Python_INCLUDE_DIR /usr/include/python3.11)
