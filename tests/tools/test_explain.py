#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""test_explain.py VIDMM TRACE STREAM: how `vidmm explain` reads event streams: of a replay, of contexts that wait for each other, and of
lines written here. TAP."""
import os
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'support'))
from tap_tests import main, test

VIDMM, TRACE, STREAM = sys.argv[1:4]
DOOR = '#%d %dns p%d door/%s 0x40000040 status=0x%08x elements=1 ns=%d flags=0x%x'
SYNC = '#%d %dns p%d sync/%s 0x%08x object=%d value=%d now=0 handle=0x%08x'


def explain(lines, *more):
    done = subprocess.run([VIDMM, 'explain', '-', *more], input=''.join(line + '\n' for line in lines),
                          capture_output=True, text=True)
    return done.returncode, done.stdout, done.stderr


def good(lines, *wanted, unwanted=()):
    code, out, err = explain(lines)
    assert code == 0 and not err, (code, err)
    for text in wanted:
        assert text in out, (text, out)
    for text in unwanted:
        assert text not in out, (text, out)
    return out


@test
def a_refused_lock_names_the_work_it_would_have_waited_for():
    good(['#1 1000ns p2 submit/1 0x40000140 references=7 patches=9 bytes=64 number=12',
          '#2 5000ns p1 wait/declined 0x40000040 ns=0 node=1 number=12',
          DOOR % (3, 5000, 1, 'lock', 0xC01E0102, 0, 4)],
         'process 1: 1 calls, 1 failed', 'STATUS_GRAPHICS_ALLOCATION_BUSY',
         'submission 12 on node 1 (process 2, context 0x40000140, 7 references, accepted 4.00 us before)')


@test
def node_0_is_a_node_too():
    good(['#1 0ns p1 submit 0x40000140 references=3 patches=0 bytes=64 number=1',
          '#2 2000ns p1 wait/lock ns=2000 node=0 number=1', DOOR % (3, 2000, 1, 'lock', 0, 2000, 0)],
         'waited 2.00 us for submission 1 on node 0 (process 1')


@test
def a_wait_for_unknown_work_is_reported_as_such():
    good(['#5 2000ns p1 wait/lock ns=2000 node=2 number=9', DOOR % (6, 2000, 1, 'lock', 0, 2000, 0)],
         'packet 9 of node 2 (a paging packet, one of a hardware queue, or one whose submission is not in the known part of the stream)')
    # The stream begins with the first event and has submit events: none of node 2, which is that of paging.
    submit = '#1 0ns p1 submit/1 0x40000140 references=7 patches=9 bytes=64 number=12'
    wait = ['#4 2000ns p1 wait/lock ns=2000 node=2 number=9', DOOR % (5, 2000, 1, 'lock', 0, 2000, 0)]
    good([submit] + wait, 'waited 2.00 us for paging packet 9\n')
    good([submit, '#2 2000ns p1 wait/lock ns=2000 node=1 number=9', DOOR % (3, 2000, 1, 'lock', 0, 2000, 0)], 'packet 9 of node 1 (a paging packet, one of')
    # A subscriber may have wanted no submit events.
    good(['#1 0ns p0 segment/1 bytes=4096 base=0x0 flags=0x0 adapter=0x1'] + wait, 'packet 9 of node 2 (a paging packet, one of', unwanted=['for paging packet'])
    # A packet of a submission may be on the node before its submit event.
    good([submit, '#2 0ns p2 queue/render 0x40000140 fence=7 node=2 start=0 end=8'] + wait, 'packet 9 of node 2 (a paging packet, one of')


@test
def a_wait_is_not_said_to_be_for_paging_if_there_are_hardware_queues():
    # They have the timeline after that of paging, and their work has no submit events.
    lines = ['#1 0ns p1 submit/1 0x40000140 references=7 patches=9 bytes=64 number=12', None,
             '#3 2000ns p1 wait/lock ns=2000 node=3 number=9', DOOR % (4, 2000, 1, 'lock', 0, 2000, 0)]
    for event in ('#2 0ns p2 door/hw_queue 0x40000200 status=0x00000000 elements=1 ns=0 flags=0x0',
                  '#2 0ns p2 fence 0x40000200 fence=1 node=0 retired=1 complete=0'):
        lines[1] = event
        good(lines, 'packet 9 of node 3 (a paging packet, one of a hardware queue, or', unwanted=['for paging packet'])


@test
def packets_of_hardware_queues_do_not_hide_those_of_the_node():
    # A paging packet precedes one of a hardware queue, which completes first, by its own fence.
    lines = ['#1 0ns p1 queue/paging fence=5 node=0 start=0 end=8', '#2 0ns p2 queue/render 0x40000200 fence=5 node=0 start=0 end=8',
             '#3 1000ns p2 fence 0x40000200 fence=5 node=0 retired=1 complete=0', '#4 2000ns p0 fence fence=5 node=0 retired=1 complete=0']
    good(lines + [DOOR % (5, 8000, 1, 'lock', 0, 8000, 4)], 'paging packets were on the GPU for 2.00 us of the 8.00 us\n')
    # A fence of the node does not complete packets of the queue, which is known now.
    lines += ['#5 2000ns p1 queue/paging fence=6 node=0 start=0 end=8', '#6 2000ns p2 queue/render 0x40000200 fence=6 node=0 start=0 end=8',
              '#7 3000ns p1 queue/paging fence=7 node=0 start=0 end=8', '#8 4000ns p0 fence fence=6 node=0 retired=1 complete=0',
              '#9 5000ns p0 fence fence=7 node=0 retired=1 complete=0']
    good(lines + [DOOR % (10, 8000, 1, 'lock', 0, 6000, 4)], 'paging packets were on the GPU for 3.00 us of the 6.00 us\n')


@test
def a_wait_without_a_process_that_takes_all_of_the_call_is_its_wait():
    wait = '#5 %dns p0 wait/%s ns=%d node=0 number=0'
    good([wait % (2000, 'destroy', 900), DOOR % (6, 2000, 1, 'destroy_context', 0, 900, 0)],
         'a wait without a process took all of the call: 900 ns for the GPU to complete its use of what the call destroys\n', unwanted=['meanwhile'])
    # Another wait may be for the destruction by another client. What precedes the call does not count.
    for time, ns in (2000, 899), (1999, 900), (2000, 5000):
        good([wait % (time, 'destroy', ns), DOOR % (6, 2000, 1, 'destroy_context', 0, 900, 0)],
             f'meanwhile threads without a process waited {min(ns, time - 1100)} ns for the GPU to complete its use of destroyed objects\n',
             unwanted=['a wait without'])
    good([wait % (2000, 'space', 900), DOOR % (6, 2000, 1, 'lock', 0, 900, 0)], 'meanwhile threads without a process waited 900 ns for an allocation',
         unwanted=['a wait without'])
    # It does not show that the lock itself waited.
    good([wait % (2000, 'destroy', 900), DOOR % (6, 2000, 1, 'lock', 0, 900, 0x82)], 'not renamed: the GPU had completed its use of the current instance')


@test
def events_of_other_processes_and_earlier_ones_are_not_the_reason():
    good(['#1 10ns p1 wait/lock ns=10 node=0 number=1', DOOR % (2, 10, 1, 'lock', 0, 10, 0),
          '#3 20ns p2 wait/lock ns=7 node=0 number=3', DOOR % (4, 20, 1, 'lock', 0xC000000D, 0, 3)],
         'no event of this call gives a reason', unwanted=['number 3', 'waited 7'])


@test
def a_finding_is_the_reason():
    good(['#1 20ns p1 finding 0x40000040 : LOCK-07: ReadOnly and WriteOnly',
          DOOR % (2, 20, 1, 'lock', 0xC000000D, 0, 3)],
         'STATUS_INVALID_PARAMETER', '- LOCK-07: ReadOnly and WriteOnly')


@test
def q_160_the_reason_of_a_failure_of_the_miniport_is_told():
    good(['#1 20ns p0 reason status=0xc000000d : ALF-33: the miniport failed DxgkDdiCreateAllocation with 0xc000000d',
          DOOR % (2, 20, 1, 'allocate', 0xC000000D, 0, 1)],
         'STATUS_INVALID_PARAMETER', '- ALF-33: the miniport failed DxgkDdiCreateAllocation with 0xc000000d')


@test
def a_discard_says_why_it_was_not_renamed():
    good([DOOR % (1, 20, 1, 'lock', 0, 5, 0x82)], 'not renamed: the GPU had completed its use of the current instance')
    good(['#1 20ns p1 wait/lock ns=5 node=0 number=1', DOOR % (2, 20, 1, 'lock', 0, 5, 0x82)],
         'not renamed: the maximum number of instances was in use')
    good(['#1 20ns p1 rename/reused 0x40000080 old=0x40000040 instances=3 bytes=4096',
          DOOR % (2, 20, 1, 'lock', 0, 5, 0x82)],
         'renamed to 0x40000080, a reused instance, 3 instances alive', unwanted=['not renamed'])


@test
def a_range_names_its_previous_owner():
    good(['#1 20ns p2 range/reclaimed 0x80000040 range=3 for=0x40000040',
          '#2 20ns p2 range/reclaimed 0x80000080 range=4 for=0x400000c0',
          '#3 20ns p1 range/refused 0x40000040 range=5 for=0xc01e0116', DOOR % (4, 20, 1, 'lock', 0, 5, 0x40)],
         'swizzling range 3 was taken from 0x80000040 of process 2', 'no swizzling range 5: the miniport answered',
         unwanted=['range 4'])


@test
def moves_are_counted_and_those_of_the_allocation_listed():
    moves = ['#%d 15ns p1 residency/pressure 0x%08x bytes=4096 from=1 to=0 offset=0x0' % (n, 0x50000000 + 64 * n)
             for n in range(1, 301)]
    out = good(moves + ['#301 16ns p1 residency/referenced 0x40000040 bytes=8192 from=0 to=1 offset=0x0',
                        DOOR % (302, 20, 1, 'lock', 0, 10, 0)],
               'the allocation (8.00 KiB) moved from system memory to segment 1: referenced',
               'meanwhile 300 other allocations of the process (1.17 MiB) moved from segment 1 to system memory: pressure')
    assert len(out.splitlines()) == 4, out


@test
def events_of_the_call_before_at_the_same_time_are_not_its_reason():
    good(['#1 10ns p1 wait/declined 0x40000080 ns=0 node=0 number=4', DOOR % (2, 10, 1, 'lock', 0xC01E0102, 0, 4),
          '#3 30ns p1 wait/lock ns=20 node=0 number=5', DOOR % (4, 30, 1, 'lock', 0, 20, 0)],
         'slowest call: lock 0x40000040: STATUS_SUCCESS after 20 ns (event 4, at 30 ns)\n    - waited 20 ns for packet 5 of node 0 ')
    # A wait that began before the call is another thread's.
    for end, ns in (30, 29), (20, 11):
        good([f'#1 {end}ns p1 wait/lock ns={ns} node=0 number=5', DOOR % (2, 30, 1, 'lock', 0, 20, 0)], 'no event of this call', unwanted=['waited'])


@test
def a_wait_says_when_its_submission_went_to_the_node():
    lines = ['#1 0ns p2 submit 0x40000140 references=7 patches=9 bytes=64 number=11', '#2 0ns p0 queue/paging fence=5 node=1 start=0 end=8',
             '#3 1000ns p2 submit 0x40000140 references=7 patches=9 bytes=64 number=12',
             '#4 3000ns p0 fence fence=5 node=1 retired=1 complete=0', '#5 3000ns p2 queue/render 0x40000140 fence=6 node=0 start=0 end=8',
             '#6 5000ns p2 queue/render 0x40000140 fence=7 node=0 start=0 end=8', '#7 6000ns p0 fence fence=6 node=0 retired=1 complete=11',
             '#8 9000ns p0 fence fence=7 node=0 retired=1 complete=12', '#9 9000ns p1 wait/lock ns=7000 node=0 number=12']
    good(lines + [DOOR % (10, 9000, 1, 'lock', 0, 8000, 4)],
         'waited 7.00 us for submission 12 on node 0 (process 2, context 0x40000140, 7 references, accepted 8.00 us before), which uses 0x40000040\n',
         '- the last packet of submission 12 went to node 0 3.00 us after the wait began, behind other packets; the DPC read its fence (7) 4.00 us later\n',
         'paging packets were on the GPU for 2.00 us of the 8.00 us\n')
    # Discard: the wait is for another instance.
    good(lines + [DOOR % (10, 9000, 1, 'lock', 0, 8000, 0x84)], 'for submission 12', unwanted=['which uses'])
    # The fence of two submissions does not say when the first of them went to the node.
    good(lines[:6] + ['#7 9000ns p0 fence fence=7 node=0 retired=2 complete=12', '#8 9000ns p1 wait/lock ns=7000 node=0 number=11',
                      DOOR % (9, 9000, 1, 'lock', 0, 8000, 4)], 'for submission 11', unwanted=['went to node', 'was on node'])
    # A fence that retires two packets may be that of the next submission of the context.
    good(lines[:7] + [lines[7].replace('retired=1', 'retired=2'), lines[8], DOOR % (10, 9000, 1, 'lock', 0, 8000, 4)], 'for submission 12',
         unwanted=['went to node', 'was on node'])


@test
def the_last_packet_of_a_split_dma_buffer_completes_its_submission():
    submit = '#%d 0ns p2 submit 0x40000140 references=7 patches=9 bytes=64 number=%d'
    queue, fence = '#%d %dns p2 queue/render 0x40000140 fence=%d node=0 start=0 end=8', '#%d %dns p0 fence fence=%d node=0 retired=1 complete=%d'
    lines = [submit % (1, 11), submit % (2, 12), queue % (3, 1000, 6), fence % (4, 2000, 6, 11), queue % (5, 2000, 7), fence % (6, 5000, 7, 11),
             queue % (7, 5000, 8), fence % (8, 9000, 8, 12)]
    text = 'the last packet of submission %d went to node 0 %s after the wait began; the DPC read its fence (%d) %s later\n'
    for number, *wanted in (11, '1.00 us', 6, '1.00 us'), (12, '5.00 us', 8, '4.00 us'):
        good(lines + [f'#9 9000ns p1 wait/lock ns=9000 node=0 number={number}', DOOR % (10, 9000, 1, 'lock', 0, 9000, 4)],
             text % (number, *wanted))
    # The last packet of submission 11 is unknown; the first part of submission 12 is not taken for it.
    lines[3] = lines[3].replace('retired=1', 'retired=2')
    good(lines + ['#9 9000ns p1 wait/lock ns=9000 node=0 number=11', DOOR % (10, 9000, 1, 'lock', 0, 9000, 4)], 'for submission 11',
         unwanted=['went to node', 'was on node'])


@test
def a_wait_for_a_fence_names_it_and_what_ended_it():
    lines = ['#1 0ns p2 submit 0x40000140 references=7 patches=9 bytes=64 number=12', '#2 0ns p2 queue/render 0x40000140 fence=7 node=0 start=0 end=8',
             '#3 9000ns p0 fence fence=7 node=0 retired=1 complete=12', SYNC % (4, 9000, 1, 'signaled', 0x400001c0, 3, 6, 0x40000180)]
    wait = ['#5 %dns p1 wait/fence 0x40000180 ns=7000 node=0 number=0', '#6 %dns p1 door/wait_from_cpu status=0x00000000 elements=1 ns=7000 flags=0x0']
    good(lines + [line % 9000 for line in wait], 'waited 7.00 us for fence 0x40000180 to be signaled\n',
         'context 0x400001c0 signaled it with 6 when the wait ended\n',
         'when the wait ended, the DPC had just read fence 7 of node 0, which completes submission 12 (process 2, context 0x40000140)\n',
         unwanted=['packet 0'])
    good(lines + [line % 9500 for line in wait], 'for fence 0x40000180 to be signaled', unwanted=['signaled it', 'had just'])


@test
def paging_and_evictions_name_the_allocations():
    lines = []
    for n in range(5):
        lines += ['#%d 15ns p2 paging/transfer 0x%08x bytes=%d from=1 to=0 address=0x0' % (n, 0x50000000 + 64 * n, 4096 * (n + 1)),
                  '#%d 15ns p2 residency/pressure 0x%08x bytes=%d from=1 to=0 offset=0x0' % (n, 0x50000000 + 64 * n, 4096 * (n + 1)),
                  '#%d 15ns p2 victim/capacity 0x%08x for=0x40000080 of=1 bytes=65536 residents=9' % (n, 0x50000000 + 64 * n)]
    lines += ['#8 16ns p1 paging/transfer 0x40000080 bytes=65536 from=0 to=1 address=0x0', '#9 16ns p1 paging/fill 0x40000100 bytes=4096 from=0 to=1 address=0x0',
              '#10 16ns p2 residency/pressure 0x60000000 bytes=4096 from=1 to=0 offset=0x0',
              '#11 16ns p2 victim/fragmentation 0x60000000 for=0 of=1 bytes=8192 residents=4',
              '#12 16ns p2 residency/pressure 0x60000040 bytes=4096 from=1 to=0 offset=0x0',
              '#13 16ns p2 victim/capacity 0x60000040 for=0x70000000 of=2 bytes=8192 residents=3',
              '#14 16ns p0 wait/space ns=40 node=0 number=0', '#15 16ns p0 wait/space ns=60 node=0 number=0',
              DOOR % (16, 20, 1, 'render', 0, 10, 0)]
    good(lines, '1 allocation of the process was paged in (64.0 KiB): 0x40000080 (64.0 KiB)\n',
         '5 allocations of other processes were paged out (60.0 KiB): 0x50000100 of process 2 (20.0 KiB), 0x500000c0 of process 2 (16.0 KiB), '
         '0x50000080 of process 2 (12.0 KiB) and 2 more\n',
         '0x50000000, 0x50000040, 0x50000080 and 2 more of process 2 (60.0 KiB) were evicted from segment 1 because 0x40000080 of process 1 needed '
         '64.0 KiB: too few bytes were free (capacity)\n',
         '0x60000000 of process 2 (4.00 KiB) was evicted from segment 1 because page tables or buffers of the memory manager needed 8.00 KiB: '
         'enough bytes were free, but not in one range (fragmentation)\n',
         'meanwhile threads without a process waited 12 ns for an allocation in video memory to become idle', unwanted=['0x70000000', '0x40000100'])


@test
def a_recovery_in_the_call_is_named():
    good(['#1 15ns p2 recovery/timeout 0x40000140 code=0x141 node=3 fence=9 ns=2000', '#2 16ns p0 recovery/reset code=0x117 node=0 fence=0 ns=0',
          DOOR % (3, 20, 1, 'render', 0, 10, 0)],
         'a packet did not complete in time: node 3, fence 9, process 2, context 0x40000140\n', 'the adapter was reset\n')


@test
def a_call_with_very_many_events_is_explained_in_part():
    waits = ['#%d %dns p1 range/reclaimed 0x80000040 range=3 for=0x400000c0' % (n, 1000 + n) for n in range(1, 20001)]
    good(waits + ['#20001 30000ns p1 wait/destroy ns=5 node=0 number=0', DOOR % (20002, 30000, 1, 'render', 0, 29900, 0)],
         'waited 5 ns for the GPU to complete its use', 'the call has more events than are kept: its first ones are not explained')


@test
def the_last_failure_and_the_slowest_call_of_each_process():
    lines = [DOOR % (1, 10, 1, 'lock', 0, 4, 0), DOOR % (2, 20, 1, 'render', 0, 9, 0), DOOR % (3, 30, 1, 'offer', 0, 7, 0),
             DOOR % (4, 40, 1, 'unlock', 0xC000000D, 0, 0), DOOR % (5, 50, 1, 'allocate', 0xC000009A, 0, 0),
             DOOR % (6, 60, 3, 'lock', 0, 1, 0)]
    out = good(lines, 'process 1: 5 calls, 2 failed', 'last failed call: allocate', 'slowest call: render',
               'process 3: 1 calls, 0 failed')
    assert '1 of STATUS_INVALID_PARAMETER (unlock): no event says why' in out, out
    assert out.count('failed call') == 1 and 'offer' not in out, out
    code, out, _ = explain(lines, '3')
    assert code == 0 and 'process 1' not in out and 'process 3' in out


def cycle(first=1):
    # Context 0x140 of process 1 waits for value 5 of object 1, 0x240 of process 2 for value 3 of object 2.
    # Each would signal the other's object behind its wait.
    return [SYNC % (first, 1000, 1, 'held', 0x40000140, 1, 5, 0x40000180), SYNC % (first + 1, 2000, 1, 'queued', 0x40000140, 2, 3, 0x400001c0),
            SYNC % (first + 2, 3000, 2, 'held', 0x40000240, 2, 3, 0x40000280), SYNC % (first + 3, 4000, 2, 'queued', 0x40000240, 1, 7, 0x400002c0)]


CYCLE = ('MFN-31, a cycle: context 0x40000140 of process 1 waits for fence 0x40000180 to reach 5, which context 0x40000240 of process 2 '
         'would signal, which waits for fence 0x40000280 to reach 3, which context 0x40000140 of process 1 would signal\n')


@test
def mfn_31_a_cycle_is_named_from_each_of_its_contexts():
    out = good(cycle(), CYCLE, 'process 1: 0 calls, 0 failed\n  context 0x40000140 waits for fence 0x40000180 to reach 5 since 1.00 us, when it was 0\n'
               '    - context 0x40000240 of process 2 would signal it with 7, queued at 4.00 us, but waits for fence 0x40000280 to reach 3\n',
               'MFN-31, a cycle: context 0x40000240 of process 2 waits for fence 0x40000280 to reach 3, which context 0x40000140 of process 1')
    assert out.count('a cycle') == 2, out
    code, out, _ = explain(cycle(), '2')
    assert code == 0 and out.count('a cycle') == 1 and 'process 1:' not in out, out


@test
def mfn_31_a_cycle_that_has_ended_is_not_reported():
    lines = cycle() + [SYNC % (5, 5000, 1, 'released', 0x40000140, 1, 5, 0x40000180)]
    good(lines, '0x40000140 of process 1 would signal it with 3, queued at 2.00 us; no wait blocks it', unwanted=['cycle', '0x40000140 waits'])
    lines += [SYNC % (6, 6000, 1, 'signaled', 0x40000140, 2, 3, 0x400001c0), SYNC % (7, 7000, 2, 'released', 0x40000240, 2, 3, 0x40000280),
              SYNC % (8, 8000, 2, 'signaled', 0x40000240, 1, 7, 0x400002c0)]
    good(lines, 'process 2: 0 calls, 0 failed', unwanted=['waits', 'signal'])


@test
def mfn_31_a_cycle_that_was_given_up_is_still_named():
    good(cycle() + [SYNC % (5, 5000, 1, 'given_up', 0x40000140, 1, 5, 0x40000180), SYNC % (6, 5000, 1, 'dropped', 0x40000140, 2, 3, 0x400001c0)],
         CYCLE + '    - this wait was given up at 5.00 us\n', 'no queued signal would satisfy it', unwanted=['cycle: context 0x40000240'])
    # A stream that begins later has no event of the wait, so it is not reported.
    good([SYNC % (5, 5000, 1, 'given_up', 0x40000140, 1, 5, 0x40000180)], 'process 1', unwanted=['given up', 'waits'])


@test
def mfn_31_a_wait_that_another_thread_can_signal_is_no_cycle():
    # A third context, which does not wait, would signal one of the fences.
    good(cycle() + [SYNC % (5, 5000, 3, 'queued', 0x40000340, 1, 6, 0x40000380)],
         'context 0x40000340 of process 3 would signal it with 6', unwanted=['cycle'])
    # Too small a value does not satisfy the wait; a wait for two fences needs both.
    good(cycle() + [SYNC % (5, 5000, 3, 'queued', 0x40000340, 1, 4, 0x40000380)], CYCLE, unwanted=['with 4'])
    good(cycle() + [SYNC % (5, 1000, 1, 'held', 0x40000140, 9, 1, 0x400001f0), SYNC % (6, 5000, 3, 'queued', 0x40000340, 9, 1, 0x40000380)], CYCLE)
    # Two signals of one fence do not satisfy the wait for the other.
    good(cycle() + [SYNC % (5, 1000, 1, 'held', 0x40000140, 9, 1, 0x400001f0), SYNC % (6, 5000, 3, 'queued', 0x40000340, 9, 1, 0x40000380),
                    SYNC % (7, 5000, 4, 'queued', 0x40000340, 9, 1, 0x40000380)], CYCLE)
    # The third context waits for the cycle, and is not part of it.
    good(cycle() + [SYNC % (5, 5000, 3, 'held', 0x40000340, 1, 5, 0x40000380)], CYCLE, 'context 0x40000340 waits',
         unwanted=['cycle: context 0x40000340'])


def ring(order, size):
    # Context n is in process n and waits for object n, which the context before would signal.
    lines = []
    for n in order:
        lines += [SYNC % (1, n, n, 'held', 0x40000040, n, 1, 0x40000080), SYNC % (2, n, n, 'queued', 0x40000040, n % size + 1, 1, 0x400000c0)]
    return lines


@test
def mfn_31_a_context_that_waits_for_itself_and_longer_cycles():
    good([SYNC % (1, 1000, 1, 'held', 0x40000140, 1, 5, 0x40000180), SYNC % (2, 2000, 1, 'queued', 0x40000140, 1, 5, 0x40000180)],
         'waits for fence 0x40000180 to reach 5, which context 0x40000140 of process 1 would signal itself, after that wait')
    for size in (50, 100):
        out = good(ring(range(1, size + 1), size))
        named = [line for line in out.splitlines() if 'a cycle: context 0x40000040 of process 1 ' in line]
        assert len(named) == 1 and out.count('a cycle') == size, named
        # The middle of a very long cycle is left out.
        assert named[0].count('which context') == min(size, 65), named
        assert ('continues with 35 more contexts, the last of them context 0x40000040 of process 2, which waits' in named[0]) == (size == 100), named
        assert named[0].endswith('which context 0x40000040 of process 1 would signal'), named


@test
def mfn_31_a_chain_whose_last_context_continues_is_no_cycle():
    # Context n waits for a signal of context n - 1. With an unblocked signal for the first, none is in a cycle.
    for order in (range(1, 31), range(30, 0, -1)):
        lines = ring(order, 30)
        out = good(lines + [SYNC % (61, 61, 99, 'queued', 0x40000040, 1, 1, 0x40000080)], 'process 30', unwanted=['cycle'])
        assert out.count('waits for fence 0x40000080 to reach 1 since') == 30, out
        assert good(lines).count('a cycle') == 30


def explained(kind):
    with tempfile.NamedTemporaryFile('r') as file:
        subprocess.run([STREAM, kind, file.name], check=True, stdout=subprocess.DEVNULL)
        done = subprocess.run([VIDMM, 'explain', file.name], capture_output=True, text=True)
    assert done.returncode == 0 and not done.stderr, done
    return done.stdout


@test
def mfn_31_three_contexts_of_two_adapters():
    out = explained('ring')
    cycles = [re.findall(r'context (0x\w+) of process (\d+)', line) for line in out.splitlines() if 'MFN-31, a cycle: ' in line]
    # One cycle from each of the three contexts, back to itself.
    assert [len(set(cycle)) for cycle in cycles] == [3, 3, 3] and all(cycle[0] == cycle[-1] for cycle in cycles), out
    assert len({process for _, process in cycles[0]}) == 2, out
    # In the chain no context would signal what the first waits for: only the CPU can.
    out = explained('chain')
    assert 'cycle' not in out and out.count(' waits for fence ') == 5, out
    assert out.count('no queued signal would satisfy it: the signal must come from a CPU, a GPU or a later call') == 1, out


@test
def mfn_31_units_have_no_values():
    good([SYNC % (1, 1000, 1, 'held', 0x40000140, 4, 0, 0x40000180), SYNC % (2, 2000, 2, 'queued', 0x40000240, 4, 0, 0x40000280)],
         'context 0x40000140 waits for a unit of object 0x40000180 since 1.00 us\n',
         'context 0x40000240 of process 2 would signal it, queued at 2.00 us; no wait')


@test
def lines_that_are_no_events_are_bad_input():
    for line in ('', 'nonsense', '#1', '#1 2ns', '#1 2ns p', '#x 2ns p1 door', '#1 2ns p1 door/lock status',
                 '#1 2ns p1 door/lock a=1 b=2 c=3 d=4 e=5', '#1 2ns p1 ' + 'x' * 400, '#1 2ns p1 door/lock status=0x',
                 '#1 2ns p1 door/lock status=-1'):
        code, _, err = explain([DOOR % (1, 10, 1, 'lock', 0, 4, 0), line])
        assert code == 3 and 'line 2: not a line of an event stream' in err, (line, code, err)
    assert explain([])[0] == 3
    assert explain([DOOR % (1, 10, 1, 'lock', 0, 4, 0)], '7')[0] == 3


@test
def wrong_usage_and_missing_files():
    for args, code in (((), 2), (('--bogus',), 2), (('a', 'b', 'c'), 2), (('/nonexistent/events',), 4)):
        done = subprocess.run([VIDMM, 'explain', *args], capture_output=True, text=True)
        assert done.returncode == code and done.stderr, (args, done.returncode)


@test
def a_replays_events_are_understood():
    with tempfile.NamedTemporaryFile() as events:
        subprocess.run([VIDMM, 'replay', '-q', '--vram', '1M', '--events', events.name, TRACE], check=True)
        done = subprocess.run([VIDMM, 'explain', events.name], capture_output=True, text=True)
    assert done.returncode == 0 and not done.stderr, done.stderr
    assert 'process 1 (every-op): ' in done.stdout and 'waited ' in done.stdout, done.stdout


if __name__ == '__main__':
    sys.exit(main())
