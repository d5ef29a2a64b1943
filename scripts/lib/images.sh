# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
#
# The environment image that sessions run from. A server makes it when it starts, if it is missing.
# Made here, it is a stage of its own and takes no time of a test.

# make_image PRESET
make_image() {
    stage image "Making the environment image, if it is not there" "$build/$1/bin/cellkeep" image build
}
