# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
#
# The environment image that sessions run from. A server makes it when it starts, if need be; made
# here, it is a stage of its own and not part of some test's patience.

# make_image PRESET
make_image() {
    stage image "Making the environment image, if it is not there" "$build/$1/bin/cellkeep" image build
}
