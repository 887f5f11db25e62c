#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""test_explain_causes.py VIDMM STREAM: `vidmm explain` names the cause of failed calls. STREAM plays a situation and writes its
events; the causes are compared, not their wording. TAP."""
import json
import os
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'support'))
from tap_tests import main, test

VIDMM, STREAM = sys.argv[1:3]
REMOVED, EXCEPTION = 0xC00002B6, 0xC01E0200
INVALID, NO_MEMORY = 0xC000000D, 0xC0000017


def explain(path, *options):
    return subprocess.run([VIDMM, 'explain', path, *options], capture_output=True, text=True, check=False)


def play(situation, use):
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, 'events')
        subprocess.run([STREAM, situation, path], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        return use(path)


def failures(path):
    """The groups of all processes, with the number of the process."""
    done = explain(path, '--json')
    assert done.returncode == 0 and not done.stderr, done
    return [dict(group, process=process['process']) for process in json.loads(done.stdout) for group in process['failures']]


def lost(kind, **more):
    return dict(cause='lost', loss=dict(kind=kind, **more))


# What each situation must be explained with, group by group.
CAUSES = {
    'own_packet_hangs': [dict(lost('hang', process=1, node=0), status=REMOVED, count=4, calls={'lock': 3, 'allocate': 1}, process=1)],
    'packet_of_another_process_hangs': [dict(lost('hang', process=1, node=0), status=REMOVED, process=2)],
    # The root that came first is the first one.
    'hang_after_a_mistake': [dict(cause='rule', rule='LOCK-07', status=INVALID), dict(lost('hang', process=1), status=REMOVED)],
    'reset_fails': [dict(lost('hang', process=1, code=0x116, ddi='reset_from_timeout'), status=REMOVED)],
    'timeout_is_not_handled': [dict(lost('hang', process=1, code=0x116), status=REMOVED)],
    'submit_command_fails': [dict(lost('fatal', code=0x119, ddi='submit_command'), status=REMOVED)],
    'patch_fails': [dict(lost('fatal', code=0x119, ddi='patch'), status=REMOVED)],
    'build_paging_buffer_fails': [dict(lost('fatal', code=0x10E, ddi='build_paging_buffer'), status=REMOVED)],
    'wrong_fence_is_reported': [dict(lost('fatal', code=0x119), status=REMOVED)],
    'adapter_is_removed': [dict(lost('removal'), status=REMOVED)],
    'allocation_larger_than_its_segments': [dict(lost('out of memory', process=1), status=EXCEPTION)],
    'all_segments_are_full': [dict(lost('out of memory', process=1), status=EXCEPTION)],
    'create_allocation_fails': [dict(cause='miniport', ddi='create_allocation', ddi_status=NO_MEMORY, rule='ALF-33', status=NO_MEMORY)],
    'create_allocation_fails_undocumented': [dict(cause='rule', rule='ALF-33', ddi='create_allocation', ddi_status=REMOVED, status=INVALID)],
    'open_allocation_fails': [dict(cause='miniport', ddi='open_allocation', ddi_status=NO_MEMORY, rule='ALF-34', status=NO_MEMORY)],
    'create_context_fails': [dict(cause='miniport', ddi='create_context', ddi_status=NO_MEMORY, rule='DMA-01', status=NO_MEMORY)],
    'create_device_fails': [dict(cause='miniport', ddi='create_device', ddi_status=NO_MEMORY, rule='DMA-01', status=NO_MEMORY)],
    'render_fails': [dict(cause='miniport', ddi='render', ddi_status=INVALID, rule='DMA-31', status=INVALID)],
    'lock_with_opposite_flags': [dict(cause='rule', rule='LOCK-07', count=2, calls={'lock': 2}, status=INVALID)],
    'lock_of_an_unknown_handle': [dict(cause='rule', rule='LOCK-31')],
    'lock_of_a_destroyed_allocation': [dict(cause='rule', rule='LOCK-31')],
    'lock_of_an_invisible_allocation': [dict(cause='rule', rule='LOCK-23')],
    'unlock_without_a_lock': [dict(cause='rule', rule='LOCK-28')],
    'allocation_in_no_segment': [dict(cause='rule', rule='SEG-19')],
    'allocation_of_no_bytes': [dict(cause='rule', rule='SEG-11')],
    'offer_of_a_pinned_allocation': [dict(cause='rule', rule='OFR-08')],
    'reclaim_of_an_unknown_handle': [dict(cause='rule', rule='OFR-02')],
    'lock_with_reserved_flags': [dict(cause='rule', rule='LOCK-02')],
    'render_without_a_context': [dict(cause='rule', rule='DMA-09')],
    'context_on_a_missing_node': [dict(cause='rule', rule='SCH-07')],
    'lock_that_does_not_wait': [dict(cause='busy', calls={'lock': 1}, status=0xC01E0102)],
    'eviction_for_another_process': [],
}


def assert_holds(wanted, found):
    for key, value in wanted.items():
        assert key in found, (key, found)
        if isinstance(value, dict):
            assert_holds(value, found[key])
        else:
            assert found[key] == value, (key, value, found)


def of_situation(name):
    def check():
        found = play(name, lambda path: failures(path))
        assert len(found) == len(CAUSES[name]), found
        for wanted, group in zip(CAUSES[name], found):
            assert_holds(wanted, group)
    check.__name__ = 'cause_of_' + name
    return check


for situation in CAUSES:
    test(of_situation(situation))


@test
def every_situation_of_the_program_has_a_cause_here():
    names = subprocess.run([STREAM], capture_output=True, text=True, check=True).stdout.split()
    assert names == [name for name in names if name in CAUSES] and len(names) == len(CAUSES) >= 30, names


@test
def spl_12_an_allocation_larger_than_its_segments_is_named():
    text = play('allocation_larger_than_its_segments', failures)[0]['loss']['text']
    assert 'allocation 0x400000c0 has 1073741824 bytes, the largest of its segments 16777216' in text, text
    assert 'largest' not in play('all_segments_are_full', failures)[0]['loss']['text']


@test
def an_eviction_names_what_needed_the_space():
    def use(path):
        evicted = [line for line in explain(path, '--handle', '0x400000c0').stdout.splitlines() if 'pressure' in line]
        needing = explain(path, '--handle', '0x40000080', '2').stdout.splitlines()
        return evicted, needing
    evicted, needing = play('eviction_for_another_process', use)
    assert len(evicted) == 1 and '10.0 MiB were needed for 0x40000080 of process 2' in evicted[0], evicted
    assert any('0x400000c0 is evicted for it' in line for line in needing), needing
    assert any('from system memory to segment 1' in line for line in needing), needing
    # The other process's allocation has the same handle.
    assert not any('64.0 KiB' in line for line in needing), needing


SEGMENT = '#1 0ns p0 segment/1 bytes=1048576 base=0x1000000 flags=0x0 adapter=0x1'
PLACED = '#%d %dns p%d residency/%s 0x%08x bytes=%d from=%d to=%d offset=0x%x'
EXTENT = '#%d %dns p1 extent 0x%08x bytes=%d at=0x%x segment=1 offset=0x%x'


def query(lines, *options):
    return subprocess.run([VIDMM, 'explain', '-', *options], input=''.join(line + '\n' for line in lines), capture_output=True, text=True,
                          check=False)


@test
def an_address_names_what_was_placed_there():
    lines = [SEGMENT, PLACED % (2, 1000, 1, 'referenced', 0x40, 4096, 0, 1, 0x2000), PLACED % (3, 2000, 2, 'referenced', 0x40, 4096, 0, 1, 0x3000),
             PLACED % (4, 3000, 1, 'pressure', 0x40, 4096, 1, 0, 0), PLACED % (5, 4000, 2, 'referenced', 0x80, 65536, 0, 1, 0)]
    out = query(lines, '--address', '0x1002fff').stdout.splitlines()
    assert len(out) == 3, out
    assert 'event 2' in out[0] and 'process 1: 0x00000040 (4.00 KiB) is placed here' in out[0], out
    assert 'event 4' in out[1] and '0x00000040 leaves for system memory: pressure' in out[1], out
    assert 'event 5' in out[2] and 'process 2: 0x00000080' in out[2], out
    assert len(query(lines, '--address', '0x1003000').stdout.splitlines()) == 2
    missing = query(lines, '--address', '0x1fffff0')
    assert missing.returncode == 3 and 'no event is about 0x1fffff0' in missing.stderr, missing


@test
def an_address_in_an_extent_is_found():
    lines = [SEGMENT, PLACED % (2, 1000, 1, 'referenced', 0x40, 8192, 0, 1, 0x2000), EXTENT % (3, 1000, 0x40, 4096, 0, 0x2000),
             EXTENT % (4, 1000, 0x40, 4096, 4096, 0x9000), PLACED % (5, 2000, 1, 'pressure', 0x40, 8192, 1, 0, 0)]
    for address, count in (('0x1002000', 2), ('0x1009fff', 2), ('0x1003000', 0), ('0x100a000', 0)):
        assert len(query(lines, '--address', address).stdout.splitlines()) == count, address


@test
def wrong_queries_are_refused():
    for options in (('--handle', '0'), ('--handle', 'x'), ('--handle', '0x100000000'), ('--address', '-1'), ('--address', ''),
                    ('--handle', '1', '--address', '1'), ('--bogus',), ('0',), ('banana',)):
        done = query([SEGMENT], *options)
        assert done.returncode == 2 and 'vidmm explain: ' in done.stderr, (options, done)


@test
def a_name_that_is_no_utf_8_hides_no_process():
    lines = b'#1 0ns p1 process/opened : \xff\xfename\n#2 9ns p1 door/lock 0x40 status=0xc000000d elements=1 ns=0 flags=0x0\n'
    done = subprocess.run([VIDMM, 'explain', '-', '--json'], input=lines, capture_output=True, check=True)
    assert json.loads(done.stdout)[0]['name'] == '??name', done.stdout


@test
def a_loss_before_the_stream_is_said_to_be_unknown():
    door = '#9 20ns p1 door/lock 0x40000040 status=0xc00002b6 elements=1 ns=0 flags=0x0'
    lines = ['#8 10ns p1 recovery/device_lost 0x40000000 code=0x3 node=0 fence=1 ns=0', door]
    group = json.loads(query(lines, '--json').stdout)[0]['failures'][0]
    assert group['cause'] == 'lost' and group['loss']['kind'] == 'unknown', group
    group = json.loads(query(lines[1:], '--json').stdout)[0]['failures'][0]
    assert group['cause'] == 'unknown', group
    assert 'no event says why' in query(lines[1:]).stdout


@test
def a_page_fault_and_a_mark_are_causes_of_a_loss():
    fault = ['#1 10ns p1 reason 0x40000000 status=0xc01e0200 : TDR-19: page fault at 0x1000 on fence 0x00000001 of context 0x40000040 (node 0)',
             '#2 10ns p1 recovery/device_lost 0x40000000 code=0x7 node=0 fence=1 ns=0',
             '#3 20ns p1 door/lock 0x40000080 status=0xc01e0200 elements=1 ns=0 flags=0x0']
    group = json.loads(query(fault, '--json').stdout)[0]['failures'][0]
    assert group['loss']['kind'] == 'page fault' and group['loss']['event'] == 1, group
    mark = ['#1 10ns p1 reason 0x40000000 status=0xc00002b6 : TDRS-15: device 0x40000000 is marked as in error (reason 0x1): it is lost',
            '#2 20ns p1 door/lock 0x40000080 status=0xc00002b6 elements=1 ns=0 flags=0x0']
    group = json.loads(query(mark, '--json').stdout)[0]['failures'][0]
    assert group['loss']['kind'] == 'marked' and group['loss']['event'] == 1, group


if __name__ == '__main__':
    sys.exit(main())
