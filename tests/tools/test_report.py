#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""test_report.py VIDMM EVERY-OP: `vidmm report`: the page has what the events say. TAP."""
import collections
import os
import re
import struct
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'support'))
from report_page import Run, signed
from tap_tests import main, test
from vidmm_program import record, vidmm

EVERY = sys.argv[2]
EXAMPLES = os.environ['VIDMM_EXAMPLES']
GLMARK = os.path.join(EXAMPLES, 'glmark2-1080p.trace.zst')
FRAME = struct.pack('<I', 0xFD2FB528)  # how a zstd frame begins
DOOR, WAIT = 1, 8
CREATE, RESIDENCY, RENAME, OFFER, RECLAIM, DISCARD, PROCESS = 4, 7, 14, 15, 16, 17, 28


def page_of(folder, *recordings):
    path = os.path.join(folder, 'page.html')
    vidmm('report', *recordings, '-o', path)
    with open(path, encoding='utf-8') as file:
        return file.read()


def events(lines, kind):
    """The events of a type as dictionaries, with `ns`, `process`, `reason`, `object`."""
    for line in lines:
        head = re.match(rf'#\d+ (\d+)ns p(\d+) {kind}(?:/(\w+))?(?: (0x[0-9a-f]+))?((?: \w+=\w+)*)', line)
        if head and (line[head.end():head.end() + 1] in ('', ' ')):
            values = {key: int(value, 0) for key, value in re.findall(r'(\w+)=(\w+)', head[5])}
            yield dict(values, time=int(head[1]), process=int(head[2]), reason=head[3], object=int(head[4] or '0', 0))


@test
def the_page_has_each_change_of_placement(folder):
    for trace, vram in (GLMARK, '25%'), (EVERY, '1M'):
        path, lines = record(folder, '--vram', vram, trace)
        run = Run(page_of(folder, path), 0)
        wanted = list(events(lines, 'residency'))
        names = {int(number): name for number, name in next(e for e in run.figures['about']['events'] if e['name'] == 'residency')['reasons'].items()}
        time, allocation = run.sums('move_time'), run.signed_sums('move_allocation')
        assert len(time) == len(wanted) > 20
        end = 0
        for i, event in enumerate(wanted):
            row = allocation[i]
            assert time[i] == event['time'] and run.column['move_segment'][i] == event['to'], (i, event)
            assert run.column['allocation_handle'][row] == event['object'] and run.column['allocation_bytes'][row] == event['bytes'], (i, event)
            assert names[run.column['move_reason'][i]] == event['reason'], (i, event)
            if event['to']:
                assert end + signed(run.column['move_offset'][i]) == event['offset'], (i, event)
                end = event['offset'] + event['bytes']
        segments = {s['id']: s['bytes'] for s in run.figures['segments']}
        assert segments == {e['reason'] and int(e['reason']): e['bytes'] for e in events(lines, 'segment')} and len(segments) == 2, segments


@test
def paging_is_counted_for_each_allocation(folder):
    path, lines = record(folder, '--vram', '25%', GLMARK)
    run = Run(page_of(folder, path), 0)
    wanted = collections.defaultdict(collections.Counter)
    for line in lines:
        for e in events([line], 'paging'):
            if e['reason'] == 'transfer' and e['from'] != e['to']:  # the aperture is mapped, not copied to
                wanted[e['object']]['in' if e['to'] == 1 else 'out'] += e['bytes']
        for e in events([line], 'residency'):
            wanted[e['object']]['evictions'] += (e['reason'], e['from'], e['to']) == ('pressure', 1, 0)
    found = collections.defaultdict(collections.Counter)
    for kind in 'in', 'out', 'evictions':
        for handle, value in zip(run.column['allocation_handle'], run.column[f'allocation_{kind}']):
            found[handle][kind] += value
    assert all(found[handle][kind] == wanted[handle][kind] for handle in found for kind in ('in', 'out', 'evictions')), \
        [(hex(handle), found[handle], wanted[handle]) for handle in found if found[handle] != wanted[handle]]
    assert sum(counts['evictions'] for counts in found.values()) > 100


@test
def allocations_have_their_life_and_processes_their_names(folder):
    path, lines = record(folder, '--vram', '25%', GLMARK)
    run = Run(page_of(folder, path), 0)
    created = run.signed_sums('allocation_created')
    born = [(time, handle, size) for time, handle, size in zip(created, run.column['allocation_handle'], run.column['allocation_bytes'])]
    wanted = [(e['time'], e['object'], e['bytes']) for e in events(lines, 'create')]
    assert [row for row in born if row in set(wanted)] == wanted and len(wanted) > 20
    ends = collections.Counter(begin + life - 1 for begin, life in zip(created, run.column['allocation_life']) if life)
    assert ends == collections.Counter(e['time'] for e in events(lines, 'destroy'))
    named = {p['number']: p['name'] for p in run.figures['processes'] if p['name']}
    assert named == {e['process']: line.split(' : ')[1] for line in lines for e in events([line], 'process') if e['reason'] == 'opened'} != {}


@test
def packets_waits_and_marks_are_those_of_the_events(folder):
    path, lines = record(folder, '--vram', '10%', GLMARK)
    run = Run(page_of(folder, path), 0)
    queued = list(events(lines, 'queue'))
    assert run.sums('packet_time') == [e['time'] for e in queued] and run.column['packet_node'] == [e['node'] for e in queued]
    done = {(e['node'], e['fence']): e['time'] for e in events(lines, 'fence')}
    for i, event in enumerate(queued):
        end = done.get((event['node'], event['fence']))
        # A fence may be reported for several packets at once: then the last one has it.
        if end:
            assert run.column['packet_ns'][i] == end - event['time'] + 1, (i, event)
    assert 0 not in run.column['packet_ns']
    waits = list(events(lines, 'wait'))
    assert run.sums('wait_time') == [e['time'] for e in waits] and run.column['wait_ns'] == [e['ns'] for e in waits]
    marks = [e for line in lines for kind in ('rename', 'offer', 'reclaim', 'discard') for e in events([line], kind)]
    assert run.sums('mark_time') == [e['time'] for e in marks] and len(marks) > 10
    rows = run.signed_sums('mark_allocation')
    assert [run.column['allocation_handle'][row] for row in rows] == [e['object'] for e in marks]


def during(lines, door):
    """The events of a call: since it began, and since the end of the call before if that was at the same time."""
    begin = door['time'] - door['ns']
    end = lines.index(door['line'])
    first = end
    while first and int(lines[first - 1].split(' ')[1][:-2]) >= begin:
        first -= 1
        if lines[first].startswith(f"#{first + 1} {begin}ns p{door['process']} door/"):
            return lines[first + 1:end]
    return lines[first:end]


def explained(sentences, pattern):
    """The groups of all sentences that match."""
    return [match.groups() for sentence in sentences for match in [re.fullmatch(pattern, sentence)] if match]


def size(text):
    number, unit = text.split(' ')
    return float(number) * {'B': 1, 'KiB': 1 << 10, 'MiB': 1 << 20}[unit]


def check_paging(why, inside, process, direction):
    """The sentence about paging in or out has the allocations and bytes of the call's events."""
    copied = collections.Counter()
    for e in events(inside, 'paging'):
        if e['reason'] == 'transfer' and e['process'] == process and (e['from'] == 0, e['to'] == 0) == (direction == 'in', direction == 'out'):
            copied[e['object']] += e['bytes']
    found = explained(why, rf'(\d+) allocations? of the process w\w+ paged {direction} \((.*?)\): (.*)')
    if not copied:
        assert not found, (found, inside)
        return 0
    count, total, named = found[0]
    assert int(count) == len(copied) and abs(size(total) - sum(copied.values())) <= 0.006 * sum(copied.values()), (found, copied)
    names = re.findall(r'0x[0-9a-f]{8} \((.*?)\)', named)
    assert [copied[int(handle, 16)] for handle in re.findall('0x[0-9a-f]{8}', named)] == sorted(copied.values(), reverse=True)[:3], (named, copied)
    assert len(names) == min(3, len(copied)) and (f'and {len(copied) - 3} more' in named) == (len(copied) > 3), named
    return len(copied)


def check_evictions(why, inside):
    victims = list(events(inside, 'victim'))
    count = 0
    for names, more, by, of, kind in explained(why, r'((?:0x\w+(?:, )?)+)(?: and (\d+) more)? of process \d+ \(.*\) w\w+ evicted from segment 1 '
                                                    r'because (0x\w+) of process (\d+) needed .*\((\w+)\)'):
        group = [v['object'] for v in victims if (v['for'], v['of'], v['reason']) == (int(by, 16), int(of), kind)]
        assert group[:3] == [int(name, 16) for name in names.split(', ')] and len(group) == len(names.split(', ')) + int(more or 0), (names, group)
        count += len(group)
    assert count + sum(int(rest) for rest, in explained(why, r'(\d+) more evictions .*')) == len(victims), (why, victims)
    return count


@test
def the_longest_calls_are_explained_by_their_events(folder):
    paged = evicted = waited = 0
    for trace, vram in (GLMARK, '10%'), (EVERY, '1M'), (GLMARK, '35%'):
        path, lines = record(folder, '--vram', vram, trace)
        stalls = Run(page_of(folder, path), 0).figures['stalls']
        doors = [dict(door, line=line) for line in lines if ' door/' in line for door in events([line], 'door') if door['ns']]
        doors.sort(key=lambda door: -door['ns'])
        assert [(s['ns'], s['end']) for s in stalls] == [(door['ns'], door['time']) for door in doors[:20]] != []
        for stall, door in zip(stalls, doors):
            why, inside = stall['why'], during(lines, door)
            assert why and not re.search('0x00000000|nobody|packet 0 ', ' '.join(why)), why
            waits = [(e['number'], e['node']) for e in events(inside, 'wait') if e['process'] == door['process'] and e['ns'] and e['number']]
            named = [(int(number), int(node or -1)) for number, node in
                     explained(why, r'(?:waited|a wait without).* for (?:submission|paging packet|packet) (\d+)(?: o[nf] node (\d+) .*)?')]
            assert len(named) >= len(waits) and all((number, node) in named or (number, -1) in named for number, node in waits), (why, waits)
            waited += len(waits)
            paged += check_paging(why, inside, door['process'], 'in') + check_paging(why, inside, door['process'], 'out')
            evicted += check_evictions(why, inside)
    assert min(paged, evicted, waited) > 5, (paged, evicted, waited)


def recording_of(folder, rows):
    """A recording of these events: the header of a replay's, and a frame with one uncompressed block (docs/record-format.md)."""
    path, _ = record(folder, '--vram', '1M', EVERY, name='replayed')
    with open(path, 'rb') as file:
        replayed = file.read()
    times = [time for time, *_ in rows]
    columns = [('Q', [time - before for time, before in zip(times, [0] + times)]), ('Q', [1] * len(rows))]
    columns += [('Q', [(row[4:] + (0, 0, 0, 0))[i] for row in rows]) for i in range(4)]
    columns += [('I', [process for _, process, *_ in rows]), ('I', [0] * len(rows)), ('I', [0] * len(rows))]
    columns += [('H', [kind for _, _, kind, *_ in rows]), ('H', [reason for _, _, _, reason, *_ in rows])]
    chunk = struct.pack('<4I', 2, len(rows), 0, 0) + b''.join(struct.pack(f'<{len(values)}{size}', *values) for size, values in columns)
    frame = FRAME + struct.pack('<BI', 0xA0, len(chunk)) + (len(chunk) << 3 | 1).to_bytes(3, 'little') + chunk
    path = os.path.join(folder, 'written')
    with open(path, 'wb') as file:
        file.write(replayed[:replayed.index(FRAME, len(FRAME))] + frame)
    return path


@test
def what_no_event_explains_is_said_in_the_last_sentence(folder):
    # Calls of process 1 with the end, the waits that are in it (end, process, ns), and the sentence.
    calls = [(2000, [], 'no event in it says why'),
             (4000, [(3500, 1, 500)], 'no event in it says why the other 500 ns'),
             (6000, [(5950, 1, 950)], None),
             # A thread has one wait after the other.
             (8000, [(7600, 1, 600), (7900, 1, 600)], 'several threads waited: no event says which of these waits were those of the call'),
             (10000, [(9950, 0, 950)], 'no event says whether the call waited for that'),
             # The wait began before the call.
             (12000, [(11500, 1, 501)], 'no event in it says why')]
    rows = []
    for end, waits, _ in calls:
        rows += [(time, process, WAIT, 1, ns) for time, process, ns in waits] + [(end, 1, DOOR, 1, 0, 1, 1000)]
    stalls = Run(page_of(folder, recording_of(folder, rows)), 0).figures['stalls']
    assert [(stall['end'], stall['ns']) for stall in stalls] == [(end, 1000) for end, _, _ in calls], stalls
    for stall, (_, waits, last) in zip(stalls, calls):
        assert stall['why'][-1] == last or not last and stall['why'][-1].startswith('waited 950 ns'), stall
        assert len(stall['why']) == (last is not None) + (len(waits) if 'no event in it says why' != last else 0), stall


@test
def two_runs_are_in_one_page(folder):
    small, _ = record(folder, '--vram', '1M', EVERY, name='small')
    large, _ = record(folder, '--vram', '64M', EVERY, name='large')
    page = page_of(folder, small, large)
    runs = Run(page, 0), Run(page, 1)
    assert [run.figures['path'] for run in runs] == [small, large]
    assert runs[0].figures['rows']['move_time'] > runs[1].figures['rows']['move_time'] > 0
    assert page.count('<script>') == 2 and 'd3' in page


@test
def texts_of_a_program_cannot_end_an_element(folder):
    trace = os.path.join(folder, 'bad.trace')
    with open(EVERY, encoding='utf-8') as file:
        text = file.read()
    named = text.replace('#program every-op', '#program </script><script>alert(1)</script>')
    assert named != text
    with open(trace, 'w', encoding='utf-8') as file:
        file.write(named)
    path, _ = record(folder, '--vram', '1M', trace, name='<b> & "<i>')
    page = page_of(folder, path)
    assert 'alert(1)</script>' not in page and '<b>' not in page.split('<style>')[0]
    run = Run(page, 0)
    assert run.figures['path'] == path
    assert any(p['name'].startswith('</script>') for p in run.figures['processes']), run.figures['processes']


@test
def a_recording_that_is_cut_is_shown_as_far_as_it_goes(folder):
    path, _ = record(folder, '--vram', '25%', GLMARK)
    with open(path, 'rb') as file:
        whole = file.read()
    with open(path, 'wb') as file:
        file.write(whole[:len(whole) * 2 // 3])
    done = vidmm('report', path, '-o', os.path.join(folder, 'cut.html'))
    assert 'in the middle of a chunk' in done.stderr
    with open(os.path.join(folder, 'cut.html'), encoding='utf-8') as file:
        run = Run(file.read(), 0)
    assert run.figures['cut'] and run.figures['rows']['move_time'] > 0
    assert 0 in run.column['allocation_life']


@test
def wrong_calls_are_refused(folder):
    path, _ = record(folder, '--vram', '1M', EVERY)
    for args, code, text in ((['report'], 2, 'no recording'), (['report', path], 2, '--output'), (['report', path, path, path, '-o', 'x'], 2, 'two at most'),
                             (['report', EVERY, '-o', os.path.join(folder, 'x')], 3, 'is not a recording'), (['report', folder, '-o', '-'], 4, 'not a file'),
                             (['report', path, '-o', '/dev/full'], 4, 'No space left'), (['report', path, '-o', os.path.join(folder, 'none', 'x')], 4, 'No such file'),
                             (['report', '--what', path], 2, 'try: vidmm report --help')):
        done = vidmm(*args, code=code)
        assert text in done.stderr and not done.stdout, (args, done.stderr, done.stdout[:100])
    assert vidmm('report', path, '-o', '-').stdout.startswith('<!DOCTYPE html>')
    assert 'usage' in vidmm('report', '--help').stdout.lower()


if __name__ == '__main__':
    sys.exit(main())
