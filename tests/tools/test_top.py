#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""test_top.py VIDMM EVERY-OP: `vidmm top`: its figures against the events, files that grow, terminals. TAP."""
import csv
import fcntl
import os
import pty
import re
import signal
import struct
import subprocess
import sys
import termios

# Debian's package python3-pyte; behind the others, for a python3 that is not Debian's.
sys.path.append('/usr/lib/python3/dist-packages')
try:
    import pyte
except ImportError:
    pyte = None

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'support'))
from tap_tests import main, test

VIDMM, EVERY = sys.argv[1:3]
GLMARK = os.path.join(os.environ['VIDMM_EXAMPLES'], 'glmark2-1080p.trace.zst')
ZSTD_MAGIC = b'\x28\xb5\x2f\xfd'
ENVIRONMENT = dict(os.environ, LANG='C.UTF-8', LC_ALL='C.UTF-8', COLUMNS='200')


def vidmm(*args, code=0, columns=200, **more):
    done = subprocess.run([VIDMM, *args], capture_output=True, env=dict(ENVIRONMENT, COLUMNS=str(columns), **more))
    done.stdout, done.stderr = done.stdout.decode(), done.stderr.decode()
    assert done.returncode == code, (args, done.returncode, done.stderr)
    return done


def record(folder, *args, name='run'):
    path = os.path.join(folder, name)
    vidmm('replay', '-q', '--record', path, *args)
    return path


def events_of(path, folder):
    """The events as another verb reads them."""
    out = os.path.join(folder, 'csv')
    vidmm('export', path, '--csv', out)
    with open(os.path.join(out, 'events.csv'), encoding='utf-8', newline='') as file:
        rows = list(csv.DictReader(file))
    for row in rows:
        for key in ('time_ns', 'process', 'a', 'b', 'c', 'd'):
            row[key] = int(row[key] or 0)
    return rows


def table(text):
    """The rows of the processes, by name; values by column."""
    lines = text.splitlines()
    at = next(i for i, line in enumerate(lines) if line.startswith('   ID NAME'))
    heads = lines[at].split()
    if 'WAIT' in heads:
        heads[heads.index('WAIT'):heads.index('WAIT') + 2] = ['WAIT ms']
    rows = {}
    for line in lines[at + 1:]:
        if 'WAITED' in line:
            break
        number, rest = line.split(maxsplit=1)
        name, *values = re.split(r' {2,}', rest, maxsplit=1)
        rows[name.strip()] = dict(zip(heads, [number, name, *' '.join(values).split()]))
    return rows


def head(text):
    match = re.match(r'vidmm top: (\S+) +(.*?)   (\S+ \S+) recorded   ([\d,]+) events$', text.splitlines()[0])
    assert match, text.splitlines()[0]
    return match[1], match[2], match[3], int(match[4].replace(',', ''))


MIB = 1 << 20


def model(events):
    """What top shows, computed in another way: from sums over all events."""
    aperture = {row['reason']: bool(row['c'] & 1) for row in events if row['type'] == 'segment'}

    def video(segment):
        return segment and not aperture.get(str(segment), False)
    result = {'in': 0, 'out': 0, 'evictions': 0, 'resident': 0, 'peak': 0, 'submits': 0, 'wait_ns': 0, 'lock_ns': 0, 'used': {}}
    for row in events:
        if row['type'] == 'paging' and row['reason'] in ('transfer', 'special_lock_transfer', 'virtual_transfer') and row['b'] != row['c']:
            result['in' if video(row['c']) else 'out'] += row['a']
        if row['type'] == 'residency' and row['b'] != row['c']:
            result['resident'] += row['a'] * ((row['c'] != 0) - (row['b'] != 0))
            result['peak'] = max(result['peak'], result['resident'])
            for segment, sign in (row['b'], -1), (row['c'], 1):
                result['used'][segment] = result['used'].get(segment, 0) + sign * row['a']
            result['evictions'] += bool(video(row['b']) and not row['c'] and row['reason'] not in ('destroyed', 'discarded', 'reset'))
        if row['type'] == 'wait' and row['process']:
            result['wait_ns'] += row['a']
            result['lock_ns'] += row['a'] * (row['reason'] == 'lock')
        result['submits'] += row['type'] == 'submit'
    return result


@test
def the_figures_are_those_of_the_events(folder):
    path = record(folder, '--vram', '25%', GLMARK)
    events = events_of(path, folder)
    text = vidmm('top', '--batch', path).stdout
    wanted, seconds = model(events), (events[-1]['time_ns'] - events[0]['time_ns']) / 1e9
    name, state, _, count = head(text)
    assert (name, state, count) == (path, 'ended', len(events))
    row, = (row for name, row in table(text).items() if name.startswith('glmark2'))
    assert row['QUEUED'] == 'closed' and int(row['SUBMITS']) == wanted['submits'] > 100
    assert int(row['EVICT']) == wanted['evictions'] > 10
    for key, value in (('IN', wanted['in']), ('OUT', wanted['out']), ('PEAK', wanted['peak']), ('MiB', wanted['resident'])):
        assert row[key] == f'{value / MIB:.1f}', (key, row[key], value)
    assert row['IN/s'] == f'{wanted["in"] / MIB / seconds:.1f}' and row['OUT/s'] == f'{wanted["out"] / MIB / seconds:.1f}'
    assert row['LOCK%'] == f'{wanted["lock_ns"] / 1e7 / seconds:.0f}' and row['WAIT ms'] == f'{wanted["wait_ns"] / 1e6:.1f}'
    longest = sorted((row['a'] for row in events if row['type'] == 'wait'), reverse=True)
    shown = re.findall(r'^ *([\d.]+) (ns|us|ms|s) .* ended ', text, re.M)
    units = {'ns': 1, 'us': 1e3, 'ms': 1e6, 's': 1e9}
    assert len(shown) == 40 and all(abs(float(value) * units[unit] - ns) <= 0.006 * ns for (value, unit), ns in zip(shown, longest)), (shown, longest[:40])
    for segment in (row for row in events if row['type'] == 'segment'):
        assert re.search(rf'(memory|aperture) {segment["reason"]} .* of {segment["a"] / MIB:.1f} MiB', text)


def cut(data, part):
    """An offset in the middle of a chunk, and behind many."""
    return int(len(data) * part)


@test
def the_state_in_the_middle_is_that_of_the_events_so_far(folder):
    path = record(folder, '--vram', '25%', GLMARK)
    with open(path, 'rb') as file:
        data = file.read()
    part = os.path.join(folder, 'part')
    with open(part, 'wb') as file:
        file.write(data[:cut(data, 0.6)])
    events = events_of(part, folder)
    done = vidmm('top', '--batch', part)
    assert 'in the middle of a chunk' in done.stderr
    _, state, _, count = head(done.stdout)
    assert (state, count) == ('ended, cut short', len(events))
    wanted = model(events)
    row, = (row for name, row in table(done.stdout).items() if name.startswith('glmark2'))
    assert row['MiB'] == f'{wanted["resident"] / MIB:.1f}' != '0.0' and row['IN'] == f'{wanted["in"] / MIB:.1f}'
    for segment, used in wanted['used'].items():
        assert not segment or re.search(rf'(memory|aperture) {segment} .* {used / MIB:.1f} of ', done.stdout), (segment, used)
    submitted = [row['d'] for row in events if row['type'] == 'submit']
    complete = max(row['d'] for row in events if row['type'] == 'fence')
    queued = sum(number > complete for number in submitted)
    assert int(row['QUEUED']) == queued and f'  {queued} queued' in done.stdout


def hold_lock(file):
    """The lock that a program which writes a recording holds."""
    fcntl.fcntl(file.fileno(), fcntl.F_OFD_SETLK, struct.pack('hhqqi4x', fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0))


class Output:
    """The output of a program, read up to a text."""
    def __init__(self, pipe):
        self.pipe, self.text = pipe, ''

    def until(self, pattern):
        while not re.search(pattern, self.text):
            data = os.read(self.pipe.fileno(), 65536)
            assert data, ('ended', self.text)
            self.text += data.decode()
        self.text = self.text[re.search(pattern, self.text).end():]


@test
def a_recording_that_grows_is_followed_to_its_end(folder):
    path = record(folder, '--vram', '25%', GLMARK)
    with open(path, 'rb') as file:
        data = file.read()
    all_events = len(events_of(path, folder))
    growing = os.path.join(folder, 'growing')
    with open(growing, 'wb', buffering=0) as file:
        hold_lock(file)
        file.write(data[:cut(data, 0.4)])
        first = len(events_of(growing, folder))
        assert 0 < first < all_events
        with subprocess.Popen([VIDMM, 'top', '--batch', '-n', '0', '--delay', '0.01', growing], stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=ENVIRONMENT) as top:
            output = Output(top.stdout)
            output.until(rf'live   \S+ \S+ recorded   {first:,} events\n')
            file.write(data[cut(data, 0.4):cut(data, 0.4) + 1])
            output.until(rf'live   \S+ \S+ recorded   {first:,} events\n')
            file.write(data[cut(data, 0.4) + 1:])
            output.until(rf'live   \S+ \S+ recorded   {all_events:,} events\n')
            file.close()
            rest, errors = top.communicate()
            assert re.search(rf'ended   \S+ \S+ recorded   {all_events:,} events\n', rest.decode()) or 'ended  ' in output.text
            assert top.returncode == 0 and not errors, errors


@test
def a_recording_that_is_written_again_is_shown_from_its_beginning(folder):
    long, short = record(folder, '--vram', '25%', GLMARK, name='long'), record(folder, '--vram', '1M', EVERY, name='short')
    with open(long, 'rb') as file:
        data = file.read()
    with open(short, 'rb') as file:
        other = file.read()
    events, others = len(events_of(long, folder)), len(events_of(short, folder))
    path = os.path.join(folder, 'again')
    with open(path, 'wb', buffering=0) as file:
        hold_lock(file)
        file.write(data)
        with subprocess.Popen([VIDMM, 'top', '--batch', '-n', '0', '--delay', '0.01', path], stdout=subprocess.PIPE, env=ENVIRONMENT) as top:
            output = Output(top.stdout)
            output.until(rf'live   \S+ \S+ recorded   {events:,} events\n')
            file.truncate(0)
            output.until(r'starts again   \S+ \S+ recorded   0 events\n')
            file.seek(0)
            file.write(other)
            output.until(rf'live   \S+ \S+ recorded   {others:,} events\n')
            file.close()
            top.communicate()
            assert top.returncode == 0


@test
def the_program_that_records_holds_the_lock(folder):
    """A replay whose events go to a pipe as well stops when the pipe is full."""
    path, pipe = os.path.join(folder, 'run'), os.path.join(folder, 'pipe')
    os.mkfifo(pipe)
    with subprocess.Popen([VIDMM, 'replay', '-q', '--record', path, '--events', pipe, '--vram', '25%', GLMARK], env=ENVIRONMENT) as replay:
        with open(pipe, 'rb') as events:
            assert events.readline()
            assert head(vidmm('top', '--batch', path).stdout)[1] == 'live'
            while events.read(1 << 20):
                pass
        assert replay.wait() == 0
    assert head(vidmm('top', '--batch', path).stdout)[1] == 'ended'


# ---- recordings by hand ----

TYPES = {'queue': 10, 'fence': 11, 'wait': 8, 'submit': 9, 'sync': 26, 'process': 28, 'segment': 29, 'residency': 7}


def frame(data):
    """A zstd frame whose blocks are not compressed."""
    blocks = [data[at:at + 65536] for at in range(0, len(data), 65536)]
    heads = [struct.pack('<I', len(block) << 3 | (number == len(blocks) - 1))[:3] for number, block in enumerate(blocks)]
    return struct.pack('<IBI', 0xfd2fb528, 0xa0, len(data)) + b''.join(map(bytes.__add__, heads, blocks))


def by_hand(path, events):
    """Writes a recording. An event: time in ms, type, reason, process, object, arguments, text."""
    about = b'{"format": "vidmm record", "version": 1}'
    columns, texts, before = [b''] * 11, b'', 0
    for time, kind, reason, process, handle, arguments, *text in events:
        encoded = text[0] + b'\0' if text else b''
        numbers = [('<Q', (time * 1000000 - before) % 2 ** 64), ('<Q', 1)] + [('<Q', value) for value in (*arguments, 0, 0, 0, 0)[:4]]
        numbers += [('<I', process), ('<I', handle), ('<I', len(encoded)), ('<H', TYPES[kind]), ('<H', reason)]
        columns = [column + struct.pack(*number) for column, number in zip(columns, numbers)]
        texts, before = texts + encoded, time * 1000000
    chunk = struct.pack('<IIII', 2, len(events), len(texts), 0) + b''.join(columns) + texts
    with open(path, 'wb') as file:
        file.write(frame(struct.pack('<IIII', 1, 0, len(about), 0) + about) + frame(chunk))
    return path


@test
def no_character_of_a_name_controls_the_terminal(folder):
    names = {b'a\x1b[2Jb\x1b]0;x\x07': 'a?[2Jb?]0;x?', b'c\xc2\x9b5m\x7f\n\r\t\x08': 'c?5m?????', b'd\x9b\xff\xc3\xc3(': 'd????(', b'\xc0\x80\xed\xa0\x80\xf4\x90\x80\x80e': '?' * 9 + 'e',
             'é\u202e中\u0301\U0001f600\ue000'.encode(): 'é?中?😀', b'f\xe4\xb8': 'f??'}
    path = by_hand(os.path.join(folder, 'names'), [(number, 'process', 1, number + 1, 0, (), name) for number, name in enumerate(names)] + [(9, 'process', 1, 9, 0, (), b'')])
    shown = vidmm('top', '--batch', path).stdout
    assert all(character == '\n' or character.isprintable() for character in shown.replace('\ue000', '')), shown
    for name in names.values():
        assert f' {name}' in shown, (name, shown)
    assert 'process 9' in shown
    # In another locale the names have the characters of that locale.
    plain = vidmm('top', '--batch', path, LANG='C', LC_ALL='C').stdout
    assert all(character == '\n' or ' ' <= character <= '~' for character in plain) and ' a?[2Jb?' in plain
    if pyte:
        terminal = Terminal([VIDMM, 'top', path], 80, 24)
        terminal.until(is_drawn)
        terminal.send(b'q')
        terminal.end()
        assert b'\x1b]0' not in terminal.bytes and b'\x9b5m' not in terminal.bytes and b'\x07' not in terminal.bytes


@test
def waits_that_last_are_shown_with_their_fence(folder):
    events = [(0, 'process', 1, 1, 0, (), b'one'), (0, 'process', 1, 2, 0, (), b'two'), (1, 'sync', 1, 1, 0x40, (7, 5, 3)), (2, 'sync', 1, 2, 0x44, (8, 0, 0)),
              (3, 'submit', 0, 2, 0x44, (0, 0, 0, 1)), (4, 'submit', 0, 1, 0x48, (0, 0, 0, 2)), (5, 'queue', 0, 2, 0x44, (1, 0)), (11, 'fence', 0, 0, 0, (1, 0, 1, 1))]
    path = os.path.join(folder, 'holds')
    shown = vidmm('top', '--batch', by_hand(path, events)).stdout
    assert re.search(r'10\.0 ms +0\.001 s now +one +object 7: value 5, had 3\n', shown) and re.search(r'9\.00 ms +0\.002 s now +two +object 8: a free unit\n', shown), shown
    assert re.search(r'7\.00 ms +0\.004 s now +one +node 0, submission 2\n', shown) and re.search(r'node 0 .* 55 % busy  1 queued, 0 on the node\n', shown), shown
    assert table(shown)['one']['QUEUED'] == '1' and table(shown)['two']['QUEUED'] == '0'
    released = events + [(12, 'sync', 2, 1, 0x40, (7, 5, 5)), (13, 'process', 2, 2, 0, ())]
    shown = vidmm('top', '--batch', by_hand(path, released)).stdout
    assert 'object' not in shown and table(shown)['two']['QUEUED'] == 'closed'


@test
def rates_of_a_live_recording_cover_the_last_second(folder):
    """An eviction in each tenth of the first 2 s: the window of a live recording has those of its time."""
    events = [(0, 'process', 1, 1, 0, (), b'one'), (0, 'segment', 1, 0, 0, (MIB, 0, 0, 1))]
    for time in range(0, 2000, 100):
        events += [(time, 'residency', 1, 1, 0x40, (4096, 0, 1, 0)), (time + 50, 'residency', 2, 1, 0x40, (4096, 1, 0, 0))]
    for last, wanted in (2000, 9), (2450, 5), (4000, 0):
        path = by_hand(os.path.join(folder, f'at-{last}'), events + [(last, 'process', 1, 2, 0, (), b'two')])
        with open(path, 'r+b') as file:
            hold_lock(file)
            shown = vidmm('top', '--batch', path).stdout
        match = re.search(r'rates: last ([\d.]+) (ms|s)', shown)
        seconds = float(match[1]) / (1000 if match[2] == 'ms' else 1)
        assert table(shown)['one']['EVICT'] == '20' and 0.85 < seconds <= 1
        assert abs(float(table(shown)['one']['EVICT/s']) * seconds - wanted) < 1, (last, shown)


@test
def memory_does_not_grow_with_the_events(folder):
    """Packets that never complete, processes that come and go."""
    events = []
    for number in range(4000):
        events.append((number, 'queue', 0, 1, 0x44, (number, 0)) if number % 2 else (number, 'process', 1 + number // 2 % 2, 2 + number // 4, 0, (), b'x'))
    shown = vidmm('top', '--batch', by_hand(os.path.join(folder, 'many'), events)).stdout
    assert head(shown)[3] == 4000 and len(table(shown)) <= 257 and '256 of ' in shown and '2000 on the node' in shown, shown[:400]


@test
def no_line_is_wider_than_the_terminal(folder):
    path = record(folder, '--vram', '25%', GLMARK)
    for columns in 40, 60, 79, 80, 81, 100, 119, 120, 121, 200, 300:
        text = vidmm('top', '--batch', path, columns=columns).stdout
        assert max(map(len, text.splitlines())) <= columns, columns


@test
def wrong_calls_are_refused(folder):
    path = record(folder, '--vram', '1M', EVERY)
    for args, code, text in ((['top'], 2, 'no recording'), (['top', path, path], 2, 'several'), (['top', path], 2, 'not a terminal: expected --batch'),
                             (['top', '-n', '3', path], 2, '--count is for --batch'), (['top', '-b', '-n', '-1', path], 2, 'negative'),
                             (['top', '-b', '--delay', '0', path], 2, 'out of range'), (['top', '-b', '--delay', 'nan', path], 2, '--delay'),
                             (['top', '--what', path], 2, 'try: vidmm top --help'), (['top', '-b', EVERY], 3, 'is not a recording'),
                             (['top', '-b', os.devnull], 4, 'is not a file'), (['top', '-b', os.path.join(folder, 'none')], 4, 'No such file')):
        done = vidmm(*args, code=code)
        assert text in done.stderr and not done.stdout, (args, done.stderr)
    with open('/dev/full', 'w', encoding='utf-8') as full:
        for count in '1', '2':
            done = subprocess.run([VIDMM, 'top', '-b', '-n', count, '-d', '0.01', path], stdout=full, stderr=subprocess.PIPE, check=False, env=ENVIRONMENT)
            assert done.returncode == 4 and b'standard output' in done.stderr, done


@test
def a_damaged_recording_is_shown_up_to_the_damage(folder):
    path = record(folder, '--vram', '25%', GLMARK)
    with open(path, 'r+b') as file:
        data = file.read()
        # The beginning of a frame. Inside the last one a wrong size can also mean that the file ends too early.
        file.seek(data.index(ZSTD_MAGIC, cut(data, 0.5)))
        file.write(b'\xff' * 64)
    done = vidmm('top', '--batch', '-n', '0', path, code=3)
    _, state, _, count = head(done.stdout)
    assert state == 'damaged' and count > 1000 and 'damaged at byte' in done.stderr
    assert table(done.stdout)


@test
def a_wrong_size_in_a_chunk_is_not_the_end_of_the_recording(folder):
    path = record(folder, '--vram', '25%', GLMARK)
    with open(path, 'r+b') as file:
        data = file.read()
        at = data.rindex(ZSTD_MAGIC, 0, data.rindex(ZSTD_MAGIC))  # the last chunk but one
        descriptor = data[at + 4]
        window, content = not descriptor & 0x20, (1 if descriptor & 0x20 else 0, 2, 4, 8)[descriptor >> 6]
        file.seek(at + 5 + window + content)
        file.write(struct.pack('<I', 0x1FFFFF << 3 | 2 << 1)[:3])  # the largest size of a block
    done = vidmm('top', '--batch', '-n', '0', path, code=3)
    _, state, _, count = head(done.stdout)
    assert state == 'damaged' and count > 1000 and 'longer than the file' in done.stderr


# ---- terminals ----

class Terminal:
    """A program in a terminal, and an emulator that has its screen."""
    def __init__(self, args, columns, lines, **environment):
        self.pid, self.fd = pty.fork()
        if not self.pid:
            fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack('HHHH', lines, columns, 0, 0))
            changed = dict(ENVIRONMENT, **dict({'TERM': 'xterm-256color'}, **environment))
            del changed['COLUMNS']
            os.execve(args[0], args, changed)
        self.screen = pyte.Screen(columns, lines)
        self.stream, self.bytes, self.status = pyte.ByteStream(self.screen), b'', None

    def lines(self):
        return [line.rstrip() for line in self.screen.display]

    def read(self):
        """Feeds what comes. False: the program has closed the terminal."""
        try:
            data = os.read(self.fd, 65536)
        except OSError:
            data = b''
        self.bytes += data
        self.stream.feed(data)
        return bool(data)

    def until(self, test):
        while not test(self.lines()):
            assert self.read(), ('ended', self.lines())
        return self.lines()

    def send(self, keys):
        os.write(self.fd, keys)

    def resize(self, columns, lines):
        self.screen.resize(lines, columns)
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack('HHHH', lines, columns, 0, 0))

    def end(self):
        """Returns the exit code, below 0: a signal."""
        while self.read():
            pass
        self.status = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        os.close(self.fd)
        return self.status

    def restored(self):
        """The program left the alternate screen, and showed the cursor again."""
        return self.bytes.rfind(b'\x1b[?1049l') > self.bytes.rfind(b'\x1b[?1049h') >= 0 and self.bytes.rfind(b'\x1b[?25h') > self.bytes.rfind(b'\x1b[?25l')


def is_drawn(lines):
    return lines[0].startswith('vidmm top:') and ' ended ' in lines[0] and 'q quit' in lines[-1]


def lists_every_op(lines):
    return any(re.match(r' *\d+ every-op', line) for line in lines)


@test
def keys_work_in_small_and_large_terminals(folder):
    if not pyte:
        return 'python3-pyte is not installed'
    path = record(folder, '--vram', '1M', EVERY)
    for columns, lines in (80, 24), (200, 60):
        terminal = Terminal([VIDMM, 'top', path], columns, lines)
        shown = terminal.until(is_drawn)
        assert shown[1].startswith('rates: all ') and 'sort: MiB' in shown[1]
        assert any(line.startswith('   ID NAME') for line in shown) and any('WAITS FOR' in line for line in shown)
        assert any('every-op' in line for line in shown) and any(re.match(r'memory 1 +\[.*\].* MiB', line) for line in shown)
        for keys, text in (b's', 'sort: PEAK'), (b'S', 'sort: MiB'), (b'\x1b[17~', 'sort: PEAK'), (b'r', 'PEAK, reversed'):
            terminal.send(keys)
            terminal.until(lambda now: text in now[1])
        terminal.send(b'/none\r')
        terminal.until(lambda now: 'filter: none' in now[1] and '0 of ' in now[1] and not lists_every_op(now))
        terminal.send(b'\x1b')
        terminal.until(lambda now: 'filter' not in now[1] and lists_every_op(now))
        terminal.send(b'/eve')
        terminal.until(lambda now: now[-1].startswith(' /eve_'))
        terminal.send(b'\x7f\r')
        terminal.until(lambda now: 'filter: ev' in now[1] and 'q quit' in now[-1])
        terminal.send(b'c')
        terminal.until(lambda now: '0 of ' in now[1])
        terminal.send(b'h')
        terminal.until(lambda now: any('Ctrl-C' in line for line in now))
        terminal.send(b' ')
        terminal.until(lambda now: any('WAITS FOR' in line for line in now))
        terminal.send(b'\x1bOB\x1bOA\x1b[5~\x1b[6~q')
        assert terminal.end() == 0 and terminal.restored()


def recording_of_processes(folder, count):
    """A replay of many programs at once."""
    traces = []
    with open(EVERY, encoding='utf-8') as file:
        text = file.read()
    for number in range(count):
        traces.append(os.path.join(folder, f'{number}.trace'))
        with open(traces[-1], 'w', encoding='utf-8') as file:
            file.write(text.replace('#program every-op', f'#program program-{number:02}'))
    return record(folder, '--vram', '8M', *traces)


@test
def processes_are_scrolled(folder):
    if not pyte:
        return 'python3-pyte is not installed'
    terminal = Terminal([VIDMM, 'top', recording_of_processes(folder, 30)], 80, 24)

    def first(lines):
        names = [line.split()[1] for line in lines if re.match(r' *\d+ program-', line)]
        return names[0] if names else None
    terminal.until(is_drawn)
    terminal.send(b'S')  # by name
    terminal.until(lambda now: 'sort: NAME' in now[1] and first(now) == 'program-00')
    assert '30 of 30 processes' in terminal.lines()[1]
    terminal.send(b'\x1bOB')
    terminal.until(lambda now: first(now) == 'program-01')
    terminal.send(b'\x1bOF')
    last = terminal.until(lambda now: any('program-29' in line for line in now))
    assert not any('program-00' in line for line in last)
    terminal.send(b'\x1bOH')
    terminal.until(lambda now: first(now) == 'program-00')
    terminal.send(b'r')
    terminal.until(lambda now: first(now) == 'program-29')
    terminal.send(b'q')
    assert terminal.end() == 0


@test
def the_terminal_may_change_its_size(folder):
    if not pyte:
        return 'python3-pyte is not installed'
    terminal = Terminal([VIDMM, 'top', record(folder, '--vram', '25%', GLMARK)], 80, 24)
    terminal.until(is_drawn)
    for columns, lines in (200, 60), (80, 24), (40, 10), (10, 3), (1, 1), (132, 43):
        terminal.resize(columns, lines)
        if columns >= 40:
            terminal.until(lambda now: len(now) == lines and is_drawn(now))
    assert any('APERT' in line for line in terminal.lines())
    terminal.send(b'q')
    assert terminal.end() == 0


@test
def signals_and_dumb_terminals_leave_the_terminal_as_it_was(folder):
    if not pyte:
        return 'python3-pyte is not installed'
    path = record(folder, '--vram', '1M', EVERY)
    for number in signal.SIGINT, signal.SIGTERM:
        terminal = Terminal([VIDMM, 'top', '--delay', '3600', path], 80, 24)
        terminal.until(is_drawn)
        os.kill(terminal.pid, number)
        assert terminal.end() == 0 and terminal.restored()
    for environment, colored in ({}, True), ({'NO_COLOR': '1'}, False), ({'TERM': 'vt100'}, False):
        terminal = Terminal([VIDMM, 'top', path], 80, 24, **environment)
        terminal.until(is_drawn)
        terminal.send(b'q')
        assert terminal.end() == 0 and (b'\x1b[36m' in terminal.bytes) == colored, environment
    for name in 'no-such-terminal', 'dumb':
        assert f'"{name}" is not known or cannot move its cursor' in no_terminal(path, name)


def no_terminal(path, name):
    pid, fd = pty.fork()
    if not pid:
        os.execve(VIDMM, [VIDMM, 'top', path], dict(ENVIRONMENT, TERM=name))
    text = b''
    while True:
        try:
            data = os.read(fd, 65536)
        except OSError:
            break
        if not data:
            break
        text += data
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 4
    os.close(fd)
    return text.decode()


if __name__ == '__main__':
    sys.exit(main())
