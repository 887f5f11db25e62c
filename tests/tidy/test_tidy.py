#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The checkers, checked: each must pass a good sample and name the fault in a bad one. Prints TAP."""

import os
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.append(os.path.join(ROOT, 'scripts'))

import changed
import checks
import cscan
import hangs
import layers as layering
import links
import measures
import progress
import rule_index
import structure
import suite
import wire

LINES_70 = 'int f(void)\n{\n' + '\tg();\n' * 67 + '}\n'
TRICKY = '''
/* int in_comment(void) { */
// int in_line_comment(void) { \\
int continued(void) {
const char *brace = "}{ /* \\" */";
struct point { int x; };
static const struct point table[] = { { 1 }, { 2 } };
#define BODY(x) { x; }
typedef struct { int y; } pair;
struct __attribute__((packed)) small { int z; };
extern "C" {
int inside(int c)
{
	if (c == '{') {
		return '}';
	}
	return "{"[0];
}
}
#ifdef A
static int chosen(void) {
#else
static int other(void) {
#endif
	return 1;
}
static void locked(struct point *p) VMM_REQUIRES(CLASS(p)) __attribute__((cold))
{
	p->x = 0;
}
BENCH("name", unit)
{
}
ENTRY(one, (a)(b))
ENTRY(two, "}")

static int after_macros(int a)
{
	return a;
}
int prototype(int a, int b);
int (*returns_pointer(int a))(void)
{
	return 0;
}
'''


FLAGS = '''typedef struct _%s {
	union {
		struct {
			UINT Red : 1;  /* 0x00000001 */
			UINT Blue : 1; /* 0x00000010 since 3.2 */
			UINT Reserved : 30; /* 0xFFFFFFEE */
			UINT DXGK_ALLOC_RESERVED0 : 1; /* 0x80000000 */
		};
	};
} %s;
'''
RED_ALONE = FLAGS.replace('UINT Blue', 'UINT Reserved1')
FLAG_HEADER = ''.join((FLAGS if name.endswith('S2') else RED_ALONE) % (name, name) for name in checks.FLAG_STRUCTURES)
RED = '## Red (0x1)\n\n* Refused: nothing.\n* Calls: none.\n'
BLUE = '### Blue (0x10, from 3.2 on)\n\n* Refused: always.\n* Calls: none.\n'


def flag_page(header, page):
    return checks.check_flag_pages({checks.FLAG_HEADER: header, checks.FLAG_PAGE: page})


CALL_HEADER = '''typedef struct _D3DDDI_IN {
	HANDLE hEvent;
} D3DDDI_IN;
typedef struct _D3DKMT_DO {
	UINT Count; /* of *p */
	D3DKMT_PTR(const UINT *, pList);
	union {
		VOID *pAdapter;
		UINT64 Align;
	};
	D3DDDI_IN Info;
} D3DKMT_DO;
'''
CALL_DOOR = 'KMT_API NTSTATUS APIENTRY D3DKMTDo(D3DKMT_DO *pData)\n{\n}\n'
CALL_ROWS = ('operation\t1\tD3DKMTDo\tD3DKMT_DO\tin', '\tpList\tarray:UINT\tCount\t1\tin\t-', '\tpAdapter\ttoken\t-\t-\t-\t-',
             '\tInfo.hEvent\tdescriptor\t-\t-\t-\t-')


CALLBACK_ROWS = (*CALL_ROWS, 'callback\t1001\tpfnDoCb\tD3DDDI_IN\tin', '\thEvent\ttoken\t-\t-\t-\t-')
CALLBACK_DOOR = 'hand\tpfnDoCb\tdo_it\n'


def calls(rows, door=CALL_DOOR, table=''):
    return wire.check_wire({wire.TABLE: '\n'.join(rows), 'include/wddm/a.h': CALL_HEADER, 'src/doors/kmt/a.c': door,
                            wire.DOORS: table})


DOOR_OPERATIONS = ('operation\t1\tD3DKMTDo\tD3DKMT_DO\tin', '\tpList\tarray:UINT\tCount\t64\tin\t-',
                   'operation\t2\tD3DKMTGet\tD3DKMT_GET\tinout', 'callback\t1001\tpfnDoCb\tD3DDDI_IN\tin')
DOOR_CALL = ('call\tOTHER', '\tkmt\tD3DKMTDo\tdevice $hDevice', '\trequest\tvmm_list\tcount = $Count', '\tcopy\tlist = pList',
             '\tdo\tvmm_do', '\tevent\t$hDevice\t@count\t0')


def doors(*rows, door='kmt'):
    """What src/doors/calls.py makes of these rows, or its error."""
    with tempfile.TemporaryDirectory() as root:
        paths = [os.path.join(root, name) for name in ('calls.tsv', 'operations.tsv', 'a.c', 'a.h')]
        for path, lines in zip(paths, (rows, DOOR_OPERATIONS)):
            with open(path, 'w', encoding='utf-8') as out:
                out.write('\n'.join(lines) + '\n')
        made = subprocess.run([sys.executable, os.path.join(ROOT, 'src/doors/calls.py'), door, *paths], capture_output=True, text=True,
                              check=False)
        if made.returncode:
            return made.stderr
        with open(paths[2], encoding='utf-8') as source:
            return source.read()


def table(*rows):
    return [layering.Layer(*row) for row in rows]


LAYERS = table(
    ('base', 'src/base', '-', 'no', '-', ''),
    ('os', 'src/os', 'base', 'yes', '-', ''),
    ('memory', 'src/memory', 'base os', 'no', '-', ''),
    ('softgpu', 'drivers/softgpu', '-', 'no', '-', ''),
)
TIERS = table(
    ('base', 'src/base', '-', 'no', '-', ''),
    ('range', 'src/range', 'base', 'no', '-', ''),
    ('sync', 'src/sync', 'base', 'no', '-', ''),
    ('memory', 'src/memory', 'base', 'no', '-', ''),
    ('memory_state', 'src/memory/state', 'base range', 'no', '-', ''),
)


def names(source):
    return [name for name, _, _ in cscan.functions(source)]


def includes(path, text, layers=LAYERS):
    with tempfile.TemporaryDirectory() as root:
        for name in ('src/base/base.h', 'src/memory/memory.h', 'src/memory/inner.h'):
            os.makedirs(os.path.join(root, os.path.dirname(name)), exist_ok=True)
            with open(os.path.join(root, name), 'w', encoding='utf-8'):
                pass
        return layering.check_includes(root, layers, {path: text})


def rules(table_rows, sources, verb='check'):
    """Exit status and output of scripts/rules.py on a small tree."""
    with tempfile.TemporaryDirectory() as root:
        files = {'docs/rules/a.tsv': '\n'.join(['\t'.join(row) for row in table_rows]) + '\n', **sources}
        for path, text in files.items():
            os.makedirs(os.path.join(root, os.path.dirname(path)), exist_ok=True)
            with open(os.path.join(root, path), 'w', encoding='utf-8') as out:
                out.write(text)
        run = subprocess.run([sys.executable, os.path.join(ROOT, 'scripts', 'rules.py'), verb],
                             env={**os.environ, 'VIDMM_SOURCE_ROOT': root}, capture_output=True, text=True, check=False)
        return run.returncode, run.stdout + run.stderr


HEAD = ('id', 'text', 'error', 'versions', 'provenance', 'source')
ROW_1 = ('LOCK-01', 'a rule', '-', 'all', 'documented', 'a page')
ROW_2 = ('LOCK-02', 'another', '-', 'all', 'inferred', 'nobody')
TEST_1 = {'tests/lock/a.c': 'static void lock_01_holds(void **state)\n{\n}\n'}


def tally(stdout, result='OK'):
    return suite.count({'stdout': stdout, 'result': result, 'name': 'x'})


def measured(measure, text, path='src/a.c'):
    return measures.take({path: text})[measure][0]


def named(term, text):
    return measured(f'files of src that name: {term}', text)


def density(text):
    return measured('asserts per 1000 lines of src/sync', text, 'src/sync/a.c')


NO_ASSERT = '_locked functions that do not begin with vmm_assert_held'
NO_REQUIRES = '_locked functions without VMM_REQUIRES'
ALL_TEXTS = 'nobody, whoever, somebody, anybody in all texts'
SPLIT = 'struct members split from their types'
PAGING = 'calls that take paging_lock outside vmm_paging_lock and vmm_paging_trylock'
BARE = 'functions named refuse, deny or broke'
REPORTS = 'findings and reasons before the return of a constant status'
BRANCHES = 'functions that branch on vmm_os_mutex_held outside asserts'
LOCKED = '''static int f_locked(struct a *a)
{
	struct b *b = a->b, c = {.d = {1}}; /* the lock */
	const uint64_t *const e[2] = {0};
	_Atomic uint32_t *word = NULL;

	vmm_assert_held(&b->lock);
	return b->count;
}
'''
WDDM2 = 'tests of ->wddm2 in src'
DOORS = 'lines of the .c files of src/doors'
CYCLE = {'a': {'b'}, 'b': {'c', 'd'}, 'c': {'a'}, 'd': {'e'}, 'e': {'d'}, 'f': {'a', 'f'}}
NM = '''a.o:0000000000000000 T f
a.o:                 U g
a.o:0000000000000010 t h
b.o:0000000000000000 D g
b.o:                 U h
b.o:                 w f
'''
DUMP = '''|-RecordDecl 0x1 <line:1:1, line:9:1> line:1:8 struct s definition
| |-RecordDecl 0x2 <line:2:2, line:5:2> line:2:2 union definition
| | `-FieldDecl 0x3 <line:3:4, col:12> col:12 part 'int'
| |-FieldDecl 0x4 <line:2:2> col:2 implicit 'union s::(anonymous at a.h:2:2)'
| |-FieldDecl 0x5 <line:6:4, /a/stdbool.h:6:9> col:9 referenced used '_Bool'
| `-FieldDecl 0x6 </a/stdbool.h:15:14, a.h:7:9> line:7:9 unused 'struct t'
|-RecordDecl 0x7 <line:1:1, line:9:1> line:1:8 struct t definition
| `-FieldDecl 0x8 <line:7:2> col:2 other 'int'
  |-MemberExpr 0x9 <col:2, col:8> 'int' lvalue ->part 0x3
  `-MemberExpr 0xa <col:2, col:8> 'int' lvalue .used 0x5'''
NINJA = '''build src/libm.a.p/a.c.o: c_COMPILER ../a.c
build src/libm.a: STATIC_LINKER src/libm.a.p/a.c.o | tool
build libs.so: c_LINKER | src/libm.a
build libs.so.p/libs.so.symbols: SHSYM libs.so
build x: c_LINKER x.c.o | src/libm.a || y
build all: phony x y z libs.so
build later: c_LINKER | src/libm.a
build y: c_LINKER y.c.o | libs.so.p/libs.so.symbols
build z: c_LINKER z.c.o || x
'''
PROTOTYPE = 'static int f_locked(struct a *a) VMM_REQUIRES(vmm_state_lock_class);\n'
ONE_OF_20 = 'vmm_assert(a);\n' + 'a;\n' * 49
LIMITS = '# text\nmeasure\tlimit\tgoal\nfalls\t5\t<= 0\nrises\t5\t>= 20\n'


TESTS = [
    {'name': 'memory_lock', 'cmd': [changed.__file__], 'suite': []},
    {'name': 'served_memory_lock', 'cmd': [changed.__file__], 'suite': []},
]
DEPS = '''a.c.o: #deps 2, deps mtime 1 (VALID)
    ../src/memory/lru.c
    ../src/memory/memory.h

b.c.o: #deps 2, deps mtime 1 (VALID)
    ../src/sched/render.c
    ../src/memory/memory.h
'''
DEPS_BUILD = os.path.join(ROOT, 'b')


class NoPrograms(changed.Graph):
    def __init__(self):
        self.edges, self.deps = [], changed.read_deps(DEPS, DEPS_BUILD)


def affected(path):
    """The names of two tests, scripts/changed.py as such and through a server, that a change of a file affects."""
    return sorted(changed.effect(path, TESTS, NoPrograms(), DEPS_BUILD)[0])


def reported(lines, terminal=False):
    shown = progress.Progress('gcc', terminal, clock=lambda: 61)
    return ''.join(shown.line(line) for line in lines)


def compared(falls, rises, more=()):
    """The problems of a table with two rows."""
    numbers = {'falls': (falls, []), 'rises': (rises, []), **dict.fromkeys(more, (0, []))}
    return [problem for _, problems in measures.compare(measures.read_rows(LIMITS), numbers) for problem in problems]


def found_by_age(seconds):
    """Is a running program of a folder found as one that is at least so old?"""
    with tempfile.TemporaryDirectory() as folder:
        program = shutil.copy(shutil.which('sleep'), folder)
        with subprocess.Popen([program, '3600']) as process:
            pids, text = hangs.report(folder, seconds)
            process.kill()
        return pids == [str(process.pid)] and f'thread {process.pid} sleep: state' in text


def broken_links(readme):
    with tempfile.TemporaryDirectory() as root:
        for name, text in (('README.md', readme), ('docs/a.md', '# One `heading`, two\n')):
            os.makedirs(os.path.dirname(os.path.join(root, name)), exist_ok=True)
            with open(os.path.join(root, name), 'w', encoding='utf-8') as out:
                out.write(text)
        return list(links.broken(root))


INDEXED = '''/* SPDX-License-Identifier: MIT */
/* The file. (LOCK-01) */
#include "a.h"

/* Stands alone. (LOCK-02) */

/* Refuses. (LOCK-03) */
static int
refuse(int a)
{
	return a; /* LOCK-04 */
}

int accept(int a)
{
	return refuse(a) ? "LOCK-05: \\" }" : 0;
}

static const int table[] = {
	1, /* LOCK-06 */
};
/* LOCK-07 */
#define LIMIT(a) \\
	(a)
'''


def indexed(sources):
    """rule id -> places, of the files of a small tree."""
    with tempfile.TemporaryDirectory() as root:
        for path, text in sources.items():
            os.makedirs(os.path.join(root, os.path.dirname(path)), exist_ok=True)
            with open(os.path.join(root, path), 'w', encoding='utf-8') as out:
                out.write(text)
        return rule_index.implementations(root)


def state_of(rule, sources):
    lines = rules([HEAD, ROW_1, ROW_2], sources, 'coverage')[1].split('\n')
    return next(line for line in lines if line.startswith(rule))


def fails(problems, part):
    """One complaint, and about the right thing."""
    return len(problems) == 1 and part in problems[0]


CASES = [
    ('scanner finds functions, and only functions',
     lambda: names(TRICKY) == ['inside', 'chosen', 'locked', 'BENCH', 'after_macros', 'returns_pointer']),
    ('scanner survives comments that look like code',
     lambda: names('/* " */ int a(void) { /* } */ }\nchar *s = "/*"; int b(void) { }') == ['a', 'b']),
    ('a function of 70 lines passes', lambda: checks.sizes({'src/a.c': LINES_70}) == []),
    ('a function of 71 lines fails',
     lambda: checks.sizes({'src/a.c': LINES_70.replace('}', '\tg();\n}')}) == [('src/a.c', 'f', 71)]),
    ('a file of 1000 lines passes', lambda: checks.sizes({'src/a.c': 'int a;\n' * 1000}) == []),
    ('a file of 1001 lines fails',
     lambda: fails(checks.check_sizes({'src/a.c': 'int a;\n' * 1001}, {}), '1001 lines')),
    ('the ratchet allows what it lists',
     lambda: checks.check_sizes({'src/a.c': 'int a;\n' * 1001}, {('src/a.c', 'file'): 1001}) == []),
    ('the ratchet must be lowered after a shrink',
     lambda: fails(checks.check_sizes({'src/a.c': 'int a;\n' * 1001}, {('src/a.c', 'file'): 1002}), 'lower its row')),
    ('the ratchet row goes when the limit is kept',
     lambda: fails(checks.check_sizes({'src/a.c': 'int a;\n'}, {('src/a.c', 'f'): 80}), 'remove its row')),
    ('a call whose pointers are all in the table passes', lambda: calls(CALL_ROWS) == []),
    ('a pointer that is not in the table fails', lambda: fails(calls(CALL_ROWS[:1] + CALL_ROWS[2:]), 'nothing is said of pList')),
    ('a pointer in an unnamed union counts', lambda: fails(calls(CALL_ROWS[:2] + CALL_ROWS[3:]), 'nothing is said of pAdapter')),
    ('a HANDLE of a structure inside counts', lambda: fails(calls(CALL_ROWS[:3]), 'nothing is said of Info.hEvent')),
    ('an exported function that is not in the table fails',
     lambda: fails(calls(CALL_ROWS, CALL_DOOR + CALL_DOOR.replace('Do(', 'Undo(')), 'D3DKMTUndo is exported')),
    ('a door copies an array with its type, count and limit',
     lambda: 'vmm_door_copy_in(args.pList, args.Count, 64, sizeof(UINT), local_list,' in doors(*DOOR_CALL)),
    ('a door copies an array that may be missing, with another count',
     lambda: 'vmm_door_copy_given(args.pList, args.a ? 1 : 2, 64, sizeof(UINT),' in doors(*DOOR_CALL[:3], '\tcopy?\tlist = pList[$a ? 1 : 2]',
                                                                                          *DOOR_CALL[4:])),
    ('an array that is no member of the request becomes a variable',
     lambda: 'request.list = list' in doors(*DOOR_CALL)
             and 'request.list = list' not in doors(*DOOR_CALL[:3], '\tarray\tlist = pList', *DOOR_CALL[4:])),
    ('a call that ends at once does so before its variables and its request',
     lambda: re.search(r'if \(args.a\)\n\t\treturn E;\n\tint b = args.a;\n\tstruct vmm_list request',
                       doors(*DOOR_CALL[:2], '\tlocal\tint b = $a', '\treturn?\t$a\tE', *DOOR_CALL[2:]))),
    ('a door\'s function may have an event only if it fails',
     lambda: 'return vmm_kmt_leave_query(&call, status);' in doors(*DOOR_CALL[:5], '\tevent\tfailed')),
    ('a door calls the core with its subject and request', lambda: 'status = vmm_do(call.device, &request);' in doors(*DOOR_CALL)),
    ('a door\'s event has the members of argument and request',
     lambda: 'return vmm_kmt_leave(&call, status, args.hDevice, request.count, 0);' in doors(*DOOR_CALL)),
    ('an unknown key of a door\'s table fails', lambda: 'calls.tsv:7: unknown or empty line: dont' in doors(*DOOR_CALL, '\tdont\tx')),
    ('an unknown function in a door\'s table fails',
     lambda: 'calls.tsv:2: D3DKMTNo is not a function' in doors('call\tOTHER', '\tkmt\tD3DKMTNo\tprocess')),
    ('a function with two blocks fails', lambda: 'calls.tsv:8: D3DKMTDo has two blocks' in doors(*DOOR_CALL, *DOOR_CALL)),
    ('a copy of what is no array fails',
     lambda: 'pMore is not an array of D3DKMTDo' in doors(*DOOR_CALL, '\tcopy\tmore = pMore')),
    ('an output of a const argument fails',
     lambda: 'D3DKMTDo: the argument is written' in doors(*DOOR_CALL, '\tout\tCount = @count')),
    ('a member of a request that is not there fails',
     lambda: 'there is no request' in doors('call\tOTHER', '\tkmt\tD3DKMTGet\tprocess', '\tdo\tvmm_get(@a)', '\tevent\t0\t1\t0')),
    ('a way to enter that is not known fails',
     lambda: 'D3DKMTGet: unknown "window $a"' in doors('call\tOTHER', '\tkmt\tD3DKMTGet\twindow $a', '\tevent\t0\t1\t0')),
    ('a call without an event fails', lambda: 'expected one event line' in doors(*DOOR_CALL[:-1])),
    ('a callback without a line fails', lambda: 'no line for pfnDoCb' in doors(*DOOR_CALL, door='umd')),
    ('a step by hand with two types fails',
     lambda: 'vmm_kmt_step is called with' in doors('call\tOTHER', '\tkmt\tD3DKMTDo\tprocess', '\tdo\tvmm_kmt_step', '\tevent\t0\t1\t0',
                                                    'call\tOTHER', '\tkmt\tD3DKMTGet\tprocess', '\tdo\tvmm_kmt_step', '\tevent\t0\t1\t0')),
    ('a function of the table that is not exported fails', lambda: fails(calls(CALL_ROWS, ''), 'D3DKMTDo is not exported')),
    ('a callback that is built and in the table passes', lambda: calls(CALLBACK_ROWS, table=CALLBACK_DOOR) == []),
    ('a callback that is built and not in the table fails',
     lambda: fails(calls(CALL_ROWS, table=CALLBACK_DOOR), 'pfnDoCb is built and not in the table')),
    ('a callback of the table that is not built fails',
     lambda: fails(calls(CALLBACK_ROWS), 'pfnDoCb is not built')),
    ('a function that the doors\' table makes is exported',
     lambda: calls(CALL_ROWS, '', 'call\tOTHER\n\tkmt\tD3DKMTDo\tprocess\n') == []),
    ('a function that is made and written by hand fails',
     lambda: fails(calls(CALL_ROWS, table='call\tOTHER\n\tkmt\tD3DKMTDo\tprocess\n'), 'D3DKMTDo is also written by hand')),
    ('a pointer of a callback counts',
     lambda: fails(calls(CALLBACK_ROWS[:-1], table=CALLBACK_DOOR), 'pfnDoCb: nothing is said of hEvent')),
    ('an allowed include passes', lambda: includes('src/memory/a.c', '#include "base/base.h"\n#include <string.h>\n') == []),
    ('an upward include fails',
     lambda: fails(includes('src/base/a.c', '#include "memory/memory.h"\n'), 'base may not include memory/memory.h')),
    ('an upward include by a relative path fails',
     lambda: fails(includes('src/base/a.c', '#include "../memory/memory.h"\n'), 'base may not include')),
    ('a private header of the own module passes', lambda: includes('src/memory/a.c', '#include "inner.h"\n') == []),
    ('an include in a comment does not count', lambda: includes('src/base/a.c', '/*\n#include <pthread.h>\n*/\n') == []),
    ('an OS header in core code fails',
     lambda: fails(includes('src/memory/a.c', '# include <pthread.h>\n'), 'reaches the operating system')),
    ('an OS header in src/os passes', lambda: includes('src/os/a.c', '#include <sys/mman.h>\n') == []),
    ('an unknown header fails', lambda: fails(includes('src/memory/a.c', '#include <jansson.h>\n'), 'neither C11')),
    ('a source outside every module fails', lambda: fails(includes('src/new/a.c', ''), 'in no module')),
    ('a table without cycles passes', lambda: layering.cycles(LAYERS) == [] and layering.upward(LAYERS) == []),
    ('a cycle fails',
     lambda: fails(layering.cycles(table(('a', 'a', 'b', 'no', '-', ''), ('b', 'b', 'a', 'no', '-', ''))), 'a -> b -> a')),
    ('an arrow that points up fails',
     lambda: fails(layering.upward(table(('a', 'a', 'b', 'no', '-', ''), ('b', 'b', '-', 'no', '-', ''))), 'below it')),
    ('a link dependency in the table passes',
     lambda: layering.check_build(LAYERS, {'src/memory/meson.build': 'dependencies: [vmm_base_dep, vmm_os_dep]'}) == []),
    ('a link dependency outside the table fails',
     lambda: fails(layering.check_build(LAYERS, {'src/base/meson.build': 'dependencies: vmm_os_dep'}), 'not depend on os')),
    ('a folder of tiers names what its tiers need',
     lambda: layering.check_build(TIERS, {'src/memory/meson.build': 'needs = [vmm_range_dep]'}) == []),
    ('a folder of tiers names nothing else',
     lambda: fails(layering.check_build(TIERS, {'src/memory/meson.build': 'vmm_sync_dep'}), 'not depend on sync')),
    ('a machine path fails',
     lambda: fails(checks.check_machine_paths({'docs/a.md': 'see /ho' + 'me/me/x'}), 'docs/a.md:1')),
    ('a relative path passes', lambda: checks.check_machine_paths({'docs/a.md': 'see ../work/x and a.work/y'}) == []),
    ('unfinished words fail', lambda: fails(checks.check_words({'src/a.c': 'int a;\n/* TODO more */\n'}), 'src/a.c:2')),
    ('a stub in a comment fails', lambda: fails(checks.check_words({'src/a.c': '/* a stub */\n'}), 'stub')),
    ('ordinary words pass', lambda: checks.check_words({'src/a.c': '/* stubborn */ int stub;\n'}) == []),
    ('a source with its licence passes',
     lambda: checks.check_spdx({'src/a.c': f'/* {checks.SPDX} */\n', 'x': f'#!/bin/sh\n# {checks.SPDX}\n'}) == []),
    ('a source without licence fails', lambda: fails(checks.check_spdx({'src/a.c': 'int a;\n'}), 'src/a.c')),
    ('a script without licence fails', lambda: fails(checks.check_spdx({'x': '#!/bin/sh\nls\n'}), 'x:1')),
    ('a README of a page passes', lambda: checks.check_readmes({'src/a/README.md': 'text\n'}, ['src/a']) == []),
    ('a missing README fails', lambda: fails(checks.check_readmes({}, ['src/a']), 'no README')),
    ('a long README fails', lambda: fails(checks.check_readmes({'src/a/README.md': 'x\n' * 81}, ['src/a']), 'page')),
    ('a sleeping test fails', lambda: fails(checks.check_sleeps({'tests/a.c': 'usleep(5);\n'}), 'sleeps')),
    ('a test that replaces a sleep passes', lambda: checks.check_sleeps({'tests/a.c': '\nint clock_nanosleep(int a)\n{\n}\n'}) == []),
    ('a sleeping script fails', lambda: fails(checks.check_sleeps({'tests/a.sh': 'ls\nsleep 1\n'}), 'sleeps')),
    ('speaking of sleep passes', lambda: checks.check_sleeps({'tests/a.c': '/* no sleep() */ asleep(1);\n'}) == []),
    ('a DDI spelling in core code fails',
     lambda: fails(checks.check_ddi_spellings({'src/memory/a.c': 'D3DKMTLock(x);\n'}), 'D3DKMTLock')),
    ('a DDI spelling in a door or a comment passes',
     lambda: checks.check_ddi_spellings({'src/doors/umd/a.c': 'pfnLockCb(x);', 'src/memory/a.c': '/* pfnLockCb */'}) == []),
    ('a page with every flag passes', lambda: flag_page(FLAG_HEADER, RED + BLUE) == []),
    ('two flags may share a heading',
     lambda: flag_page(FLAG_HEADER, '## Red (0x1), Blue (0x10)\n\n* Refused: both.\n* Calls: none.\n') == []),
    ('a flag without heading fails', lambda: fails(flag_page(FLAG_HEADER, RED), 'no heading for Blue (0x10)')),
    ('a flag with another mask fails',
     lambda: fails(flag_page(FLAG_HEADER, RED + BLUE.replace('0x10', '0x100')), 'no heading for Blue')),
    ('a flag named in the text only fails',
     lambda: fails(flag_page(FLAG_HEADER, RED + 'Blue (0x10)\n'), 'no heading for Blue')),
    ('a flag without refusals fails',
     lambda: fails(flag_page(FLAG_HEADER, RED + '## Blue (0x10)\n\ntext\n'), 'does not say what is refused')),
    ('a flag without calls fails',
     lambda: fails(flag_page(FLAG_HEADER, RED + BLUE.replace('Calls', 'Other')), 'called with')),
    ('a header without the structures fails', lambda: fails(flag_page(FLAG_HEADER.replace('FLAGS2', 'FLAGS3'), RED + BLUE), 'no flags found')),
    ('a good rule table passes', lambda: rules([HEAD, ROW_1, ROW_2], TEST_1)[0] == 0),
    ('a repeated rule id fails', lambda: 'defined twice' in rules([HEAD, ROW_1, ROW_1], {})[1]),
    ('a malformed rule row fails', lambda: 'cells, none empty' in rules([HEAD, ROW_1[:4]], {})[1]),
    ('an unknown provenance fails', lambda: 'provenance' in rules([HEAD, ROW_1[:4] + ('rumour', 'x')], {})[1]),
    ('an id in no table fails',
     lambda: rules([HEAD, ROW_1], {'src/a.c': '/* LOCK-99 */\n'}) == (1, 'rules: src/a.c: LOCK-99 is not in a rule table\n')),
    ('a test named after no rule fails',
     lambda: 'LOCK-98' in rules([HEAD, ROW_1], {'tests/a/a.c': 'static void lock_98_x(void **state)\n{\n}\n'})[1]),
    ('a rule without code or test is missing', lambda: 'missing' in state_of('LOCK-02', TEST_1)),
    ('a rule named in code has no test',
     lambda: 'implemented, no test' in state_of('LOCK-02', {'src/a.c': '/* LOCK-02 */\n'})),
    ('a rule named in a header only is missing', lambda: 'missing' in state_of('LOCK-02', {'src/a.h': '/* LOCK-02 */\n'})),
    ('a rule in code and test is tested',
     lambda: ' tested  ' in state_of('LOCK-01', {'src/a.c': '/* LOCK-01 */\n', **TEST_1})),
    ('one test may prove two rules',
     lambda: 'tested' in state_of('LOCK-02', {'tests/a/a.c': 'static void lock_01_lock_02_x(void **state)\n{\n}\n'})),
    ('a number in a test name is no second rule',
     lambda: 'missing' in state_of('LOCK-02', {'tests/a/a.c': 'static void lock_01_02_x(void **state)\n{\n}\n'})),
    ('a good link passes', lambda: broken_links('[a](docs/a.md#one-heading-two) [w](https://x.y) [s](docs)') == []),
    ('a link to no file fails', lambda: fails(broken_links('[a](docs/b.md)'), 'no such file')),
    ('a link to no heading fails', lambda: fails(broken_links('[a](docs/a.md#two)'), 'no such heading')),
    ('a program counts its tests', lambda: tally('1..3\nok 1 - a\nok 2 - b\nnot ok 3 - c\n', 'FAIL') == (2, 1, 0)),
    ('a program that stops early fails for the rest', lambda: tally('1..3\nok 1 - a\n', 'ERROR') == (1, 2, 0)),
    ('a program that dies after its last test fails', lambda: tally('1..1\nok 1 - a\n', 'ERROR') == (1, 1, 0)),
    ('a skipped test is neither passed nor failed', lambda: tally('1..2\nok 1 - a\nnot ok 2 # SKIP b\n') == (1, 0, 1)),
    ('a program without plan counts once', lambda: tally('', 'TIMEOUT') == (0, 1, 0) and tally('', 'OK') == (1, 0, 0)),
    ('the account of a failure has its diagnostics, before or after',
     lambda: suite.account({'name': 'p', 'result': 'FAIL', 'stderr': 'last words\n',
                            'stdout': '1..3\n# before\nnot ok 1\n# after\nok 2\n# not this\nok 3\n'})
     == ['p: FAIL', '# before', 'not ok 1', '# after', 'last words']),
    ('the pronouns are counted', lambda: measured(ALL_TEXTS, 'Nobody is\nwhoever, somebody; ANYBODY') == 4),
    ('parts of words and names are no pronouns, and tests do not count',
     lambda: measured(ALL_TEXTS, 'nobody_waits, nobodys') == 0 and measured(ALL_TEXTS, 'nobody', 'tests/a.c') == 0),
    ('forbidden words of comments are counted, across lines too',
     lambda: measured('"turned away" in comments of src and include', '/* is turned\n * away, Turned away */') == 2),
    ('forbidden words in code and literals do not count',
     lambda: measured('"nobody" in comments of src and include', 'uid = nobody; print("nobody"); /* the caller */') == 0),
    ('a file that names a term counts once',
     lambda: named('hazard pointer', '/* a hazard\n * pointer; hazard pointers */') == 1 and named('race', '/* races */') == 1
     and named('lock-free', '/* lock-free */') == 1 and named('fast path', '/* Fast path */') == 1
     and named('seqlock', '/* seqlock */') == 1),
    ('a file that names another term does not count',
     lambda: named('race', '/* a trace, a brace */') == 0 and named('fast path', '/* breakfast path */') == 0),
    ('a line of 100 columns passes', lambda: measured('lines over 100 columns', '\t/* ' + 'x' * 86 + ' */\n', 'tests/a.h') == 0),
    ('a line of 101 columns counts, in a comment too',
     lambda: measured('lines over 100 columns', '\t/* ' + 'x' * 87 + ' */\n', 'tests/a.h') == 1),
    ('a member split from its type counts', lambda: measured(SPLIT, 'struct a {\n\tstruct b\n\t\t/* it */\n\t\t*c; /* of */\n};\n') == 1),
    ('a member on one line, a list, an else and a line too long to join do not count',
     lambda: measured(SPLIT, f'struct a {{\n\tstruct b *c;\n}};\nenum e {{\n\tA,\n\tB\n}};\nelse\n\tb;\n{"t" * 60}\n{"n" * 60};\n') == 0),
    ('a _locked function with its assert behind the declarations passes', lambda: measured(NO_ASSERT, LOCKED) == 0),
    ('a _locked function that asserts the owner of a pthread mutex passes',
     lambda: measured(NO_ASSERT, LOCKED.replace('held(&b->lock', 'owned(&b->owner')) == 0),
    ('a _locked function without assert counts', lambda: measured(NO_ASSERT, LOCKED.replace('_held', '')) == 1),
    ('an assert behind another statement does not count',
     lambda: measured(NO_ASSERT, LOCKED.replace('\tvmm', '\tcount = 1;\n\tvmm')) == 1
     and measured(NO_ASSERT, LOCKED.replace('\tvmm', '\tgrow(a);\n\tvmm')) == 1),
    ('VMM_REQUIRES on the prototype or on the definition passes',
     lambda: measured(NO_REQUIRES, PROTOTYPE + LOCKED) == 0
     and measured(NO_REQUIRES, LOCKED.replace(')\n', ')\n\tVMM_REQUIRES(vmm_state_lock_class) VMM_NO_ANALYSIS\n', 1)) == 0),
    ('a _locked function without VMM_REQUIRES counts', lambda: measured(NO_REQUIRES, LOCKED) == 1),
    ('the prototype of another file serves only a function that is not static',
     lambda: measures.take({'src/a.h': PROTOTYPE, 'src/a.c': LOCKED})[NO_REQUIRES][0] == 1
     and measures.take({'src/a.h': PROTOTYPE[7:], 'src/a.c': LOCKED[7:]})[NO_REQUIRES][0] == 0),
    ('a way to take the paging lock counts',
     lambda: measured(PAGING, 'void f(void)\n{\n\tvmm_os_mutex_lock(&of(a)->paging_lock);\n}\n') == 1
     and measured(PAGING, 'bool f(void)\n{\n\treturn vmm_os_mutex_trylock(\n\t\t&a->paging_lock);\n}\n') == 1),
    ('the functions that wrap it, and other locks, do not count',
     lambda: measured(PAGING, 'void vmm_paging_lock(void)\n{\n\tvmm_os_mutex_lock(&a->paging_lock);\n}\n', 'src/memory/state/paging_lock.c') == 0
     and measured(PAGING, 'void f(void)\n{\n\tvmm_os_mutex_lock(&a->lock);\n\tg(&a->paging_lock);\n}\n') == 0),
    ('asserts are counted for each 1000 lines', lambda: density(ONE_OF_20) == 20 and density(ONE_OF_20.replace('(a)', '_held(a)')) == 20),
    ('static asserts, asserts in comments and a density just below do not count',
     lambda: density('_Static_assert(a, "");\n/* vmm_assert(a) */\nvmm_assert_failed(a);\n') == 0 and density(ONE_OF_20 + 'a;\n') == 19),
    ('a branch on vmm_os_mutex_held counts',
     lambda: measured(BRANCHES, 'void f(void)\n{\n\tvmm_assert(g(a));\n\tif (!vmm_os_mutex_held(a))\n\t\tg();\n}\n') == 1),
    ('vmm_os_mutex_held in an assert does not count',
     lambda: measured(BRANCHES, 'void f(void)\n{\n\tvmm_assert(g(a) || vmm_os_mutex_held(a));\n}\n') == 0),
    ('a function named refuse counts, and one whose name says what it refuses does not',
     lambda: measured(BARE, 'static int refuse(int a)\n{\n\treturn a;\n}\n') == 1
     and measured(BARE, 'static int refuse_present(int a)\n{\n\treturn a;\n}\n') == 0),
    ('a finding before the return of a constant status counts',
     lambda: measured(REPORTS, 'int f(void)\n{\n\tvmm_finding(o, "A-01", 0, 0, "a; b");\n\treturn VMM_ACCESS_DENIED;\n}\n') == 1),
    ('a finding and a return of something else do not count',
     lambda: measured(REPORTS, 'int f(void)\n{\n\tvmm_finding(o, "A-01", 0, 0, "a");\n\tg();\n\treturn VMM_OK;\n}\n') == 0
     and measured(REPORTS, 'int f(void)\n{\n\treturn vmm_refuse_rule(o, VMM_ACCESS_DENIED, "A-01", 0, 0, "a");\n}\n') == 0),
    ('numbers as in their rows pass', lambda: compared(5, 5) == []),
    ('a number that rose above its row fails', lambda: fails(compared(6, 5), '6 now, the limit is 5')),
    ('a number that fell below its row fails where it is to rise', lambda: fails(compared(5, 4), '4 now, the limit is 5')),
    ('a row must be lowered when its number is better', lambda: fails(compared(4, 5), '4 now, lower its row')),
    ('a row must be raised when its number is better', lambda: fails(compared(5, 6), '6 now, raise its row')),
    ('a measure without row fails', lambda: fails(compared(5, 5, ['new']), 'no row')),
    ('a row without measure fails', lambda: fails(measures.compare(measures.read_rows(LIMITS), {'falls': (5, [])})[1][1], 'no such measure')),
    ('an update takes better numbers only',
     lambda: measures.updated(LIMITS, {'falls': (4, []), 'rises': (4, [])}) == LIMITS.replace('falls\t5', 'falls\t4')),
    ('a measure that could not be taken neither passes an update nor fails',
     lambda: measures.updated(LIMITS, {'falls': (None, [])}) == LIMITS
     and measures.problems_of(measures.read_rows(LIMITS)[0], None, []) == []),
    ('each test of wddm2 counts, and an assignment or a comment does not',
     lambda: measured(WDDM2, 'int f(void)\n{\n\treturn a->wddm2 || (b->wddm2 == c);\n}\n') == 2
     and measured(WDDM2, 'int f(void)\n{\n\ta->wddm2 = b; /* a->wddm2 */\n}\n') == 0),
    ('lines of the doors count, and those of their headers and of other modules do not',
     lambda: measured(DOORS, 'a;\nb;\n', 'src/doors/kmt/a.c') == 2 and measured(DOORS, 'a;\n', 'src/doors/kmt/a.h') == 0
     and measured(DOORS, 'a;\n', 'src/host/a.c') == 0),
    ('the largest cycle is that with the most members',
     lambda: structure.largest_cycle(CYCLE) == ['a', 'b', 'c'] and structure.largest_cycle({**CYCLE, 'c': set()}) == ['d', 'e']),
    ('a graph without a cycle has none, even if a file refers to itself',
     lambda: structure.largest_cycle({'a': {'b', 'a'}, 'b': set()}) == []),
    ('an object refers to the one that defines a symbol, not to static functions',
     lambda: structure.references(structure.parse_nm(NM)) == {'a.o': {'b.o'}, 'b.o': {'a.o'}, '': set()}
     and structure.references(structure.parse_nm(NM.replace('U h', 'U i').replace('w f', 'w i')))['b.o'] == set()),
    ('members that an expression names are used, also those of anonymous unions',
     lambda: structure.members_of(DUMP.split('\n'), 's') == ({'part', 'used', 'unused'}, {'part', 'used'})),
    ('a program with the static library is linked again, one with the shared library or not built by default is not',
     lambda: structure.linked_again(structure.read_edges(NINJA), 'src/libm.a.p/a.c.o') == ['libs.so', 'x']),
    ('a header affects the modules whose sources include it',
     lambda: NoPrograms().sources('src/memory/memory.h') == {'src/memory/lru.c', 'src/sched/render.c'}
     and NoPrograms().sources('src/memory/lru.c') == {'src/memory/lru.c'}),
    ('a file of base, or one of no known place, affects every test',
     lambda: affected('src/base/list.h') == affected('include/vidmm/vidmm.h') == affected('meson.build') == ['memory_lock', 'served_memory_lock']),
    ('a file of the server affects what runs through it, a text affects nothing',
     lambda: affected('src/serve/step.c') == ['served_memory_lock'] and affected('docs/locking.md') == affected('README.md') == []
     and affected('src/memory/README.md') == []),
    ('a module may be split into folders, and the doors are two modules',
     lambda: changed.module_of('src/memory/store/arena.c') == 'memory' and changed.module_of('src/doors/kmt/call.c') == 'kmt'
     and changed.module_of('drivers/softgpu/tile.c') is None),
    ('progress: a line for each failure and for each tenth',
     lambda: reported([' 1/20 vidmm:unit / range   OK   0.01s', ' 2/20 vidmm:unit / os   FAIL   0.38s   exit status 1', 'stderr:'])
     == 'gcc: FAIL os\ngcc: 2/20 tests, 1 failed, 0:00\n'),
    ('progress on a terminal: one line that is written again',
     lambda: reported([' 1/20 vidmm:unit / range   OK   0.01s'], True) == '\r\033[Kgcc: 1/20 tests, 0 failed, 0:00  range'),
    ('hangs: a program of the folder is reported with its threads, if it is old enough',
     lambda: found_by_age(0) and not found_by_age(3600)),
    ('an id belongs to the function whose body or comment has it',
     lambda: indexed({'src/a.c': INDEXED}) == {
         'LOCK-03': [('src/a.c', 'refuse()')], 'LOCK-04': [('src/a.c', 'refuse()')], 'LOCK-05': [('src/a.c', 'accept()')],
         'LOCK-06': [('src/a.c', 'table')], 'LOCK-07': [('src/a.c', 'LIMIT')],
         'LOCK-01': [('src/a.c', None)], 'LOCK-02': [('src/a.c', None)]}),
    ('an id above a prototype belongs to the definition',
     lambda: indexed({'src/a.h': '/* LOCK-01 */\nint f(void);\n', 'src/b/b.c': 'int f(void)\n{\n}\n'})
     == {'LOCK-01': [('src/b/b.c', 'f()')]}),
    ('a build without log fails', lambda: suite.read_log('/nonexistent')[:2] == (0, 1)),
]


def main():
    print(f'1..{len(CASES)}')
    failed = 0
    for number, (name, holds) in enumerate(CASES, 1):
        try:
            good = bool(holds())
        except Exception as error:  # a checker that dies is a failed case, the others still run
            print(f'# {type(error).__name__}: {error}')
            good = False
        failed += not good
        print(f'{"ok" if good else "not ok"} {number} - {name}')
    return 1 if failed else 0


if __name__ == '__main__':
    sys.exit(main())
