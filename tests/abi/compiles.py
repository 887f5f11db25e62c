#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The DDI headers compile the way that driver and client source includes them.

Each header alone as C11 and as C++17, with gcc and with clang; the six public ones also inside extern "C", before
and after wsl/winadapter.h and (C++) directx/dxcore.h, for old and new interface versions, with 16-bit wchar_t, and
with the base types forced to be ours; the headers that a program may include, before those of the C++ library; and a
small miniport and a small client of each kind. Prints TAP; says what is skipped.

The C++ library takes most of the time. Each compiler compiles it once, after all these headers. That covers each header alone:
a check shows that each macro of a header alone has the same definition after all headers.
"""

import os
import sys
from concurrent.futures import ThreadPoolExecutor

from kernel import VERSIONS
from tap import HERE, INCLUDABLE, INCLUDE, PUBLIC, WDDM, Tap, compiler_for, run

FLAGS = ['-fsyntax-only', '-Wall', '-Wextra', '-Wundef', '-Wshadow', '-Wpointer-arith', '-Werror',
         '-I' + WDDM, '-I' + INCLUDE]
LANGUAGES = {'c': ['-std=c11', '-pedantic', '-Wstrict-prototypes', '-Wmissing-prototypes'], 'c++': ['-std=c++17']}
COMPILERS = ('gcc', 'clang')
WSL = ['-isystem', '/usr/include/wsl/stubs']
WINADAPTER = '#include <wsl/winadapter.h>\n'
# C++ only: dxcore.h of directx-headers has templates.
DIRECTX = WINADAPTER + '#include <directx/dxcore.h>\n#include <dxguids/dxguids.h>\n'
WORKERS = 2

# Standard headers after ours, and uses of them, so that the templates are compiled and not only read.
CXX_LIBRARY = '''#include <algorithm>
#include <atomic>
#include <functional>
#include <iostream>
#include <iterator>
#include <map>
#include <memory>
#include <sstream>
#include <string>
#include <thread>
#include <vector>
int uses_the_library(void);
int uses_the_library(void)
{
	std::vector<int> numbers = {3, 1, 2};
	std::map<std::string, int> names;
	std::atomic<int> total{0};
	std::string text;

	std::sort(numbers.begin(), numbers.end());
	std::transform(numbers.begin(), numbers.end(), std::back_inserter(text),
		       [](int n) { return static_cast<char>('0' + n); });
	names[text] = numbers.front();
	for (const auto &name : names)
		total += name.second;
	return total.load();
}
'''


def include(*names):
    return ''.join(f'#include <{name}>\n' for name in names)


def in_c_linkage(text):
    return '#ifdef __cplusplus\nextern "C" {\n#endif\n' + text + '#ifdef __cplusplus\n}\n#endif\n'


def define(version):
    return f'#define DXGKDDI_INTERFACE_VERSION {VERSIONS[version]:#x}\n'


def user_version(number):
    return f'#define D3D_UMD_INTERFACE_VERSION {number:#x}\n'


class Job:
    """One source that must compile; languages says as what."""

    def __init__(self, name, source, languages=('c', 'c++'), flags=()):
        self.name, self.source, self.languages, self.flags = name, source, languages, list(flags)


def read(name):
    with open(os.path.join(HERE, name), encoding='utf-8') as file:
        return file.read()


def jobs(winadapter):
    """Every job; those that need winadapter.h only when it is there."""
    everything = include('d3dkmthk.h', 'd3dumddi.h', 'dispmprt.h')
    found = [Job(name + ' alone', include(name)) for name in sorted(os.listdir(WDDM)) if name.endswith('.h')]
    for name in PUBLIC:
        found.append(Job(name + ' inside extern "C"', in_c_linkage(include(name)), ('c++',)))
        found.append(Job(name + ' twice', include(name, name), ('c',)))
        if winadapter:
            found += [Job(name + ' after winadapter.h', WINADAPTER + include(name), flags=WSL),
                      Job(name + ' before winadapter.h', include(name) + WINADAPTER, flags=WSL),
                      Job(name + ' with winadapter.h in reach', in_c_linkage(include(name)), ('c++',), WSL),
                      Job(name + ' after directx/dxcore.h', DIRECTX + include(name), ('c++',), WSL),
                      Job(name + ' before directx/dxcore.h', include(name) + DIRECTX, ('c++',), WSL)]
    if winadapter:
        found += [Job('dxcore.h after directx/dxcore.h', DIRECTX + include('dxcore.h'), ('c++',), WSL),
                  Job('dxcore.h after winadapter.h', WINADAPTER + include('dxcore.h', 'd3dkmthk.h'), flags=WSL),
                  Job('examples/gpu_copy.cpp', read('../../examples/gpu_copy.cpp'), ('c++',), WSL)]
    # -Wno-shadow: vidmm.h has a function and a structure of one name, which gcc takes for a constructor that is hidden.
    found += [Job('all headers before the C++ library', include(*INCLUDABLE) + CXX_LIBRARY, ('c++',), ['-Wno-shadow'])]
    found += [Job('old annotations on request', '#define WDDM_SAL1_ANNOTATIONS\n' + include('d3dkmddi.h')
                  + 'void f(__in int a, __out_ecount(a) int *b);\n')]
    found += [Job('version ' + version, define(version) + everything)
              for version in ('1.0', '1.1', '1.3', '2.0', '2.9', '3.1', '3.2')]
    found += [Job(f'user-mode version {number:#x}', user_version(number) + everything)
              for number in (0xC, 0x2003, 0x5002)]
    found += [Job('16-bit wchar_t', everything, flags=['-fshort-wchar']),
              Job('our own base types', everything, flags=['-DWDDM_OWN_BASE_TYPES', *WSL]),
              Job('reversed order', include(*reversed(PUBLIC)), ('c',))]
    found.append(Job('kernel_source.cpp', read('kernel_source.cpp'), ('c++',), ['-fshort-wchar']))
    for name in ('miniport_source.cpp', 'client_source.c'):
        found.append(Job(name, read(name), ('c++',) if name.endswith('.cpp') else ('c', 'c++')))
    return found


def compile_job(job, compiler, language):
    command = compiler_for(compiler, language)
    if not command:
        return None
    source = job.source + 'extern int translation_unit_is_not_empty;\n'
    status, _, errors = run([command, '-x', language, *LANGUAGES[language], *FLAGS, *job.flags, '-'], source)
    return '' if status == 0 else f'{compiler} {language}:\n{errors}'


def macros(compiler, text):
    """The macro definitions at the end of a C++ source."""
    command = [compiler_for(compiler, 'c++'), '-x', 'c++', *LANGUAGES['c++'], *FLAGS[1:], '-dM', '-E', '-']
    status, definitions, errors = run(command, text)
    if status != 0:
        raise RuntimeError(errors)
    return set(definitions.splitlines())


def only_alone(compiler):
    """For each header, the macros that it defines alone and that all headers together define otherwise or not at all."""
    together = macros(compiler, include(*INCLUDABLE))
    with ThreadPoolExecutor(WORKERS) as pool:
        alone = pool.map(lambda name: macros(compiler, include(name)), INCLUDABLE)
    return {name: sorted(mine - together) for name, mine in zip(INCLUDABLE, alone)}


def has_winadapter():
    command = [compiler_for('gcc', 'c') or 'cc', '-x', 'c', '-std=c11', '-fsyntax-only', *WSL, '-']
    return run(command, WINADAPTER)[0] == 0


def main():
    tap, winadapter = Tap(), has_winadapter()
    for compiler in COMPILERS:
        for language in LANGUAGES:
            if not compiler_for(compiler, language):
                tap.skip(f'{compiler} for {language}', 'not installed')
    if not winadapter:
        tap.skip('combination with winadapter.h and directx/dxcore.h', 'directx-headers is not installed')
    wanted = [(job, compiler, language) for job in jobs(winadapter) for compiler in COMPILERS
              for language in job.languages]
    with ThreadPoolExecutor(WORKERS) as pool:
        results = list(pool.map(lambda item: compile_job(*item), wanted))
    for job in {item[0]: None for item in wanted}:
        mine = [result for item, result in zip(wanted, results) if item[0] is job and result is not None]
        failed = [result for result in mine if result]
        tap.ok(mine and not failed, f'{job.name} ({len(mine)} ways)', '\n'.join(failed).splitlines()[:20])
    compilers = [compiler for compiler in COMPILERS if compiler_for(compiler, 'c++')]
    differences = {compiler: only_alone(compiler) for compiler in compilers}
    for name in INCLUDABLE:
        lost = [f'{compiler}: {macro}' for compiler in compilers for macro in differences[compiler][name]]
        tap.ok(not lost, f'{name} before the C++ library defines what all headers define ({len(compilers)} ways)', lost[:20])
    broken = compile_job(Job('', include('dispmprt.h') + 'ULONG_PTR x = DXGK_NO_SUCH_NAME;\n'), 'gcc', 'c')
    tap.ok(broken is None or broken != '', 'source that is wrong is noticed')
    if compilers:
        tap.ok(macros(compilers[0], '#define TAKEN 1\n') - macros(compilers[0], '#define TAKEN 2\n') == {'#define TAKEN 1'},
               'a macro that another header defines otherwise is noticed')
    taken = compile_job(Job('', '#define __in\n' + CXX_LIBRARY), 'gcc', 'c++')
    tap.ok(taken is None or taken != '', 'a macro that takes a name of the C++ library is noticed')
    return tap.finish()


if __name__ == '__main__':
    sys.exit(main())
