#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""test_vidmm_cc.py VIDMM_CC VIDMM: drivers in the ways of Windows source are built by both compilers. TAP."""
import os
import shutil
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'support'))
from tap_tests import main, test

VIDMM_CC, VIDMM = (os.path.abspath(path) for path in sys.argv[1:3])
ROOT = os.environ['VIDMM_SOURCE_ROOT']
EXAMPLES = os.path.join(ROOT, 'examples')
COMPILERS = [name for name in ('clang', 'gcc') if shutil.which(name)]

# What a source needs to be a driver at all.
ENTRY = '''
#include <ntddk.h>
#include <dispmprt.h>
%s
extern "C" NTSTATUS DriverEntry(DRIVER_OBJECT *driver, UNICODE_STRING *path)
{
	(void)driver, (void)path;
	%s
	return STATUS_SUCCESS;
}
'''
ENTRY_C = ENTRY.replace('extern "C" ', '')


def write(folder, **files):
    """Writes files; two underscores in a name stand for a dot. Returns the sources."""
    sources = []
    for name, text in files.items():
        path = os.path.join(folder, name.replace('__', '.'))
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, 'w', encoding='utf-8') as file:
            file.write(text)
        if path.endswith(('.c', '.cpp')):
            sources.append(path)
    return sources


def build(folder, sources, *options, compiler=None):
    command = [VIDMM_CC, '--driver', os.path.join(folder, 'driver.so'), *options, *sources]
    if compiler:
        command[1:1] = ['--compiler', compiler]
    return subprocess.run(command, capture_output=True, text=True)


def good(folder, sources, *options):
    for compiler in COMPILERS:
        done = build(folder, sources, *options, compiler=compiler)
        assert done.returncode == 0, (compiler, done.stderr)
    return os.path.join(folder, 'driver.so')


def refused(folder, sources, *texts, options=(), code=1):
    for compiler in COMPILERS:
        done = build(folder, sources, *options, compiler=compiler)
        assert done.returncode == code, (compiler, done.returncode, done.stderr)
        for text in texts:
            assert text in done.stderr, (compiler, text, done.stderr)
    assert not os.path.exists(os.path.join(folder, 'driver.so'))


def exported(driver):
    text = subprocess.run(['nm', '-D', '--defined-only', driver], capture_output=True, text=True, check=True).stdout
    return [line.split()[-1] for line in text.splitlines()]


@test
def an_example_is_built_and_starts(folder):
    for compiler in COMPILERS:
        done = build(folder, [os.path.join(EXAMPLES, 'tinykmd.c')], compiler=compiler)
        assert done.returncode == 0, done.stderr
        assert done.stderr == '', done.stderr
        caps = subprocess.run([VIDMM, 'caps', '--driver', os.path.join(folder, 'driver.so')], capture_output=True, text=True)
        assert caps.returncode == 0, (compiler, caps.stdout, caps.stderr)
        assert exported(os.path.join(folder, 'driver.so')) == ['DriverEntry']


@test
def includes_of_another_case_and_with_backslashes_are_found(folder):
    sources = write(folder, src__c='', **{
        'src/Main__c': '#include <NTDDK.H>\n#include "..\\Inc\\Types.h"\n#include "LOCAL.h"\n'
                       + ENTRY_C % ('', 'return FROM_TYPES + FROM_LOCAL;'),
        'src/local__h': '#define FROM_LOCAL 1\n',
        'inc/types__h': '#include "deep\\more.h"\n',
        'inc/Deep/More__h': '#define FROM_TYPES 2\n'})
    good(folder, [source for source in sources if source.endswith('Main.c')])
    # Nothing is written beside the sources.
    assert sorted(os.listdir(os.path.join(folder, 'src'))) == ['Main.c', 'local.h']


@test
def one_spelling_of_two_files_is_refused_by_gcc_only(folder):
    text = '#include "COMMON.h"\n'
    sources = write(folder, **{'a/one__c': text + ENTRY_C % ('', ''), 'b/two__c': text,
                               'a/common__h': '', 'b/common__h': ''})
    done = build(folder, sources, compiler='gcc')
    assert done.returncode == 1 and 'COMMON.h means' in done.stderr and 'b/common.h' in done.stderr, done.stderr
    if 'clang' in COMPILERS:
        done = build(folder, sources, compiler='clang')
        assert done.returncode == 0, done.stderr


@test
def words_of_windows_source_compile(folder):
    c = '''
#include <initguid.h>
#include <ntddk.h>
#include <dispmprt.h>
#include <d3d10umddi.h>
#include <dxgiformat.h>
#include <bugcodes.h>
#include <wingdi.h>
#pragma code_seg("PAGE")
#pragma warning(disable: 4100)
#include <pshpack1.h>
typedef struct { UCHAR a; ULONG b; } PACKED;
#include <poppack.h>
typedef unsigned __int64 uint64_t;
typedef __int64 int64_t;
DEFINE_GUID(GUID_TEST, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11);
C_ASSERT(sizeof(PACKED) == 5);
C_ASSERT(MAXLONG == 2147483647 && MAXULONG == 4294967295);
C_ASSERT(sizeof(WCHAR) == 2 && sizeof(L"ab") == 6);
#define LOG(format, ...) DbgPrintEx(79, 3, format, __VA_ARGS__)
static __declspec(align(64)) ULONG aligned[4];
__forceinline ULONG add(_In_ ULONG a, __in_opt ULONG b) { return a + b; }
static __declspec(noinline) NTSTATUS __stdcall log_it(_In_reads_bytes_(n) const VOID *p, __in ULONG n)
{
	PAGED_CODE();
	UNREFERENCED_PARAMETER(p);
	LOG("nothing follows\\n");
	LOG("one follows %u\\n", n);
	return wcscmp(L"abc", L"abd") < 0 && _wcsicmp(L"ABC", L"abc") == 0 && wcslen(L"four") == 4 &&
		       add(1, 2) == 3 && ((ULONG_PTR)aligned & 63) == 0 && IsEqualGUID(&GUID_TEST, &GUID_TEST)
		       ? STATUS_SUCCESS : STATUS_UNSUCCESSFUL;
}
NTSTATUS DriverEntry(PDRIVER_OBJECT driver, PUNICODE_STRING path)
{
	uint64_t wide = 1;
	return log_it(driver, (ULONG)(wide + path->Length));
}
'''
    cpp = '''
extern "C" {
#include <dispmprt.h>
}
class Base {
public:
	virtual NTSTATUS start() = NULL;
};
class Derived : public Base {
public:
	NTSTATUS start() override { return STATUS_SUCCESS; }
};
static VOID APIENTRY stable(IN_CONST_HANDLE, IN_CONST_PDXGKARG_SETSTABLEPOWERSTATE) {}
static NTSTATUS APIENTRY group(IN_CONST_HANDLE, INOUT_DXGKARG_QUERYDEPENDENTENGINEGROUP) { return STATUS_SUCCESS; }
NTSTATUS fill(DRIVER_INITIALIZATION_DATA *table);
NTSTATUS fill(DRIVER_INITIALIZATION_DATA *table)
{
	Derived derived;
	table->DxgkDdiSetStablePowerState = stable;
	table->DxgkDdiQueryDependentEngineGroup = group;
	return min(derived.start(), STATUS_SUCCESS);
}
'''
    good(folder, write(folder, words__c=c, words2__cpp=cpp), '--debug', '--wddm', '2.6')


@test
def trace_macros_of_wpp_print(folder):
    header = '''
// begin_wpp config
// FUNC MY_ERROR{LEVEL=TRACE_LEVEL_ERROR, FLAGS=MY_FLAG}(MSG, ...);
// FUNC MY_EVENT(LEVEL, FLAGS, MSG, ...);
// FUNC MY_ASSERT{LEVEL=TRACE_LEVEL_ERROR, FLAGS=MY_FLAG}(MY_EXP);
// end_wpp
#define WPP_CONTROL_GUIDS WPP_DEFINE_CONTROL_GUID(T, (1,2,3,4,5), WPP_DEFINE_BIT(MY_FLAG))
'''
    body = '''WPP_INIT_TRACING(driver, path);
	MY_ERROR("status %!STATUS! in %!FUNC!", STATUS_NO_MEMORY);
	MY_EVENT(TRACE_LEVEL_WARNING, MY_FLAG, "event %u", 7u);
	MY_EVENT(TRACE_LEVEL_VERBOSE, MY_FLAG, "not printed");
	MY_ASSERT(1 + 1 == 3);
	WPP_CLEANUP(driver);
	return STATUS_NO_MEMORY;'''
    sources = write(folder, trace__h=header, **{
        'driver__cpp': '#include "trace.h"\n#include "driver.tmh"\n' + ENTRY % ('', body)})
    driver = good(folder, sources)
    done = subprocess.run([VIDMM, 'caps', '--driver', driver], capture_output=True, text=True)
    output = done.stdout + done.stderr
    assert 'NT-10' in output and '1 + 1 == 3' in output, output


@test
def structured_exceptions_work(folder):
    body = '''volatile int order = 0;
	__try {
		__try {
			order = 1;
			*(volatile int *)nowhere = 1;
			order = 100;
		} __finally {
			order = order * 10 + 2;
		}
	} __except (GetExceptionCode() == STATUS_ACCESS_VIOLATION ? EXCEPTION_EXECUTE_HANDLER : EXCEPTION_CONTINUE_SEARCH) {
		order = order * 10 + 3;
	}
	if (order != 123)
		return STATUS_UNSUCCESSFUL;
	return STATUS_NO_SUCH_DEVICE;'''
    for suffix, entry in (('c', ENTRY_C), ('cpp', ENTRY)):
        sources = write(folder, **{'seh__' + suffix: entry % ('static PVOID nowhere = (PVOID)0x1000;', body)})
        driver = good(folder, sources)
        done = subprocess.run([VIDMM, 'caps', '--driver', driver], capture_output=True, text=True)
        assert 'STATUS_NO_SUCH_DEVICE' in done.stdout + done.stderr or '0xc000000e' in done.stdout + done.stderr, (
            done.stdout, done.stderr)


@test
def jumps_out_of_a_block_are_refused_with_their_line(folder):
    loop = '''for (int i = 0; i < 3; i++) {
		__try {
			for (;;) { break; }
			if (i) break;
		} __except (1) {
			continue;
		}
	}'''
    refused(folder, write(folder, loop__c=ENTRY_C % ('', loop)), 'loop.c:11: break leaves the __try block of line 9',
            'loop.c:13: continue leaves the __except block of line 12')
    leave = '''__try {
		(void)driver;
	} __except (1) {
		__leave;
	}'''
    refused(folder, write(folder, leave__c=ENTRY_C % ('', leave)),
            'leave.c:11: __leave in the __except block of line 10 does not leave a __try block')
    fine = '''__try {
		for (int i = 0; i < 2; i++)
			if (i) {
				(void)path;
			} else {
				break;
			}
#if 1
		if (driver) {
#else
		if (path) {
#endif
			(void)driver;
		}
		switch (path->Length) { case 1: break; }
	} __finally {
		(void)driver;
	}'''
    good(folder, write(folder, fine__c=ENTRY_C % ('', fine)), '-O2')
    os.unlink(os.path.join(folder, 'driver.so'))
    final = '''__try {
		return STATUS_NO_MEMORY;
	} __finally {
		(void)driver;
	}'''
    refused(folder, write(folder, final__c=ENTRY_C % ('', final)),
            'final.c:9: return leaves the __try block of line 8 without its __finally block')


@test
def a_missing_kernel_service_is_named_with_its_source(folder):
    text = ENTRY_C % ('VOID ZwNoSuchService(VOID);', 'ZwNoSuchService();')
    refused(folder, write(folder, missing__c=text), 'no source defines these functions, and vidmm has no such kernel services:', 'ZwNoSuchService (used in ', 'missing.c')


@test
def a_driver_without_an_entry_is_refused(folder):
    mangled = (ENTRY % ('', '')).replace('extern "C" ', '')
    refused(folder, write(folder, mangled__cpp=mangled), 'no source defines DriverEntry (in C++ it has to be extern "C")')


@test
def mistakes_in_the_command_are_named(folder):
    sources = write(folder, ok__c=ENTRY_C % ('', ''))
    refused(folder, [os.path.join(folder, 'none.c')], 'none.c: no such file')
    refused(folder, sources, '--wddm 4.0: no such version (1.0, 1.1', options=['--wddm', '4.0'], code=2)
    refused(folder, [*sources, os.path.join(folder, 'x.rc')], 'x.rc: not a source of C or C++ and no object', code=2)
    done = build(folder, sources, compiler='no-such-compiler')
    assert done.returncode == 1 and 'no-such-compiler is not installed' in done.stderr, done.stderr
    none = subprocess.run([VIDMM_CC], capture_output=True, text=True)
    assert none.returncode == 2 and '--driver OUT.so and at least one source are needed' in none.stderr, none.stderr


@test
def an_error_of_the_compiler_names_the_source(folder):
    refused(folder, write(folder, bad__c=ENTRY_C % ('', 'no_such_name = 1;')), 'bad.c:8', 'no_such_name',
            '1 of 1 sources did not compile')


@test
def sanitizers_are_compiled_in(folder):
    text = ENTRY_C % ('static CHAR table[24];', """CHAR *at = table + 24;
	at[path->MaximumLength % 2] = 1;""")
    sources = write(folder, sanitized__c=text)
    own = subprocess.run(['nm', VIDMM], capture_output=True, text=True, check=True).stdout
    for compiler in COMPILERS:
        done = build(folder, sources, '--sanitize', compiler=compiler)
        assert done.returncode == 0, (compiler, done.stderr)
        if ' __asan_init' in own or ' __tsan_init' in own:
            continue  # a process has one sanitizer
        run = subprocess.run([VIDMM, 'caps', '--driver', os.path.join(folder, 'driver.so')], capture_output=True, text=True)
        assert run.returncode not in (0, 2, 3), (compiler, run.returncode, run.stderr)
        assert 'AddressSanitizer: global-buffer-overflow' in run.stderr or 'runtime error: store to' in run.stderr, (compiler, run.stderr)
        assert 'sanitized.c:9' in run.stderr, (compiler, run.stderr)
    # memcpy is in the runtime of the sanitizer, without a version.
    text = ENTRY_C % ('', 'RtlCopyMemory(driver, path, path->Length); return ((CHAR *)path->Buffer)[path->Length];')
    driver = good(folder, write(folder, sanitized__c=text), '--sanitize')
    undefined = subprocess.run(['nm', '-D', '--undefined-only', driver], capture_output=True, text=True, check=True).stdout
    assert '__asan_' in undefined, undefined


# Each second thread ends in the frames of the functions that called it, with what a sanitizer knows about them.
THREADS = '''
static KEVENT done;
static __attribute__((noinline)) VOID deep(ULONG depth, volatile UCHAR *above)
{
	volatile UCHAR local[512];
	for (ULONG i = 0; i < sizeof(local); i++)
		local[i] = (UCHAR)(above[i] + 1);
	if (depth)
		deep(depth - 1, local);
	KeSetEvent(&done, 0, FALSE);
	PsTerminateSystemThread(STATUS_SUCCESS);
}
static VOID worker(PVOID context)
{
	volatile UCHAR first[512] = {0};
	(void)context;
	deep(16, first);
}
static VOID speaker(PVOID context)
{
	DbgPrint("%s %p", "a thread on a stack that was used before", context);
	KeSetEvent(&done, 0, FALSE);
	PsTerminateSystemThread(STATUS_SUCCESS);
}
'''
START_THREADS = '''HANDLE thread;
	KeInitializeEvent(&done, SynchronizationEvent, FALSE);
	for (ULONG i = 0; i < 8; i++) {
		if (!NT_SUCCESS(PsCreateSystemThread(&thread, 0, NULL, NULL, NULL, i % 2 ? speaker : worker, NULL)))
			return STATUS_UNSUCCESSFUL;
		KeWaitForSingleObject(&done, Executive, KernelMode, FALSE, NULL);
		ZwClose(thread);
	}
	return STATUS_DEVICE_NOT_READY;'''


@test
def threads_that_end_in_the_middle_are_no_error_of_a_sanitizer(folder):
    own = subprocess.run(['nm', VIDMM], capture_output=True, text=True, check=True).stdout
    if ' __asan_init' in own or ' __tsan_init' in own:
        return 'a process has one sanitizer'
    sources = write(folder, threads__c=ENTRY_C % (THREADS, START_THREADS))
    for compiler in COMPILERS:
        done = build(folder, sources, '--sanitize', compiler=compiler)
        assert done.returncode == 0, (compiler, done.stderr)
        for back_end in 'sim', 'linux':
            run = subprocess.run([VIDMM, 'caps', '--backend', back_end, '--driver', os.path.join(folder, 'driver.so')],
                                 capture_output=True, text=True)
            assert run.returncode == 1 and 'STATUS_DEVICE_NOT_READY' in run.stdout, (compiler, back_end, run.stdout, run.stderr)
            assert 'ASan' not in run.stderr and 'AddressSanitizer' not in run.stderr, (compiler, back_end, run.stderr)
    return None


@test
def a_makefile_builds_it_object_by_object(folder):
    if not shutil.which('make'):
        return 'make is not installed'
    write(folder, entry__c=ENTRY_C % ('NTSTATUS second(VOID);', 'return second();'),
          second__cpp='#include <ntddk.h>\nextern "C" NTSTATUS second(VOID);\nNTSTATUS second(VOID) { return 0; }\n')
    kit = subprocess.run([VIDMM_CC, '--kit'], capture_output=True, text=True, check=True).stdout.strip()
    write(folder, Makefile='DRIVER := driver.so\nSOURCES := entry.c second.cpp\nVIDMM_CC := %s\ninclude %s/vidmm.mk\n'
          % (VIDMM_CC, kit))
    made = subprocess.run(['make', '-C', folder], capture_output=True, text=True)
    assert made.returncode == 0, (made.stdout, made.stderr)
    assert exported(os.path.join(folder, 'driver.so')) == ['DriverEntry']
    again = subprocess.run(['make', '-C', folder], capture_output=True, text=True)
    assert 'up to date' in again.stdout, again.stdout
    return None


@test
def a_makefile_builds_anew_what_includes_a_changed_header(folder):
    if not shutil.which('make'):
        return 'make is not installed'
    kit = subprocess.run([VIDMM_CC, '--kit'], capture_output=True, text=True, check=True).stdout.strip()
    for compiler in COMPILERS:
        below = os.path.join(folder, compiler)
        # Both includes need a forwarding header, which is gone when make looks for what has changed.
        write(below, entry__c=ENTRY_C % ('#include "INC\\Value.h"\nNTSTATUS second(VOID);', 'return second() + VALUE;'),
              second__cpp='#include <NTDDK.h>\nextern "C" NTSTATUS second(VOID);\nNTSTATUS second(VOID) { return 0; }\n',
              **{'inc/value__h': '#define VALUE 0\n'},
              Makefile='DRIVER := driver.so\nSOURCES := entry.c second.cpp\nVIDMM_CC := %s --compiler %s\ninclude %s/vidmm.mk\n'
              % (VIDMM_CC, compiler, kit))

        def made(below=below):
            done = subprocess.run(['make', '-C', below], capture_output=True, text=True)
            assert done.returncode == 0, (done.stdout, done.stderr)
            return done.stdout

        made()
        assert 'up to date' in made()
        later = os.stat(os.path.join(below, 'driver.so')).st_mtime + 1
        os.utime(os.path.join(below, 'inc', 'value.h'), (later, later))
        text = made()
        assert '-o entry.c.o' in text and '-o second.cpp.o' not in text and '--driver driver.so' in text, text
        os.unlink(os.path.join(below, 'inc', 'value.h'))
        write(below, entry__c=ENTRY_C % ('NTSTATUS second(VOID);', 'return second();'))
        assert '-o entry.c.o' in made()
        assert subprocess.run(['make', '-C', below, 'clean-driver'], capture_output=True).returncode == 0
        assert sorted(os.listdir(below)) == ['Makefile', 'entry.c', 'inc', 'second.cpp'], os.listdir(below)
    return None


@test
def a_missing_compiler_of_one_language_is_named(folder):
    """As on a system with gcc and without g++: C is built, and C++ is refused."""
    programs = os.path.join(folder, 'programs')
    os.mkdir(programs)
    for name in ('gcc', 'nm', 'as', 'ld'):
        found = [os.path.join(path, name) for path in os.get_exec_path() if shutil.which(name, path=path)]
        # ccache under the name of a compiler would look for the compiler in the path.
        found = [path for path in found if os.path.basename(os.path.realpath(path)) != 'ccache']
        if not found:
            return '%s is not installed' % name
        os.symlink(found[0], os.path.join(programs, name))
    environment = {**os.environ, 'PATH': programs}
    output = os.path.join(folder, 'driver.so')

    def cc(*arguments):
        return subprocess.run([sys.executable, VIDMM_CC, *arguments], capture_output=True, text=True, env=environment)

    sources = write(folder, entry__c=ENTRY_C % ('', ''), more__cpp='int more;\n')
    done = cc('--driver', output, *sources)
    assert done.returncode == 1 and 'g++ is not installed; ' in done.stderr and 'more.cpp needs it' in done.stderr, done.stderr
    assert 'Traceback' not in done.stderr and not os.path.exists(output), done.stderr
    done = cc('-c', '-o', os.path.join(folder, 'entry.o'), sources[0])
    assert done.returncode == 0, done.stderr
    done = cc('--driver', output, os.path.join(folder, 'entry.o'))
    assert done.returncode == 0 and exported(output) == ['DriverEntry'], done.stderr
    return None


if __name__ == '__main__':
    sys.exit(main())
