# SPDX-License-Identifier: Apache-2.0
"""Connection files are the server's; nothing inside a session can reach its sockets."""


def _refuse(*_arguments, **_keys):
    raise RuntimeError("a session has no connection file inside; `cellkeep connect` shows it outside")


get_connection_file = get_connection_info = connect_qtconsole = _refuse
