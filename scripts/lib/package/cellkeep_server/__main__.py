# SPDX-License-Identifier: Apache-2.0
from cellkeep_server.launcher import main

main()
