# SPDX-License-Identifier: Apache-2.0
"""The kernel as a module for every CPython from 3.9 on: which names of CPython it needs, and its start."""

import importlib.util
import marshal
import os
import subprocess
import sys
import tempfile
import unittest

from cellkeep_kernel import hosted

MODULE = os.environ["CELLKEEP_TEST_HOST_MODULE"]
# Each is in the shared library of CPython 3.9. A new one belongs here only if it is there, too.
NAMES = """
PyArg_ParseTuple PyBool_FromLong PyBuffer_Release PyBytes_AsStringAndSize PyBytes_FromStringAndSize
PyDict_GetItemWithError PyDict_New PyDict_SetItem PyErr_Clear PyErr_Fetch PyErr_NoMemory PyErr_NormalizeException
PyErr_Occurred PyErr_SetString PyEval_RestoreThread PyEval_SaveThread PyExc_EOFError PyExc_OSError PyExc_RuntimeError
PyExc_TypeError PyExc_ValueError PyGILState_Ensure PyGILState_Release PyImport_ImportModule PyList_Append
PyList_GetItem PyList_New PyList_Size PyLong_AsLong PyLong_AsSsize_t PyLong_FromLong PyLong_FromSsize_t
PyLong_FromUnsignedLong PyModule_AddFunctions PyModule_Create2 PyOS_AfterFork_Child PyOS_AfterFork_Parent
PyOS_BeforeFork PyObject_CallMethodObjArgs PyObject_CallObject PyObject_GenericGetDict PyObject_GetAttrString
PyObject_GetBuffer PyObject_IsInstance PyObject_IsTrue PyObject_SetAttrString PyObject_Str PySequence_GetItem
PySequence_Size PyTuple_New PyTuple_SetItem PyType_FromSpec PyType_FromSpecWithBases PyType_GenericAlloc
PyType_GetFlags PyUnicode_AsUTF8AndSize PyUnicode_FromStringAndSize PyUnicode_GetLength PyUnicode_InternFromString
Py_DecRef Py_IncRef _Py_NoneStruct
""".split()


def names(*which):
    listing = subprocess.run(["nm", "-D", *which, MODULE], capture_output=True, text=True, check=True).stdout
    return {line.split()[-1] for line in listing.splitlines()}


class HostModule(unittest.TestCase):
    def test_it_needs_no_name_that_is_younger_than_the_oldest_python(self):
        needed = {name for name in names("--undefined-only") if name.startswith(("Py", "_Py"))}
        self.assertEqual(needed - set(NAMES), set())
        self.assertIn("PyOS_AfterFork_Child", needed)

    def test_it_shows_one_name(self):
        self.assertEqual(names("--defined-only"), {"PyInit__cellkeep_host"})

    def test_its_functions_take_bytes_with_their_length(self):
        hash_bytes = hosted.load(MODULE).cell_hash
        self.assertEqual(hash_bytes(b"a\0b"), hash_bytes(b"a\0b"))
        self.assertNotEqual(hash_bytes(b"a\0b"), hash_bytes(b"a"))
        for others in (("a",), (1,), (), (b"a", b"b")):
            with self.assertRaises(TypeError):
                hash_bytes(*others)

    def run_start(self, *arguments, **variables):
        flags = ["-I", "-B", "-X", "utf8"]
        with tempfile.TemporaryDirectory() as folder:
            return subprocess.run(
                [sys.executable, *flags, hosted.__file__, *arguments],
                env={"PATH": "/usr/bin:/bin", **variables},
                cwd=folder,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                check=False,
            )

    def test_it_is_loaded_and_wants_a_link(self):
        for argument in ((), ("--zygote",), ("--bare-zygote",)):
            said = self.run_start(MODULE, *argument, CELLKEEP_PYTHONPATH="/x")
            self.assertEqual(said.returncode, 64, said)
            self.assertIn("cellkeep-kernel-python: descriptor 3 is not a", said.stderr)

    def test_a_start_without_its_parts_fails(self):
        for arguments, variables, reason in (
            ((), {"CELLKEEP_PYTHONPATH": "/x"}, "ValueError"),
            ((MODULE,), {}, "CELLKEEP_PYTHONPATH"),
            (("/nonexistent",), {"CELLKEEP_PYTHONPATH": "/x"}, "ImportError"),
            (("/etc/passwd",), {"CELLKEEP_PYTHONPATH": "/x"}, "ImportError"),
            ((MODULE, "--zygote", "more"), {"CELLKEEP_PYTHONPATH": "/x"}, "TypeError"),
        ):
            said = self.run_start(*arguments, **variables)
            self.assertEqual(said.returncode, 1, said)
            self.assertIn(reason, said.stderr)


class Packages(unittest.TestCase):
    def test_the_kernels_come_before_the_environments(self):
        path = ["/lib/python3.12", "/lib/python3.12/lib-dynload", "/env/site-packages", "/more/site-packages"]
        hosted.find_packages(path, "/kernel")
        self.assertEqual(path[2:4], ["/kernel", "/env/site-packages"])
        path = ["/lib/python3.12"]
        hosted.find_packages(path, "/kernel")
        self.assertEqual(path, ["/lib/python3.12", "/kernel"])


class Bytecode(unittest.TestCase):
    """The sources say another thing than their bytecode, so that it shows which of them ran."""

    START = (
        "import sys; from cellkeep_kernel import hosted; "
        "hosted.use_bytecode(sys.argv[1], sys.argv[2]); sys.path.insert(0, sys.argv[1]); "
        "import own, own.part, other; print(own.SAYS, own.part.SAYS, other.SAYS)"
    )

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root, self.kept, self.other = (f"{folder.name}/{name}" for name in ("root", "kept", "other"))
        self.write("root/own/__init__.py", "SAYS = 'source'")
        self.write("root/own/part.py", "SAYS = 'source'")
        self.write("other/other.py", "SAYS = 'source'")

    def write(self, name, text):
        path = os.path.join(os.path.dirname(self.root), name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)

    def keep(self, path, text, of_source):
        """Bytecode of this text, which says that it is of that source."""
        with open(path, "rb") as file:
            source = file.read() if of_source is None else of_source
        code = marshal.dumps(compile(text, path, "exec"))
        data = importlib.util.MAGIC_NUMBER + (3).to_bytes(4, "little") + importlib.util.source_hash(source) + code
        name = f"{os.path.basename(path)[:-3]}.{sys.implementation.cache_tag}.pyc"
        folder = self.kept + os.path.dirname(path)
        os.makedirs(folder, exist_ok=True)
        with open(f"{folder}/{name}", "wb") as file:
            file.write(data)

    def says(self):
        kernel = os.path.dirname(os.path.dirname(hosted.__file__))
        ran = subprocess.run(
            [sys.executable, "-B", "-c", self.START, self.root, self.kept],
            env={"PATH": "/usr/bin:/bin", "PYTHONPATH": f"{kernel}:{self.other}"},
            capture_output=True,
            text=True,
            check=True,
        )
        return ran.stdout.split()

    def test_it_is_taken_for_the_kernels_own_modules_only(self):
        self.assertEqual(self.says(), ["source", "source", "source"])
        self.keep(f"{self.root}/own/__init__.py", "SAYS = 'kept'", None)
        self.keep(f"{self.root}/own/part.py", "SAYS = 'kept'", None)
        self.keep(f"{self.other}/other.py", "SAYS = 'kept'", None)
        self.assertEqual(self.says(), ["kept", "kept", "source"])

    def test_that_of_another_source_is_not_taken(self):
        self.keep(f"{self.root}/own/__init__.py", "SAYS = 'kept'", b"SAYS = 'older'")
        self.keep(f"{self.root}/own/part.py", "SAYS = 'kept'", None)
        self.assertEqual(self.says(), ["source", "kept", "source"])


if __name__ == "__main__":
    unittest.main()
