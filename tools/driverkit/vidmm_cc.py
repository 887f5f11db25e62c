# SPDX-License-Identifier: MIT
"""vidmm-cc: compiles unmodified sources of a Windows display miniport into a shared object.

Each step is a function below; includes.py, wpp.py and exceptions.py have the parts that are about
the language of driver source.
"""

import argparse
import concurrent.futures
import os
import re
import shutil
import subprocess
import sys
import tempfile

import depfile
import exceptions
import includes
import wpp

C_SUFFIXES = ('.c',)
CXX_SUFFIXES = ('.cpp', '.cxx', '.cc')
# Warnings about what every Windows source has.
QUIET = ['-Wno-unknown-pragmas', '-Wno-ignored-attributes', '-Wno-attributes', '-Wno-multichar']
QUIET_CLANG = ['-Wno-unknown-warning-option', '-Wno-ignored-pragma-intrinsic', '-Wno-pragma-pack',
               '-Wno-microsoft', '-Wno-keyword-macro', '-Wno-inconsistent-missing-override',
               '-Wno-unused-value', '-Wno-nonportable-include-path', '-Wno-extern-c-compat']
# The preprocessor of Windows leaves out a comma before empty __VA_ARGS__.
MICROSOFT_CLANG = ['-fms-compatibility']
QUIET_GCC = ['-Wno-psabi', '-Wno-unused-value']
COMMON = ['-g', '-fPIC', '-fshort-wchar', '-fms-extensions', '-fno-strict-aliasing', '-fwrapv',
          '-fno-delete-null-pointer-checks', '-fno-omit-frame-pointer']
DEFINES = ['-D_WIN64=1', '-D_AMD64_=1', '-DAMD64=1', '-D_M_AMD64=100', '-D_M_X64=100',
           '-D_WIN32_WINNT=0x0A00', '-DWINVER=0x0A00', '-DNTDDI_VERSION=0x0A000008',
           '-D_KERNEL_MODE=1', '-DPOOL_NX_OPTIN=1']
WDDM = {'1.0': '0x1053', '1.1': '0x2005', '1.2': '0x300E', '1.3': '0x4002', '2.0': '0x5023',
        '2.1': '0x6003', '2.2': '0x700A', '2.3': '0x8001', '2.4': '0x9006', '2.5': '0xA00B',
        '2.6': '0xB004', '2.7': '0xC004', '2.8': '0xD001', '2.9': '0xE003', '3.0': '0xF003',
        '3.1': '0x10004', '3.2': '0x11000'}
# Options of the compilers whose value is the next argument.
WITH_VALUE = ('-include', '-imacros', '-isystem', '-iquote', '-idirafter', '-D', '-U', '-x', '-arch', '-target',
              '-MF', '-MT', '-MQ', '-Xclang', '-Xlinker', '-Xassembler', '-Xpreprocessor', '-mllvm', '--param', '-L', '-l', '-z')
EXPORTS = '{ global: DriverEntry; local: *; };\n'
EXIT_SOURCE, EXIT_USAGE = 1, 2


class Failed(Exception):
    """What the user did cannot be compiled; the text says why."""


class Usage(Exception):
    """The command is wrong; the text says why."""


def parser():
    p = argparse.ArgumentParser(
        prog='vidmm-cc', allow_abbrev=False, usage='vidmm-cc --driver OUT.so [OPTION...] SOURCE...',
        description='Compile unmodified sources of a WDDM miniport into a shared object for vidmm.',
        epilog='Other options that begin with - go to the compiler (-DX=1, -O2, -Wall, ...).')
    p.add_argument('--driver', metavar='OUT.so', help='the shared object to make')
    p.add_argument('-c', dest='compile_only', action='store_true', help='compile one source to an object')
    p.add_argument('-o', dest='output', metavar='FILE', help='the object of -c, or the same as --driver')
    p.add_argument('--compiler', metavar='clang|gcc', help='the compiler (clang if it is installed)')
    p.add_argument('--wddm', metavar='VERSION', help='interface version, 1.0 to 3.2 (that of the source, or 3.0)')
    p.add_argument('--sanitize', action='store_true', help='with AddressSanitizer and UBSan')
    p.add_argument('--debug', action='store_true', help='define DBG=1, as a checked build does')
    p.add_argument('-I', dest='folders', action='append', default=[], metavar='FOLDER', help='search FOLDER for includes')
    p.add_argument('-v', dest='verbose', action='store_true', help='print each command')
    p.add_argument('--kit', action='store_true', help='print the folder of vidmm.mk and end')
    return p


def choose_compiler(name):
    """(C compiler, C++ compiler, whether it is clang)."""
    if not name:
        name = 'clang' if shutil.which('clang') else 'gcc'
    if not shutil.which(name):
        raise Failed('%s is not installed' % name)
    base = os.path.basename(name)
    is_clang = 'clang' in base
    new = base.replace('clang', 'clang++') if is_clang else base.replace('gcc', 'g++')
    cxx = os.path.join(os.path.dirname(name), new)
    return name, cxx, is_clang


def check_exceptions(scan):
    """Refuses statements that __try cannot execute here. Returns the files with __try."""
    found, bad = set(), []
    for path in scan.files:
        if re.search(r'\b__try\b', scan.texts[path]):
            found.add(path)
            bad += ['%s:%d: %s' % (path, line, text) for line, text in exceptions.faults(scan.texts[path])]
    if bad:
        raise Failed('\n'.join(bad))
    return found


class Kit:
    """The folders of the headers, and the library whose services a driver may use."""

    def __init__(self, include, library):
        self.include, self.library = include, library

    def folders(self):
        return [os.path.join(self.include, 'driver'), self.include]


class Build:
    def __init__(self, kit, options, flags, work):
        self.kit, self.options, self.flags, self.work = kit, options, flags, work
        self.cc, self.cxx, self.is_clang = choose_compiler(options.compiler)

    def run(self, command):
        if self.options.verbose:
            print(' '.join(command), file=sys.stderr)
        done = subprocess.run(command, capture_output=True, text=True, errors='replace', check=False)
        sys.stderr.write(done.stderr)
        return done.returncode == 0

    def prepare(self, sources):
        """Writes forwarding headers and .tmh files. Returns the sources that need -O0."""
        scan = includes.Scan(self.is_clang, [os.path.abspath(f) for f in self.options.folders] + self.kit.folders())
        for source in sources:
            if not os.path.isfile(source):
                raise Failed('%s: no such file' % source)
            scan.add(source)
        own = [p for p in scan.files if not p.startswith(os.path.abspath(self.kit.include) + os.sep)]
        text = wpp.macros([scan.texts[path] for path in own])
        for name in scan.missing:
            if name.lower().endswith('.tmh'):
                with open(os.path.join(self.work, os.path.basename(name)), 'w', encoding='utf-8') as file:
                    file.write(text)
        includes.write_forwards(scan, self.work)
        with_try = check_exceptions(scan)
        in_header = any(not p.lower().endswith(C_SUFFIXES + CXX_SUFFIXES) for p in with_try)
        return set(os.path.abspath(s) for s in sources) if in_header else with_try

    def compile_flags(self, source, no_optimization):
        flags = ['-std=gnu11', '-x', 'c'] if is_c(source) else ['-std=gnu++17', '-x', 'c++', '-fno-exceptions',
                                                       '-fno-rtti', '-fno-threadsafe-statics']
        flags += COMMON + DEFINES + QUIET + (QUIET_CLANG if self.is_clang else QUIET_GCC)
        flags += MICROSOFT_CLANG if self.is_clang else []
        if not is_c(source) and not self.is_clang:
            flags += ['-fpermissive', '-w']
        if self.options.wddm:
            if self.options.wddm not in WDDM:
                raise Usage('--wddm %s: no such version (%s)' % (self.options.wddm, ', '.join(WDDM)))
            flags.append('-DDXGKDDI_INTERFACE_VERSION=' + WDDM[self.options.wddm])
        flags.append('-DDBG=%d' % self.options.debug)
        if self.options.sanitize:
            flags += ['-fsanitize=address,undefined', '-fno-sanitize=alignment,vptr',
                      '-fno-sanitize-recover=all']
        if self.is_clang:
            flags += ['-ivfsoverlay', os.path.join(self.work, includes.OVERLAY)]
        flags += ['-include', os.path.join(self.kit.include, 'driver', 'wddm_driver.h'), '-I' + self.work]
        for folder in self.options.folders:
            flags += ['-I', folder]
        for folder in self.kit.folders():
            flags += ['-isystem', folder]
        # Behind the user's flags: __try needs -O0, whatever they say.
        return flags + ['-O1'] + self.flags + (['-O0'] if no_optimization else [])

    def compile(self, sources, objects):
        if not all(is_c(s) for s in sources) and not shutil.which(self.cxx):
            raise Failed('%s is not installed; %s needs it' % (self.cxx, next(s for s in sources if not is_c(s))))
        no_optimization = self.prepare(sources)

        def one(pair):
            source, result = pair
            compiler = self.cc if is_c(source) else self.cxx
            flags = self.compile_flags(source, os.path.abspath(source) in no_optimization)
            if not self.run([compiler] + flags + ['-c', source, '-o', result]):
                return False
            dependencies = depfile.path_of(self.flags, result)
            if dependencies:
                depfile.clean(dependencies, self.work)
            return True

        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            results = list(pool.map(one, zip(sources, objects)))
        if not all(results):
            raise Failed('%d of %d sources did not compile' % (results.count(False), len(results)))

    def sanitizer_mark(self):
        """An object that names the run-time library, which vidmm loads before the driver."""
        library = 'libclang_rt.asan-%s.so' % os.uname().machine if self.is_clang else 'libasan.so'
        done = subprocess.run([self.cc, '-print-file-name=' + library], capture_output=True, text=True, check=True)
        path = os.path.realpath(done.stdout.strip())
        if not os.path.isabs(done.stdout.strip()):
            raise Failed('%s has no %s: its sanitizer is not installed' % (self.cc, library))
        source = os.path.join(self.work, 'sanitizer.c')
        with open(source, 'w', encoding='utf-8') as file:
            file.write('__attribute__((used)) static const char runtime[] = "VIDMM_SANITIZER_RUNTIME=%s";\n' % path)
        result = os.path.join(self.work, 'sanitizer.o')
        if not self.run([self.cc, '-fPIC', '-c', source, '-o', result]):
            raise Failed('the name of the sanitizer could not be compiled')
        return [result]

    def link(self, objects, any_cxx, output):
        exports = os.path.join(self.work, 'exports.map')
        with open(exports, 'w', encoding='utf-8') as file:
            file.write(EXPORTS)
        command = [self.cxx if any_cxx else self.cc, '-shared', '-Wl,-Bsymbolic', '-Wl,--version-script=' + exports, '-o', output] + objects
        if self.options.sanitize:
            command += self.sanitizer_mark() + ['-fsanitize=address,undefined'] + (['-shared-libasan'] if self.is_clang else [])
        command += [f for f in self.flags if f.startswith(('-l', '-L', '-Wl,', '-O'))]
        if not self.run(command):
            raise Failed('the driver could not be linked')

    def intercepted(self):
        """The functions of the C library that the runtime of AddressSanitizer has instead, without a version."""
        name = 'libclang_rt.asan-x86_64.so' if self.is_clang else 'libasan.so'
        path = subprocess.run([self.cc, '-print-file-name=' + name], capture_output=True, text=True, check=True).stdout.strip()
        return symbols(['nm', '-D', '--defined-only', path]) if os.path.isfile(path) else set()

    def check_symbols(self, objects, output):
        """Names each function that neither the driver nor vidmm has, and where it is used."""
        defined = symbols(['nm', '-D', '--defined-only', output])
        if 'DriverEntry' not in defined:
            os.unlink(output)
            raise Failed('no source defines DriverEntry (in C++ it has to be extern "C")')
        # A weak reference (a pure virtual function with gcc) needs no definition.
        undefined = [s for s in symbols(['nm', '-D', '--undefined-only', output], but='w')
                     if '@' not in s and not s.startswith(('_ITM_', '__gmon_start__', '__asan_', '__ubsan_', '__cxa_finalize'))]
        if not self.kit.library:
            return
        services = {s.split('@')[0] for s in symbols(['nm', '-D', '--defined-only', self.kit.library])}
        if self.options.sanitize:
            services |= self.intercepted()
        missing = sorted(s for s in undefined if s not in services)
        if not missing:
            return
        lines = []
        for name in missing:
            users = [os.path.basename(o) for o in objects if name in symbols(['nm', '--undefined-only', o])]
            lines.append('  %s (used in %s)' % (name, ', '.join(users) or 'the C++ library'))
        os.unlink(output)
        raise Failed('no source defines these functions, and vidmm has no such kernel services:\n' + '\n'.join(lines))


def is_c(source):
    return source.lower().endswith(C_SUFFIXES)


def symbols(command, but=None):
    """The names that nm prints, without those of one type."""
    if not shutil.which(command[0]):
        raise Failed('%s is not installed (package binutils)' % command[0])
    text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    lines = [line.split() for line in text.splitlines() if line.strip()]
    return {words[-1] for words in lines if len(words) < 2 or words[-2] != but}


def divide(arguments):
    """(sources, objects, flags for the compiler) from what the parser does not know."""
    sources, objects, flags = [], [], []
    pending = iter(arguments)
    for argument in pending:
        if argument in WITH_VALUE:
            flags += [argument, next(pending, '')]
        elif argument.startswith('-'):
            flags.append(argument)
        elif argument.lower().endswith(C_SUFFIXES + CXX_SUFFIXES):
            sources.append(argument)
        elif argument.endswith('.o'):
            objects.append(argument)
        else:
            raise Usage('%s: not a source of C or C++ and no object' % argument)
    return sources, objects, flags


def work_on(kit, options, rest, work):
    sources, objects, flags = divide(rest)
    build = Build(kit, options, flags, work)
    output = options.driver or options.output
    if options.compile_only:
        if len(sources) != 1 or objects:
            raise Usage('-c needs exactly one source')
        name = os.path.splitext(os.path.basename(sources[0]))[0] + '.o'
        build.compile(sources, [options.output or name])
        return
    if not output or not sources + objects:
        raise Usage('--driver OUT.so and at least one source are needed')
    made = [os.path.join(work, '%d-%s.o' % (i, os.path.basename(s))) for i, s in enumerate(sources)]
    build.compile(sources, made)
    # Objects may be of C++.
    any_cxx = not all(is_c(s) for s in sources) or bool(objects and shutil.which(build.cxx))
    build.link(made + objects, any_cxx, output)
    build.check_symbols(made + objects, output)


def main(arguments, kit, kit_folder):
    options, rest = parser().parse_known_args(arguments)
    if options.kit:
        print(kit_folder)
        return 0
    try:
        with tempfile.TemporaryDirectory(prefix='vidmm-cc-') as work:
            work_on(kit, options, rest, work)
    except Usage as failure:
        print('vidmm-cc: %s' % failure, file=sys.stderr)
        return EXIT_USAGE
    except (Failed, includes.Conflict) as failure:
        print('vidmm-cc: %s' % failure, file=sys.stderr)
        return EXIT_SOURCE
    return 0
