#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""test_planted.py VIDMM FILE.so...: each planted fault of a miniport is named by its rule, and a correct
miniport by none, with and without --verify-driver. TAP."""
import json
import os
import re
import shutil
import signal
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'support'))
from planted import FAULT
from tap_tests import main, test

VIDMM = os.path.abspath(sys.argv[1])
FILE = {os.path.basename(path)[:-len('.so')]: os.path.abspath(path) for path in sys.argv[2:]}
ROOT = os.environ['VIDMM_SOURCE_ROOT']
EVERY = os.path.join(ROOT, 'tests/replay/data/every-op.trace')
SANITIZED = os.environ['VIDMM_BUILD_NUMBER'] in ('2', '3')  # tests/meson.build
VERIFY = ('--verify-driver',)
BACK_ENDS = ('sim', 'linux')


def run(verb, *args):
    return subprocess.run([VIDMM, verb, *args], capture_output=True, text=True)


def caps(fault, *args):
    return run('caps', '--driver', FILE['planted_driver'], '--bar', '16M', '--set', f'Fault={FAULT[fault]}', '--json', *args)


def replay(fault, *args):
    return run('replay', '--driver', FILE['planted_driver'], '--commands', FILE['tinykmd_commands'], '--vram', '1M',
               '--set', f'Fault={FAULT[fault]}', '--json', *args, EVERY)


def expect(done, rules, text=''):
    """The findings have exactly these rules; one of them has the text."""
    assert done.returncode == (1 if rules else 0), (done.args, done.returncode, done.stdout, done.stderr)
    findings = json.loads(done.stdout)['findings']
    assert {finding['rule'] for finding in findings} == set(rules), (done.args, findings)
    assert not rules or any(text in finding['text'] for finding in findings), (text, findings)


# ---- no fault ----

@test
def a_correct_driver_gives_no_finding():
    for more in ((), VERIFY):
        for back_end in BACK_ENDS:
            expect(caps('NOTHING', '--backend', back_end, *more), ())
            expect(replay('NOTHING', '--backend', back_end, '--verify', 'full', *more), ())
            for model in ('wddm1', 'wddm2'):
                expect(run('caps', '--set', f'Model={model}', '--backend', back_end, '--json', *more), ())
                expect(run('replay', '--driver', FILE['softgpu_driver'], '--set', f'Model={model}', '--commands',
                           FILE['softgpu_commands'], '--vram', '1M', '--verify', 'full', '--backend', back_end, '--json', *more, EVERY), ())


@test
def the_option_is_a_registry_value():
    expect(caps('LOCK_ORDER', '--set', 'VidmmVerifyDriver=1'), ('NT-22',))
    expect(caps('LOCK_ORDER', '--set', 'VidmmVerifyDriver=0'), ())
    assert run('caps', '--set', 'VidmmVerifyDriver=2').returncode == 1
    done = run('replay', '--verify-driver', EVERY)
    assert done.returncode == 2 and 'need --driver' in done.stderr, done.stderr


# ---- pool ----

@test
def nt_05_a_block_that_is_written_out_of_bounds_is_found_when_it_is_freed():
    for more in ((), VERIFY):
        expect(caps('POOL_OVERFLOW', *more), ('NT-05',), 'a block of tag "Plnt", 40 bytes, was written out of bounds')
    expect(caps('POOL_FAR'), ('NT-05',), '40 bytes, was written out of bounds')


@test
def nt_05_a_wrong_tag_and_a_second_free_are_found():
    for more in ((), VERIFY):
        expect(caps('POOL_TAG_WRONG', *more), ('NT-05',), 'a block of tag "Plnt" is freed as "Qlnt"')
        expect(caps('POOL_TWICE', *more), ('NT-05',), 'was freed before')


@test
def nt_05_an_access_behind_or_after_a_block_faults_at_the_instruction():
    if SANITIZED:
        return 'not built with sanitizers, which report the fault'
    for back_end in BACK_ENDS:
        for fault, what, function in (('POOL_FAR', '8 bytes behind the end of a pool block of 40 bytes', 'overflow_pool'),
                                      ('POOL_FREED', 'inside a freed pool block of 64 bytes', 'read_freed_pool')):
            done = caps(fault, '--backend', back_end, *VERIFY)
            assert done.returncode == -signal.SIGSEGV, (fault, done.returncode, done.stdout)
            assert 'the driver crashed in DxgkDdiStartDevice: SIGSEGV' in done.stderr, done.stderr
            assert f'{what} with tag "Plnt", allocated in DxgkDdiStartDevice (NT-05)' in done.stderr, done.stderr
            if shutil.which('addr2line'):
                assert re.search(f'vidmm: in {function} at .*planted_driver.c:[0-9]+', done.stderr), done.stderr
                assert re.search(f'vidmm: allocated by {function} at ', done.stderr), done.stderr
    return None


@test
def nt_06_what_a_driver_leaves_behind_is_found_at_the_end():
    for more in ((), VERIFY):
        place = ', allocated in DxgkDdiStartDevice' if more else ''
        for back_end in BACK_ENDS:
            expect(caps('POOL_LEAK', '--backend', back_end, *more), ('NT-06',), 'tag "Plnt": 1 blocks, 96 bytes never freed' + place)
        expect(caps('MDL_LEAK', *more), ('NT-06',), 'tag "Mdl ": 1 blocks')
        expect(caps('MAPPING_LEAK', *more), ('NT-06',), 'a mapping of 16777216 bytes was never unmapped')
        expect(caps('THREAD_LEAK', *more), ('NT-06',), 'thread 1 still runs')
    expect(replay('ALLOCATION_LEAK'), ('NT-06',), 'never freed')
    expect(replay('ALLOCATION_LEAK', *VERIFY), ('NT-06',), 'never freed, allocated in DxgkDdiCreateAllocation')


# ---- levels, stack, locks, buffers ----

@test
def nt_01_a_service_above_its_level_is_found():
    for more in ((), VERIFY):
        expect(caps('SERVICE_LEVEL', *more), ('NT-01',), 'ZwOpenKey called at IRQL 2, its limit is 0')
        expect(caps('PAGED_LEVEL', *more), ('NT-01',), 'pageable pageable entered at IRQL 2')
        expect(caps('PAGED_POOL_LEVEL', *more), ('NT-01',), 'ExAllocatePool2 called at IRQL 2, its limit is 1')


@test
def nt_21_a_routine_that_uses_too_much_stack_is_found():
    if SANITIZED:
        return 'not measured with sanitizers'
    for back_end in BACK_ENDS:
        done = caps('DEEP_STACK', '--backend', back_end, *VERIFY)
        expect(done, ('NT-21',), 'DxgkDdiStartDevice used ')
        used = int(re.search('used ([0-9]+) bytes of stack', done.stdout).group(1))
        # 30,000 in an array, of which an unoptimized program may leave the last ones unwritten
        assert 29500 <= used < 36000, used
    expect(caps('DEEP_STACK'), ())
    return None


@test
def nt_22_spin_locks_in_both_orders_are_found():
    for back_end in BACK_ENDS:
        expect(caps('LOCK_ORDER', '--backend', back_end, *VERIFY), ('NT-22',), 'two threads can deadlock')
    if shutil.which('addr2line'):
        done = caps('LOCK_ORDER', *VERIFY)
        assert len(re.findall(r'taken at \w+ at planted_driver.c:[0-9]+', done.stdout)) == 4, done.stdout
    expect(caps('LOCK_ORDER'), ())


@test
def nt_23_a_write_behind_a_buffer_is_found():
    for more in ((), VERIFY):
        expect(caps('CAPS_OVERFLOW', *more), ('PNP-01',), 'byte 544 was written')
    expect(caps('SEGMENT_OVERFLOW', *VERIFY), ('NT-23',), 'of type 5 wrote 1 bytes behind the end of pOutputData, which has 32')
    expect(replay('PRIVATE_OVERFLOW', *VERIFY), ('NT-23',), 'DxgkDdiRender wrote 1 bytes behind the end of pDmaBufferPrivateData')
    expect(replay('PATCH_OVERFLOW', *VERIFY), ('NT-23',), 'DxgkDdiRender wrote 1 bytes behind the end of pPatchLocationListOut')


@test
def nt_23_a_write_behind_a_dma_buffer_or_its_private_data_is_found():
    for fault, text in (('DMA_OVERFLOW', 'DxgkDdiRender wrote 3 bytes behind the end of pDmaBuffer, which had '),
                        ('PATCH_DMA_OVERFLOW', 'DxgkDdiPatch wrote 1 bytes behind the end of pDmaBuffer, which had '),
                        ('PATCH_PRIVATE_OVERFLOW', 'DxgkDdiPatch wrote 1 bytes behind the end of pDmaBufferPrivateData, which had '),
                        ('PAGING_OVERFLOW', 'DxgkDdiBuildPagingBuffer wrote 1 bytes behind the end of pDmaBuffer, which had '),
                        ('PAGING_PRIVATE_OVERFLOW', 'DxgkDdiBuildPagingBuffer wrote 8 bytes behind the end of pDmaBufferPrivateData, which had ')):
        for back_end in BACK_ENDS:
            expect(replay(fault, '--backend', back_end, *VERIFY), ('NT-23',), text)
    for more in ((), VERIFY):
        expect(replay('DMA_EXACT', *more), ())


@test
def nt_12_an_mdl_of_the_caller_is_not_freed():
    for more in ((), VERIFY):
        expect(replay('MDL_FREED', *more), ('NT-12',), 'an MDL that a DDI got belongs to its caller')


@test
def nt_25_an_mdl_is_not_used_after_its_pages_or_behind_its_end():
    if SANITIZED:
        return 'not built with sanitizers, which report the fault'
    for back_end in BACK_ENDS:
        for fault, routine, text in (('MDL_KEPT', 'DxgkDdiStopDevice', r'inside an MDL of [0-9]+ bytes, whose pages were released, '),
                                     ('MDL_BEHIND', 'DxgkDdiBuildPagingBuffer', r'0 bytes behind the end of an MDL of [0-9]+ bytes ')):
            done = replay(fault, '--backend', back_end, *VERIFY)
            assert done.returncode == -signal.SIGSEGV, (fault, done.returncode, done.stdout, done.stderr)
            assert f'the driver crashed in {routine}: SIGSEGV' in done.stderr, done.stderr
            assert re.search(f'vidmm: {text}that a DDI got \\(NT-25\\)', done.stderr), done.stderr
    return None


# ---- start ----

@test
def pnp_01_an_entry_that_is_null_is_found():
    for more in ((), VERIFY):
        expect(caps('NULL_ENTRY', *more), ('PNP-01',), 'has no DxgkDdiPatch')


@test
def q_440_a_hang_in_each_step_of_the_start_names_the_step():
    for fault, routine in (('HANG_DRIVER_ENTRY', 'DriverEntry'), ('HANG_ADD_DEVICE', 'DxgkDdiAddDevice'),
                           ('HANG_START_DEVICE', 'DxgkDdiStartDevice'),
                           ('HANG_DRIVER_CAPS', 'DxgkDdiQueryAdapterInfo of type 1'),
                           ('HANG_SEGMENTS', 'DxgkDdiQueryAdapterInfo of type 5')):
        for more in ((), VERIFY):
            expect(caps(fault, *more), ('Q-440',), f'deadlock: the miniport waits in {routine}, KeWaitForSingleObject')
    done = run('caps', '--quiet', '--driver', FILE['planted_driver'], '--set', f'Fault={FAULT["HANG_ADD_DEVICE"]}')
    assert 'the driver hangs' in done.stdout and 'refused' not in done.stdout, done.stdout


@test
def q_440_a_hang_while_a_recording_is_played_names_the_routine():
    for fault, routine in (('HANG_CREATE_ALLOCATION', 'DxgkDdiCreateAllocation'), ('HANG_RENDER', 'DxgkDdiRender'),
                           ('HANG_START_DEVICE', 'DxgkDdiStartDevice')):
        text = f'Q-440: deadlock: the miniport waits in {routine}, KeWaitForSingleObject, and no thread can wake it'
        done = replay(fault)
        assert done.returncode != 0 and text in done.stderr, (done.returncode, done.stdout, done.stderr)
        if fault != 'HANG_START_DEVICE':  # without an adapter there is no report
            expect(done, ('Q-440',), text)


@test
def q_440_a_hang_in_each_query_names_its_type():
    query, wait, newest = 5, 2, 13  # enum vidmm_ddi; scripted_driver.c
    asked = []
    for kind in range(1, 48):
        done = run('caps', '--driver', FILE['scripted_driver'], '--bar', '16M', '--json', '--set', f'Break={newest}',
                   '--set', f'StickAt={query}', '--set', f'StickType={kind}', '--set', f'StickHow={wait}')
        texts = [finding['text'] for finding in json.loads(done.stdout)['findings'] if finding['rule'] == 'Q-440']
        if texts:
            assert texts == [f'deadlock: the miniport waits in DxgkDdiQueryAdapterInfo of type {kind}, KeWaitForSingleObject, '
                             'and no thread can wake it'], texts
            asked.append(kind)
    assert asked == [1, 11, 15], asked  # DRIVERCAPS, PHYSICALADAPTERCAPS, QUERYSEGMENT4


@test
def nt_09_a_bug_check_ends_the_program_with_its_code():
    check = 'bug check 0xbadc0de (0x1, 0x2, 0x3, 0x4) (NT-09)'
    for back_end in BACK_ENDS:
        done = caps('BUG_CHECK', '--backend', back_end)
        assert done.returncode == -signal.SIGABRT and done.stdout == '', (done.returncode, done.stdout, done.stderr)
        assert f'vidmm: the driver crashed in DxgkDdiStartDevice: {check}\n' in done.stderr, done.stderr
        done = replay('BUG_CHECK_RENDER', '--backend', back_end)
        assert done.returncode == -signal.SIGABRT, (done.returncode, done.stdout, done.stderr)
        assert f'vidmm: the driver crashed in DxgkDdiRender: {check}\n' in done.stderr, done.stderr
    if shutil.which('addr2line'):
        assert re.search(r'vidmm: called by check_bug at .*planted_driver.c:[0-9]+', done.stderr), done.stderr


@test
def sub_12_a_fence_at_the_start_is_fatal():
    expect(caps('FENCE_AT_START'), ('SUB-12', None), 'bug check 0x119')


# ---- with a client ----

@test
def alf_33_an_undocumented_status_is_found():
    for more in ((), VERIFY):
        expect(replay('STATUS_UNDOCUMENTED', *more), ('ALF-33',), 'returned 0xc0000001, which is not a status that it documents')


@test
def q_430_a_fence_that_is_reported_again_or_backwards_is_found():
    for back_end in BACK_ENDS:
        expect(replay('FENCE_TWICE', '--backend', back_end, *VERIFY), ('Q-430',), 'as complete again')
        expect(replay('FENCE_BACK', '--backend', back_end, *VERIFY), ('Q-430',), 'which goes backwards')
    expect(replay('FENCE_TWICE'), ())  # ignored (SUB-12)
    expect(replay('FENCE_BACK'), ())


@test
def sub_12_a_fence_that_was_never_submitted_is_found():
    expect(replay('FENCE_UNKNOWN'), ('SUB-12', 'FATAL'), 'which is not with the hardware')


@test
def tdr_07_a_completion_that_is_never_reported_resets_the_adapter():
    for more in ((), VERIFY):
        done = replay('FENCE_NEVER', *more)
        assert done.returncode == 1 and 'TDR-07: the adapter is reset' in done.stderr, (done.returncode, done.stderr)


@test
def q_411_a_packet_that_is_preempted_for_ever_is_found():
    for more in ((), VERIFY):
        expect(replay('PREEMPTED_FOR_EVER', *more), ('Q-411',), 'was overdue and preempted 64 times')


@test
def dma_01_the_report_of_a_replay_has_the_device_that_was_refused():
    for back_end in BACK_ENDS:
        done = replay('DEVICE_REFUSED', '--backend', back_end)
        expect(done, ('DMA-01',), 'STATUS_UNSUCCESSFUL' if 'STATUS_UNSUCCESSFUL' in done.stdout else '')
        report = json.loads(done.stdout)
        assert report['refusal']['of'] == 'device' and report['refusal']['program'] == 'every-op', report
        assert report['status'] == 'findings' and report['events'] == 0 and len(report['traces']) == 1, report
        assert 'every-op: the device was refused with status 0xC' in done.stderr, done.stderr


@test
def a_device_for_which_memory_lacks_ends_a_replay_with_4():
    driver = ('--driver', FILE['planted_driver'], '--commands', FILE['tinykmd_commands'], '--set', f'Fault={FAULT["DEVICE_NO_MEMORY"]}')
    done = run('replay', *driver, '--vram', '1M', '--json', EVERY, EVERY)
    assert done.returncode == 4, (done.returncode, done.stderr)
    report = json.loads(done.stdout)
    assert report['refusal']['status'] == '0xC0000017' and report['refusal']['status_name'] == 'STATUS_NO_MEMORY', report
    assert (report['status'], report['exit_code'], len(report['traces'])) == ('environment', 4, 2), report
    text = run('replay', *driver, '--vram', '1M', EVERY, EVERY)
    assert (text.returncode, text.stdout) == (4, '') and 'the device was refused with status 0xC0000017' in text.stderr, text


if __name__ == '__main__':
    sys.exit(main())
