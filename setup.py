"""Build of the native engine; all metadata stands in setup.cfg.

WEFT_SANITIZE=1 builds it with AddressSanitizer and UndefinedBehaviorSanitizer; `make sanitize` does, and runs tests.
WEFT_LTO=0 leaves link-time optimisation out: a packet then takes some 6 % longer, linking half a minute less, and
compiling two fifths more.
WEFT_UNITY=0 compiles each file alone: a build takes longer, a change to one file less. ccache is used where present.
WEFT_BUILD_JOBS: how many files are compiled at once, by default as many as processors and memory allow.

An engine in place has the debug information by which profilers, callgrind and sanitizers name its functions. One for a
wheel has no symbols, and an eighth of the size.

Where the headers of libibverbs are (Debian, Ubuntu: libibverbs-dev), verbs/ is built, too: libraries that RDMA programs
load (docs/verbs.md).
"""

import os
import platform
import re
import shlex
import shutil
import subprocess
import sysconfig
from collections.abc import Iterator
from itertools import accumulate, groupby, takewhile
from pathlib import Path

from pybind11.setup_helpers import ParallelCompile, Pybind11Extension
from setuptools import setup
from setuptools.command.build_ext import build_ext
from setuptools.command.build_py import build_py
from setuptools.errors import CompileError

SOURCES = sorted(Path("engine").rglob("*.cpp"))
HEADERS = sorted(str(path) for path in Path("engine").rglob("*.hpp"))
# Two thirds of a file's time go to its headers, so files of one part of the engine are compiled together: about this
# many lines, for which the compiler takes up to 1.5 GB.
UNIT_LINES = 1500
UNIT_MEMORY_BYTES = 3 << 29
# Bindings convert arguments and carry no packet: -O1 is enough for them. They are linked last, because of an inline
# function that several units have the linker keeps the first copy.
BINDINGS = re.compile("engine/python/|build/units/python_")
# Each file of these folders registers a kind by names that the others use, too.
FOLDERS_OF_KINDS = {"congestion", "paths"}


def units() -> list[str]:
    """Write files that include the sources of a unit, unless they are there and right; return their paths."""
    if os.environ.get("WEFT_UNITY") == "0":
        return [str(path) for path in SOURCES]
    kinds = [path for path in SOURCES if path.parent.name in FOLDERS_OF_KINDS]
    others = [path for path in SOURCES if path not in kinds]
    parts = groupby(others, lambda path: path.parts[1])
    return [*map(str, kinds), *(unit for part, sources in parts for unit in units_of(part, list(sources)))]


def units_of(part: str, sources: list[Path]) -> Iterator[str]:
    """Write and return the units of one part of the engine, each with about as many lines."""
    ends = list(accumulate(source.read_bytes().count(b"\n") for source in sources))
    count = -(-ends[-1] // UNIT_LINES)
    chunks: list[list[str]] = [[] for _ in range(count)]
    for source, end in zip(sources, ends, strict=True):
        chunks[(end - 1) * count // ends[-1]].append(f'#include "{source.relative_to("engine")}"\n')
    for number, chunk in enumerate(chunks):
        unit = Path("build", "units", f"{part}_{number}.cpp")
        if not unit.exists() or unit.read_text(encoding="utf-8") != "".join(chunk):
            unit.parent.mkdir(parents=True, exist_ok=True)
            unit.write_text("".join(chunk), encoding="utf-8")
        yield str(unit)


def needs_recompile(object_file: str, source: str) -> bool:
    """Older than its source or a header it includes (-MMD); pybind11's naive_recompile looks at the source only."""
    rule = Path(object_file).with_suffix(".d")
    if not rule.exists():
        return True
    used = rule.read_text(encoding="utf-8").replace("\\\n", " ").split()[1:]
    made = os.stat(object_file).st_mtime
    return any(not os.path.exists(path) or os.stat(path).st_mtime > made for path in [source, *used])


# The headers of the distribution's libibverbs; without them there is no RDMA device for other programs.
VERBS_HEADER = Path("infiniband/verbs.h")
VERBS_SOURCES = sorted(Path("verbs").rglob("*.cpp"))
VERBS_HEADERS = sorted([*Path("verbs").rglob("*.hpp"), *Path("verbs").rglob("*.h")])
# What programs that use queue pairs of MRC include and link.
MRC_HEADERS = sorted(Path("verbs", "mrc", "include").glob("*.h"))
MRC_LIBRARY = "libmrc.so"
# libibverbs looks for a provider by the version of its own private structures, which is part of the file's name
# (IBVERBS_PABI_VERSION of rdma-core's CMakeLists.txt): 34 up to rdma-core 56 (Debian 12 and 13, Ubuntu 24.04), 57 up to
# 58, 59 up to 63, 64.
PRIVATE_ABIS = (34, 57, 59, 64)
# It follows instructions one by one, and knows those of x86-64.
VIRTUAL_TIME = ["libweft-virtual-time.so"] if platform.machine() == "x86_64" else []
# They are loaded into others' programs, which need not have a C++ library, so they use none.
OF_VERBS = ["-std=c++20", "-O2", "-g1", "-fPIC", "-fno-exceptions", "-fno-rtti", "-fno-threadsafe-statics", "-MMD"]
OF_VERBS += ["-Wall", "-Wextra", "-fvisibility=hidden", "-Iengine", "-Iverbs", "-Iverbs/mrc/include"]

if shutil.which("ccache"):
    for variable in ("CC", "CXX"):
        os.environ.setdefault(variable, f"ccache {sysconfig.get_config_var(variable).split()[0]}")


def compiler(variable: str) -> list[str]:
    """Return the words of CC or CXX that name the compiler, without its options."""
    words = shlex.split(os.environ.get(variable) or sysconfig.get_config_var(variable))
    return list(takewhile(lambda word: not word.startswith("-"), words))


def jobs() -> int:
    """Return how many units this process's processors and the machine's or container's memory can compile at once."""
    free = [
        int(size) * 1024 for size in re.findall(r"^MemAvailable: +(\d+) kB", text_of("/proc/meminfo"), re.MULTILINE)
    ]
    free += [int(size) for size in re.findall(r"^\d+$", text_of("/sys/fs/cgroup/memory.max").strip())]
    processors = len(os.sched_getaffinity(0))
    return max(1, min([processors, *(size // UNIT_MEMORY_BYTES for size in free)]))


def text_of(path: str) -> str:
    """Return what a file of the kernel says; nothing if there is none."""
    try:
        return Path(path).read_text(encoding="ascii")
    except OSError:
        return ""


ParallelCompile("WEFT_BUILD_JOBS", default=jobs(), needs_recompile=needs_recompile).install()

# The distribution's Python adds a check of the stack to every function with an array, as the fastest here are.
OPTIMISED = ["-O3", "-fno-stack-protector", "-fno-plt"]
LTO = os.environ.get("WEFT_LTO") != "0"
if LTO:
    OPTIMISED.append("-flto=auto")
SANITISED = [
    "-O1",
    "-fno-omit-frame-pointer",
    "-fsanitize=address,undefined",
    "-fno-sanitize-recover=undefined",
]
OF_ALL_UNITS = ["-g1", "-MMD", "-Wall", "-Wextra", "-fvisibility=hidden"]
# GCC frees memory whenever its heap has doubled, from 128 MB on. Doing so from 600 MB on saves a seventh of the time.
OF_ALL_UNITS += ["--param", "ggc-min-expand=100", "--param", "ggc-min-heapsize=600000"]
MODE = SANITISED if os.environ.get("WEFT_SANITIZE") == "1" else OPTIMISED

# The smallest program with what the engine needs: C++20's library, and Python's headers.
PROBE = "#include <Python.h>\n#include <concepts>\nstatic_assert(std::same_as<int, int>);\n"


class BuildEngine(build_ext):
    """Says what is missing before it compiles, and strips an engine that is not for the checkout."""

    def run(self) -> None:
        for_checkout = self.inplace or self.editable_mode
        if self.editable_mode and self.is_current():
            return  # pip has a build folder of its own each time, and would compile everything
        if not LTO:  # object files of both kinds last next to each other
            self.build_temp += "-without-lto"
        if for_checkout:  # not where a wheel's is: it has no symbols
            self.build_lib = os.path.join(self.build_temp, "lib")
        super().run()
        engine = self.get_ext_filename("weft.engine._core") if for_checkout else super().get_outputs()[0]
        copy_interface(Path(engine).with_name("include"))
        if self.has_verbs():
            self.build_verbs()
        strip = shutil.which("strip")
        if strip is None or for_checkout or MODE is SANITISED:
            return
        for path in (each for each in self.get_outputs() if each.endswith(".so")):
            self.spawn([strip, "--strip-all", path])

    def get_outputs(self) -> list[str]:
        verbs = [str(path) for path in self.verbs_files()] if self.has_verbs() else []
        return [*super().get_outputs(), *verbs]

    def verbs_libraries(self) -> list[Path]:
        """Return the providers, by private ABI, then libmrc, and last the libraries that programs load first."""
        names = [*(f"libweft-rdmav{number}.so" for number in PRIVATE_ABIS), MRC_LIBRARY]
        names += ["libweft-preload.so", *VIRTUAL_TIME]
        return [self.verbs_folder() / "lib" / name for name in names]

    def verbs_files(self) -> list[Path]:
        """Return the libraries, and the headers of libmrc."""
        return [*self.verbs_libraries(), *(self.verbs_folder() / "include" / path.name for path in MRC_HEADERS)]

    def verbs_folder(self) -> Path:
        for_checkout = self.inplace or self.editable_mode
        return Path("weft" if for_checkout else os.path.join(self.build_lib, "weft"), "verbs")

    def has_verbs(self) -> bool:
        """Return whether the compiler finds the headers of libibverbs."""
        if not hasattr(self, "_has_verbs"):
            command = [*compiler("CXX"), "-fsyntax-only", "-x", "c++", "-"]
            probe = f"#include <{VERBS_HEADER}>\n"
            try:
                done = subprocess.run(command, input=probe, capture_output=True, text=True, check=False)
                self._has_verbs = done.returncode == 0
            except OSError:
                self._has_verbs = False
            if not self._has_verbs:
                self.warn(f"there is no <{VERBS_HEADER}> (libibverbs-dev): no device for RDMA programs")
        return self._has_verbs

    def build_verbs(self) -> None:
        libraries = self.verbs_libraries()
        providers, (mrc, preload, *virtual_time) = libraries[: len(PRIVATE_ABIS)], libraries[len(PRIVATE_ABIS) :]
        preload.parent.mkdir(parents=True, exist_ok=True)
        for number, provider in zip(PRIVATE_ABIS, providers, strict=True):
            # What it needs of libibverbs is in the process that loads it.
            self.link_verbs("provider", provider, [f"-DWEFT_PRIVATE_ABI={number}"], [])
        self.link_verbs("mrc", mrc, [], [f"-Wl,-z,defs,-soname,{MRC_LIBRARY}", "-libverbs", "-ldl"])
        for part, library in zip(("preload", "virtual_time"), [preload, *virtual_time], strict=False):
            self.link_verbs(part, library, [], ["-Wl,-z,defs", "-ldl"])
        for source, target in zip(MRC_HEADERS, self.verbs_files()[-len(MRC_HEADERS) :], strict=True):
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source, target)

    def link_verbs(self, part: str, library: Path, macros: list[str], options: list[str]) -> None:
        """Compile what has changed of a folder of verbs/, and link it into a library."""
        objects = []
        for source in (path for path in VERBS_SOURCES if path.parts[1] == part):
            target = Path(self.build_temp, library.stem, source).with_suffix(".o")
            target.parent.mkdir(parents=True, exist_ok=True)
            if needs_recompile(str(target), str(source)):
                self.spawn([*compiler("CXX"), *OF_VERBS, *macros, "-c", str(source), "-o", str(target)])
            objects.append(str(target))
        partial = library.with_suffix(".part")  # a program that has the old one mapped keeps it
        options = [*options, "-lc", "-lgcc"]
        self.spawn([*compiler("CC"), "-shared", "-nodefaultlibs", *objects, "-o", str(partial), *options])
        os.replace(partial, library)

    def is_current(self) -> bool:
        """Return whether the checkout's engine is newer than its sources and this file."""
        built = [Path(self.get_ext_filename(extension.name)) for extension in self.extensions]
        built += self.verbs_files() if self.has_verbs() else []
        sources = ["setup.py", *SOURCES, *HEADERS, *VERBS_SOURCES, *VERBS_HEADERS]
        newest = max(os.stat(path).st_mtime for path in sources)
        return all(path.exists() and path.stat().st_mtime > newest for path in built)

    def build_extensions(self) -> None:
        self.require_compiler()
        compile_unit, link = self.compiler._compile, self.compiler.link_shared_object

        def compile_by_use(target, source, extension, arguments, options, macros):
            own = ["-O1"] if BINDINGS.search(source) else []
            compile_unit(target, source, extension, arguments, [*options, *own], macros)

        def link_bindings_last(objects, *arguments, **options):
            link(sorted(objects, key=lambda path: bool(BINDINGS.search(path))), *arguments, **options)

        self.compiler._compile, self.compiler.link_shared_object = compile_by_use, link_bindings_last
        super().build_extensions()

    def require_compiler(self) -> None:
        """Compile a few lines as the engine is compiled.

        Raises:
            CompileError: in one line, with the packages that are missing.
        """
        command = [*self.compiler.compiler_so_cxx, "-std=c++20", f"-I{sysconfig.get_path('include')}"]
        command += ["-fsyntax-only", "-x", "c++", "-"]
        try:
            done = subprocess.run(command, input=PROBE, capture_output=True, text=True, check=False)
            said = done.stderr
        except OSError as error:
            said = str(error)
        else:
            if done.returncode == 0:
                return
        compiler = " ".join(self.compiler.compiler_so_cxx[:2] if "ccache" in command[0] else command[:1])
        cause = "there is no Python.h" if "Python.h" in said else f"{compiler} does not compile C++20"
        raise CompileError(
            f"weft-fabric needs a C++20 compiler, such as g++ 12, and Python's headers; {cause}. "
            "Debian, Ubuntu: apt install g++ python3-dev; Fedora: dnf install gcc-c++ python3-devel"
        )


def copy_interface(target: Path) -> None:
    """Copy the sources that users' congestion controls are compiled with: those that this engine was built from."""
    shutil.rmtree(target, ignore_errors=True)
    left = {f"congestion/{name}" for name in ("own_registration.hpp", "parameters.cpp", "window_defaults.hpp")}
    taken: set[str] = set()
    while left:
        name = left.pop()
        taken.add(name)
        text = Path("engine", name).read_text(encoding="utf-8")
        left |= set(re.findall(r'^#include "(.+)"$', text, re.MULTILINE)) - taken
        (target / name).parent.mkdir(parents=True, exist_ok=True)
        (target / name).write_text(text, encoding="utf-8")


class BuildWithShippedFolders(build_py):
    """Copies what lies beside the package in a checkout (`SHIPPED` of weft/paths.py) into weft/shipped/."""

    def run(self) -> None:
        super().run()
        if self.editable_mode:
            return
        target = Path(self.build_lib, "weft", "shipped")
        shutil.rmtree(target, ignore_errors=True)
        for name in shipped_folders():
            shutil.copytree(name, target / name, ignore=shutil.ignore_patterns("__pycache__", "runs"))


def shipped_folders() -> list[str]:
    """Not imported: the build's interpreter need not have what the package imports."""
    (names,) = re.findall(r"^SHIPPED = \((.*)\)$", Path("weft/paths.py").read_text(encoding="utf-8"), re.MULTILINE)
    return re.findall(r'"(\w+)"', names)


setup(
    cmdclass={"build_ext": BuildEngine, "build_py": BuildWithShippedFolders},
    ext_modules=[
        Pybind11Extension(
            "weft.engine._core",
            units(),
            depends=[*HEADERS, *map(str, SOURCES)],
            include_dirs=["engine"],
            cxx_std=20,
            extra_compile_args=[*MODE, *OF_ALL_UNITS],
            extra_link_args=MODE,
        )
    ],
)
