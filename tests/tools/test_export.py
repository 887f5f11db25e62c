#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""test_export.py VIDMM EVERY-OP: `vidmm export`: tracks, slices, flows, counters and tables against the events. TAP."""
import collections
import csv
import os
import re
import sqlite3
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'support'))
import vidmm_program
from tap_tests import main, test
from vidmm_program import vidmm

EVERY = sys.argv[2]
GLMARK = os.path.join(os.environ['VIDMM_EXAMPLES'], 'glmark2-1080p.trace.zst')
BEGIN, END, INSTANT, COUNTER = 1, 2, 3, 4


def record(folder, *args):
    path, lines = vidmm_program.record(folder, *args)
    return path, [event for event in map(parse, lines) if event]


def parse(line):
    head = re.match(r'#(\d+) (\d+)ns p(\d+) (\w+)(?:/(\w+))?(?: (0x[0-9a-f]+))?((?: \w+=\w+)*)(?: : (.*))?$', line.rstrip('\n'))
    assert head, line
    values = {key: int(value, 0) for key, value in re.findall(r'(\w+)=(\w+)', head[7])}
    return dict(values, sequence=int(head[1]), time=int(head[2]), process=int(head[3]), type=head[4], reason=head[5], object=int(head[6] or '0', 0), text=head[8])


def of(events, *types):
    return [event for event in events if event['type'] in types]


# ---- Protocol Buffers: a message is {field: [values]}, where a value of bytes may be a message ----

def varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            return value, at


def message(data):
    fields, at = collections.defaultdict(list), 0
    while at < len(data):
        tag, at = varint(data, at)
        if tag & 7 == 0:
            value, at = varint(data, at)
        elif tag & 7 == 1:
            value, at = int.from_bytes(data[at:at + 8], 'little'), at + 8
        else:
            assert tag & 7 == 2, tag
            length, at = varint(data, at)
            value, at = data[at:at + length], at + length
            assert len(value) == length
        fields[tag >> 3].append(value)
    return fields


class Trace:
    """The field numbers are those of Perfetto's published schema."""
    def __init__(self, path):
        with open(path, 'rb') as file:
            packets = [message(data) for data in message(file.read())[1]]
        assert all(packet[10] == [1] for packet in packets)
        self.tracks, self.events = {}, []
        for packet in packets:
            for data in packet.get(60, []):
                track = message(data)
                assert track[1][0] not in self.tracks
                self.tracks[track[1][0]] = track
            for data in packet.get(11, []):
                event = message(data)
                # A track is described before its first event.
                assert event[11][0] in self.tracks
                self.events.append((packet[8][0], event[9][0], event[11][0], event))

    def name(self, uuid):
        track = self.tracks[uuid]
        return message(track[3][0])[6][0].decode() if 3 in track and track[3] else track[2][0].decode()

    def parent(self, uuid):
        return self.name(self.tracks[uuid][5][0]) if self.tracks[uuid].get(5) else None

    def slices(self, test):
        """(begin, end, event of the begin) of the tracks that pass the test. Slices of a track do not overlap."""
        slices, open_slice, last = [], {}, {}
        for time, kind, uuid, event in self.events:
            if not test(uuid):
                continue
            if kind == BEGIN:
                assert uuid not in open_slice and last.get(uuid, 0) <= time, (self.name(uuid), time)
                open_slice[uuid] = (time, event)
            elif kind == END:
                begin, first = open_slice.pop(uuid)
                assert begin <= time
                last[uuid] = time
                slices.append((begin, time, first))
        assert not open_slice
        return slices


def perfetto(folder, *args):
    path, events = record(folder, *args)
    out = os.path.join(folder, 'out.pftrace')
    vidmm('export', path, '--perfetto', out)
    return Trace(out), events


@test
def each_packet_is_a_slice_of_its_node(folder):
    trace, events = perfetto(folder, '--vram', '25%', GLMARK)
    nodes = collections.Counter(event['node'] for event in of(events, 'queue'))
    for node, count in nodes.items():
        slices = trace.slices(lambda uuid: trace.name(uuid) == f'node {node}' and trace.parent(uuid) == 'GPU')
        assert len(slices) == count > 10
    ends = {end for _, end, _ in trace.slices(lambda uuid: trace.parent(uuid) == 'GPU' and trace.name(uuid).startswith('node'))}
    assert ends <= {event['time'] for event in of(events, 'fence')} | {events[-1]['time']}


@test
def waits_and_calls_that_took_time_are_slices_of_their_process(folder):
    trace, events = perfetto(folder, '--vram', '10%', GLMARK)
    for name, kind in ('waits', 'wait'), ('calls', 'door'):
        slices = trace.slices(lambda uuid: trace.name(uuid) == name)
        wanted = sorted((event['time'] - event['ns'], event['time'], event['reason']) for event in of(events, kind) if event['ns'])
        assert sorted((begin, end, first[23][0].decode()) for begin, end, first in slices) == wanted and len(wanted) > 10
    processes = [uuid for uuid in trace.tracks if trace.tracks[uuid].get(3)]
    opened = [event['text'] for event in of(events, 'process') if event['reason'] == 'opened']
    assert [trace.name(uuid) for uuid in processes if 'process ' not in trace.name(uuid)] == opened


@test
def a_flow_leads_from_the_packet_whose_fence_ended_a_wait(folder):
    trace, events = perfetto(folder, '--vram', '10%', GLMARK)
    begins, ends = {}, []
    for begin, end, first in trace.slices(lambda uuid: True):
        for flow in first.get(47, []):
            assert flow not in begins
            begins[flow] = end
        ends += [(flow, end) for flow in first.get(48, [])]
    assert {flow for flow, _ in ends} == set(begins)
    # A wait ends when its fence has been read; other waits may be served before it.
    assert all(begins[flow] <= end for flow, end in ends)
    wanted = [event for event in of(events, 'wait') if event['ns'] and event['number'] and any(
        fence['node'] == event['node'] and fence['complete'] >= event['number'] and fence['time'] <= event['time'] for fence in of(events, 'fence'))]
    assert len(ends) == len(wanted) > 10, (len(ends), len(wanted))


@test
def each_placement_is_a_slice_and_each_change_counts(folder):
    trace, events = perfetto(folder, '--vram', '25%', GLMARK)
    moves = of(events, 'residency')
    slices = trace.slices(lambda uuid: trace.parent(uuid) == 'allocations')
    assert len(slices) == sum(move['to'] != 0 for move in moves) > 100
    assert len([uuid for uuid in trace.tracks if trace.parent(uuid) == 'allocations']) == len({(move['process'], move['object']) for move in moves}) or \
        len(of(events, 'create')) > len({event['object'] for event in of(events, 'create')})
    for segment in of(events, 'segment'):
        number, resident, wanted = int(segment['reason']), 0, []
        for move in moves:
            if move['from'] != move['to'] and number in (move['from'], move['to']):
                resident += move['bytes'] * ((move['to'] == number) - (move['from'] == number))
                wanted.append((move['time'], resident))
        counted = [(time, event[30][0]) for time, kind, uuid, event in trace.events if kind == COUNTER and trace.name(uuid) == f'resident in segment {number}']
        assert counted[1:] == wanted and counted[0][1] == 0 and wanted[-1][1] == 0, number
    depth = [event[30][0] for _, kind, uuid, event in trace.events if kind == COUNTER and trace.name(uuid) == 'packets in flight']
    assert len(depth) == 2 * len(of(events, 'queue')) and depth[-1] == 0 and max(depth) > 1


@test
def the_tables_of_csv_and_sqlite_are_the_same(folder):
    path, events = record(folder, '--vram', '10%', GLMARK)
    out, database = os.path.join(folder, 'csv'), os.path.join(folder, 'db')
    vidmm('export', path, '--csv', out, '--sqlite', database)
    connection = sqlite3.connect(database)
    tables = [name for name, in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
    assert sorted(name + '.csv' for name in tables) == sorted(os.listdir(out)) and len(tables) == 11
    for name in tables:
        with open(os.path.join(out, name + '.csv'), encoding='utf-8', newline='') as file:
            head, *rows = csv.reader(file)
        cursor = connection.execute(f'SELECT * FROM {name}')
        assert [column[0] for column in cursor.description] == head
        stored = [['' if value is None else str(value % 2 ** 64 if isinstance(value, int) else value) for value in row] for row in cursor]
        assert stored == rows, name
    assert connection.execute('SELECT count(*) FROM events').fetchone() == (len(events),)
    row = connection.execute("SELECT sequence, time_ns, process, object, a, b, c, d FROM events WHERE type = 'residency' LIMIT 1").fetchone()
    move = of(events, 'residency')[0]
    assert row == tuple(move[key] for key in ('sequence', 'time', 'process', 'object', 'bytes', 'from', 'to', 'offset'))
    assert connection.execute("SELECT count(*), sum(evictions) FROM allocations WHERE evictions > 0").fetchone()[1] == \
        sum((move['reason'], move['from'], move['to']) == ('pressure', 1, 0) for move in of(events, 'residency')) > 10
    assert connection.execute('SELECT count(*) FROM moves LEFT JOIN allocations ON allocations.id = moves.allocation WHERE allocations.id IS NULL').fetchone() == (0,)
    names = dict(connection.execute('SELECT number, name FROM processes WHERE name IS NOT NULL').fetchall())
    assert names == {event['process']: event['text'] for event in of(events, 'process') if event['reason'] == 'opened'}
    # A database of that name is replaced.
    vidmm('export', path, '--sqlite', database)
    connection.close()


@test
def texts_are_quoted_in_csv(folder):
    trace = os.path.join(folder, 'bad.trace')
    with open(EVERY, encoding='utf-8') as file:
        text = file.read()
    with open(trace, 'w', encoding='utf-8') as file:
        file.write(text.replace('#program every-op', '#program a,"b"\'c'))
    path, _ = record(folder, '--vram', '1M', trace)
    vidmm('export', path, '--csv', os.path.join(folder, 'csv'))
    with open(os.path.join(folder, 'csv', 'processes.csv'), encoding='utf-8', newline='') as file:
        assert 'a,"b"\'c' in [row[2] for row in csv.reader(file)]


@test
def wrong_calls_are_refused(folder):
    path, _ = record(folder, '--vram', '1M', EVERY)
    missing = os.path.join(folder, 'none', 'x')
    for args, code, text in ((['export'], 2, 'no recording'), (['export', path], 2, 'nothing to write'), (['export', path, path, '--csv', 'x'], 2, 'several'),
                             (['export', path, '--csv', ''], 2, 'no value'), (['export', EVERY, '--csv', os.path.join(folder, 'c')], 3, 'is not a recording'),
                             (['export', path, '--perfetto', missing], 4, 'No such file'), (['export', path, '--perfetto', '/dev/full'], 4, 'No space left'),
                             (['export', path, '--csv', missing], 4, 'No such file'), (['export', path, '--sqlite', missing], 4, 'unable to open'),
                             (['export', path, '--csv', path], 4, 'Not a directory'), (['export', '--what', path], 2, 'try: vidmm export --help')):
        done = vidmm(*args, code=code)
        assert text in done.stderr and not done.stdout, (args, done.stderr)
    with open(path, 'rb') as file:
        whole = file.read()
    with open(path, 'wb') as file:
        file.write(whole[:-3])
    done = vidmm('export', path, '--perfetto', os.path.join(folder, 'cut'))
    assert 'in the middle of a chunk' in done.stderr
    Trace(os.path.join(folder, 'cut'))


if __name__ == '__main__':
    sys.exit(main())
