#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What `meson install` puts down is enough for a stranger, and no more is exported than promised. Prints TAP.

    check_install.py BUILD EMBEDDER.C README.MD COMPILER [ARG...]
"""

import ctypes
import glob
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile

DIAGNOSTICS = 20
# vidmm's own names, and the kernel services by theirs.
EXPORTED = re.compile(r'^(?:vidmm_\w+|D3DKMT\w+|DXCoreCreateAdapterFactory|(?:Dbg|Dxgk|Ex|Io|Iof|Kd|Ke|Kf|Mm|Ob|Obf|Ps|Rtl|Wddm|Yield|Zw|vDbg)[A-Z]\w*|(?:READ|WRITE)_(?:REGISTER|PORT)_\w+|VIDMM_[\d.]+)$')

# One of each family that a miniport in its own shared object calls.
SERVICES = {'DbgPrintEx', 'DxgkInitialize', 'ExAllocatePool2', 'IoAllocateMdl', 'KeSetEvent', 'KfRaiseIrql', 'MmMapIoSpaceEx',
            'ObfDereferenceObject', 'PsCreateSystemThread', 'RtlInitUnicodeString', 'ZwQueryValueKey'}

FILES = ('man/man1/vidmm.1', 'man/man1/vidmm-replay.1', 'man/man1/vidmm-cc.1', 'bin/vidmm-cc', 'vidmm/driverkit/vidmm.mk', 'man/man3/vidmm.3', 'man/man5/vidmm-formats.5',
         'man/man7/vidmm-rules.7', 'bash-completion/completions/vidmm.bash', 'zsh/site-functions/_vidmm',
         'fish/vendor_completions.d/vidmm.fish',
         *(f'vidmm/schemas/{name}.schema.json' for name in ('caps', 'clients', 'conform', 'explain', 'replay', 'serve-config', 'what-if')))


class Installed:
    """The tree below a staging folder."""

    def __init__(self, build, stage):
        self.stage = stage
        run = subprocess.run(['meson', 'install', '-C', build, '--no-rebuild', '--destdir', stage],
                             capture_output=True, text=True, check=False)
        self.good, self.text = run.returncode == 0, run.stdout + run.stderr
        found = glob.glob(os.path.join(stage, '**', 'vidmm.pc'), recursive=True)
        self.pc = os.path.dirname(found[0]) if found else ''
        self.lib = os.path.dirname(self.pc)

    def pkg_config(self, *arguments):
        environment = {**os.environ, 'PKG_CONFIG_PATH': self.pc, 'PKG_CONFIG_SYSROOT_DIR': self.stage}
        run = subprocess.run(['pkg-config', *arguments, 'vidmm'], env=environment, capture_output=True, text=True,
                             check=False)
        return run.stdout.strip()

    def runs(self, compiler, source, *libs):
        """Compiles `source` against the installed tree; what it prints, or the complaint."""
        program = os.path.join(self.stage, 'program')
        flags = shlex.split(self.pkg_config('--cflags'))
        command = [*compiler, '-std=c11', '-Wall', '-Wextra', '-Werror', *flags, source, *libs, '-o', program]
        run = subprocess.run(command, capture_output=True, text=True, check=False)
        if run.returncode:
            return run.stderr
        environment = {**os.environ, 'LD_LIBRARY_PATH': self.lib}
        run = subprocess.run([program], env=environment, capture_output=True, text=True, check=False)
        return run.stdout.strip() if run.returncode == 0 else f'exit {run.returncode}: {run.stderr}'

    def builds_first(self, compiler, source, uninstalled, *options):
        """Builds and runs a program by the command line of the README; what it prints, or the complaint."""
        environment = {**os.environ, 'PKG_CONFIG_PATH': uninstalled or self.pc, 'LD_LIBRARY_PATH': self.lib}
        if uninstalled:
            environment['LD_LIBRARY_PATH'] = os.path.join(os.path.dirname(uninstalled), 'lib')
        else:
            environment['PKG_CONFIG_SYSROOT_DIR'] = self.stage
        flags = subprocess.run(['pkg-config', *('--static' for option in options if option == '-static'), '--cflags',
                                '--libs', 'vidmm'], env=environment, capture_output=True, text=True, check=False)
        program = os.path.join(self.stage, 'first')
        run = subprocess.run([*compiler, *options, source, *shlex.split(flags.stdout), '-o', program],
                             capture_output=True, text=True, check=False)
        if run.returncode:
            return flags.stderr + run.stderr
        run = subprocess.run([program], env=environment, capture_output=True, text=True, check=False)
        return run.stdout.strip() if run.returncode == 0 else f'exit {run.returncode}: {run.stderr}'

    def builds_examples(self):
        """Builds the installed examples with their makefile, in another folder; what two of them print."""
        folder = os.path.join(self.stage, 'examples')
        os.mkdir(folder)
        makefile = glob.glob(os.path.join(self.stage, '**', 'vidmm', 'examples', 'Makefile'), recursive=True)
        environment = {**os.environ, 'PKG_CONFIG_PATH': self.pc, 'PKG_CONFIG_SYSROOT_DIR': self.stage,
                       'LD_LIBRARY_PATH': self.lib}
        text = ''
        for command in (['make', '-f', *makefile], ['./tinyumd'], ['./streaming']):
            run = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
            text += run.stdout
            if run.returncode:
                return f'{text}exit {run.returncode}: {run.stderr}'
        return text

    def soname(self):
        run = subprocess.run(['readelf', '-d', os.path.join(self.lib, 'libvidmm.so')], capture_output=True, text=True,
                             check=False)
        found = re.search(r'soname: \[(.*)\]', run.stdout)
        return found[1] if found else run.stdout + run.stderr

    def starts_driver(self, compiler, sources):
        """Builds a driver file as docs/caps.md says; what the installed program says to it."""
        driver = os.path.join(self.stage, 'driver.so')
        flags = shlex.split(self.pkg_config('--cflags'))
        command = [*compiler, '-std=c11', '-fPIC', '-shared', '-fshort-wchar', *flags, '-o', driver, *sources]
        run = subprocess.run(command, capture_output=True, text=True, check=False)
        if run.returncode:
            return run.stderr
        program = glob.glob(os.path.join(self.stage, '**', 'bin', 'vidmm'), recursive=True)
        run = subprocess.run([*program, 'caps', '--driver', driver], capture_output=True, text=True, check=False)
        return run.stdout if run.returncode == 0 else f'exit {run.returncode}: {run.stdout}{run.stderr}'

    def builds_driver(self):
        """Builds an installed miniport of the examples with its makefile; what the installed program says to it."""
        folder = os.path.join(self.stage, 'drivers')
        os.mkdir(folder)
        makefile = glob.glob(os.path.join(self.stage, '**', 'examples', 'drivers', 'Makefile'), recursive=True)
        programs = [os.path.dirname(path) for path in glob.glob(os.path.join(self.stage, '**', 'bin', 'vidmm-cc'), recursive=True)]
        environment = {**os.environ, 'PKG_CONFIG_PATH': self.pc, 'PKG_CONFIG_SYSROOT_DIR': self.stage,
                       'PATH': os.pathsep.join([*programs, os.environ['PATH']])}
        text = ''
        for command in (['make', '-f', *makefile], ['vidmm', 'caps', '--driver', 'aperture13.so'],
                        ['vidmm', 'conform', '--driver', 'aperture13.so', '--commands', 'aperture13_commands.so']):
            run = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
            text += run.stdout
            if run.returncode:
                return f'{text}exit {run.returncode}: {run.stderr}'
        return text

    def runs_d3dkmt(self, compiler, source):
        """Builds a D3DKMT program without the library; what `vidmm run` of the installed program gives it."""
        program = os.path.join(self.stage, 'd3dkmt')
        flags = shlex.split(self.pkg_config('--cflags'))
        run = subprocess.run([*compiler, '-std=c11', *flags, source, '-o', program, '-ldl'], capture_output=True, text=True, check=False)
        if run.returncode:
            return run.stderr
        vidmm = glob.glob(os.path.join(self.stage, '**', 'bin', 'vidmm'), recursive=True)
        run = subprocess.run([*vidmm, 'run', '--set', 'Model=wddm1', '--bar', '16M', '--', program], capture_output=True, text=True, check=False)
        return run.stdout if run.returncode == 0 else f'exit {run.returncode}: {run.stdout}{run.stderr}'

    def dxcore(self):
        """What a program that looks for libdxcore.so finds in it; the complaint."""
        try:
            library = ctypes.CDLL(os.path.join(self.lib, 'vidmm', 'libdxcore.so'))
            if library.D3DKMTEnumAdapters2(None) >= 0:
                return 'D3DKMTEnumAdapters2 takes NULL'
            return '' if library.DXCoreCreateAdapterFactory(None, None) < 0 else 'DXCoreCreateAdapterFactory takes NULL'
        except (OSError, AttributeError) as error:
            return str(error)

    def exports(self, library):
        """The symbols that a library below libdir exports, with their versions: name@@version."""
        run = subprocess.run(['nm', '-D', '--defined-only', '--with-symbol-versions', os.path.join(self.lib, library)],
                             capture_output=True, text=True, check=False)
        return [line.split()[-1] for line in run.stdout.splitlines() if line]


def first_program(readme, folder):
    """The first C program of the README as a file."""
    with open(readme, encoding='utf-8') as text:
        source = re.search(r'^```c\n(.*?)^```$', text.read(), re.M | re.S)
    path = os.path.join(folder, 'first.c')
    with open(path, 'w', encoding='utf-8') as file:
        file.write(source[1] if source else '')
    return path


def first_cases(installed, readme, compiler, build, version):
    source = first_program(readme, installed.stage)
    uninstalled = os.path.join(build, 'meson-uninstalled')
    for name, folder, options in (('the shared library', '', ()), ('the static library', '', ('-static',)),
                                  ('a build folder', uninstalled, ())):
        printed = installed.builds_first(compiler, source, folder, *options)
        yield f'the first program of the README builds and runs with {name}', printed.startswith(f'vidmm {version}:'), printed


def cases(installed, source, readme, build, compiler):
    version = installed.pkg_config('--modversion')
    shared = shlex.split(installed.pkg_config('--libs'))
    static = [lib if lib != '-lvidmm' else os.path.join(installed.lib, 'libvidmm.a')
              for lib in shlex.split(installed.pkg_config('--static', '--libs'))]
    versioned = installed.exports('libvidmm.so')
    exports = [name.split('@')[0] for name in versioned]
    strange = [name for name in exports if not EXPORTED.match(name)]
    soname = f'libvidmm.so.{".".join(version.split(".")[:2])}'
    yield 'the tree installs', installed.good, installed.text
    yield 'pkg-config knows the version', re.fullmatch(r'\d+\.\d+\.\d+', version), version
    yield 'the SONAME names the minor version', os.path.exists(os.path.join(installed.lib, soname)), soname
    yield 'the library has this SONAME', installed.soname() == soname, installed.soname()
    bare = [name for name in versioned if not re.search(r'@@VIDMM_\d+\.\d+$', name) and not name.startswith('VIDMM_')]
    yield 'each symbol has a version', not bare, ' '.join(bare)
    driver = installed.exports('vidmm/softgpu_driver.so')
    yield 'the driver of softgpu exports its entry only', driver == ['DriverEntry'], ' '.join(driver)
    yield from first_cases(installed, readme, compiler, build, version)
    if shutil.which('make'):
        said = installed.builds_examples()
        yield 'the installed examples build and run', ' 0 bytes wrong' in said and '0 words wrong' in said, said
        said = installed.builds_driver()
        yield 'an installed example of a driver builds and conforms', re.search(r'the adapter starts.* 0 broke', said, re.S), said
    else:
        yield 'the installed examples build and run # SKIP make is not installed', True, ''
    for name, libs in (('shared', shared), ('static', static)):
        printed = installed.runs(compiler, source, *libs)
        yield f'a program builds and runs with the {name} library', printed == version, printed
    sources = glob.glob(os.path.join(os.path.dirname(source), '..', '..', 'drivers', 'softgpu', '*.c'))
    lacking = [path for path in FILES if not glob.glob(os.path.join(installed.stage, '**', path), recursive=True)]
    yield 'manual pages, completions and schemas are installed', not lacking, ' '.join(lacking)
    said = installed.starts_driver(compiler, sources)
    yield 'a driver builds, and the installed program starts it', 'the adapter starts' in said, said
    said = installed.runs_d3dkmt(compiler, os.path.join(os.path.dirname(source), '..', '..', 'examples', 'pressure.c'))
    yield 'the installed program runs a D3DKMT program', ' 0 words wrong' in said, said
    complaint = installed.dxcore()
    yield 'libdxcore.so has the D3DKMT functions and DXCore', not complaint, complaint
    yield 'vidmm_version is exported', 'vidmm_version' in exports, ' '.join(exports)
    yield 'the services of miniports are exported', SERVICES <= set(exports), ' '.join(SERVICES - set(exports))
    yield 'nothing else is exported', not strange, ' '.join(strange)


def main(build, source, readme, *compiler):
    with tempfile.TemporaryDirectory() as stage:
        results = list(cases(Installed(build, stage), source, readme, build, compiler))
    print(f'1..{len(results)}')
    for number, (name, good, text) in enumerate(results, 1):
        for line in text.splitlines()[-DIAGNOSTICS:] if not good else []:
            print(f'# {line}')
        print(f'{"ok" if good else "not ok"} {number} - {name}')
    return 0 if all(good for _, good, _ in results) else 1


if __name__ == '__main__':
    sys.exit(main(*sys.argv[1:]))
