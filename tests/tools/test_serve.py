#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""test_serve.py VIDMM CLIENT DRIVER.so...: `vidmm serve` and `vidmm clients` from outside: socket, signals, configuration. TAP."""
import json
import os
import resource
import select
import signal
import socket
import stat
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'support'))
from tap_tests import main, test

VIDMM = os.path.abspath(sys.argv[1])
CLIENT = os.path.abspath(sys.argv[2])
DRIVER = {os.path.basename(path)[:-len('.so')]: os.path.abspath(path) for path in sys.argv[3:]}


def environment(folder, **more):
    full = {key: value for key, value in os.environ.items() if not key.startswith(('LISTEN_', 'NOTIFY_'))}
    full.pop('XDG_RUNTIME_DIR', None)
    if folder:
        full['XDG_RUNTIME_DIR'] = folder
    return dict(full, **more)


def vidmm(folder, *args):
    return subprocess.run([VIDMM, *args], capture_output=True, text=True, env=environment(folder), check=False)


class Server:
    """A running vidmm serve, which has reported that it accepts connections."""

    def __init__(self, folder, *args, **how):
        self.process = subprocess.Popen([VIDMM, 'serve', *args], stderr=subprocess.PIPE, text=True, env=environment(folder),
                                        **how)
        self.lines = [self.process.stderr.readline()]
        assert 'serves' in self.lines[0], self.lines
        self.alone = self.sockets()

    def sockets(self):
        folder = f'/proc/{self.process.pid}/fd'
        count = 0
        for name in os.listdir(folder):
            try:
                count += os.readlink(os.path.join(folder, name)).startswith('socket:')
            except FileNotFoundError:
                pass  # closed meanwhile
        return count

    def await_departures(self):
        """Returns when the host has closed the connections of all clients: it has seen that they are gone."""
        while self.sockets() > self.alone:
            os.sched_yield()

    def end(self, number=signal.SIGTERM, code=0):
        self.process.send_signal(number)
        self.lines += self.process.communicate()[1].splitlines()
        assert self.process.returncode == code, (self.process.returncode, self.lines)
        return '\n'.join(self.lines)


def connect(path):
    client = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    client.connect(path)
    return client


@test
def it_serves_at_the_default_path(folder):
    server = Server(folder)
    path = os.path.join(folder, 'vidmm', 'socket')
    assert stat.S_IMODE(os.stat(path).st_mode) == 0o600, oct(os.stat(path).st_mode)
    assert stat.S_IMODE(os.stat(os.path.dirname(path)).st_mode) == 0o700
    done = vidmm(folder, 'clients')
    assert done.returncode == 0 and 'no client is connected' in done.stdout, done
    listed = json.loads(vidmm(folder, 'clients', '--json').stdout)
    assert listed == {'schema_version': 1, 'clients': []}, listed
    server.end()
    assert not os.path.exists(path)
    done = vidmm(folder, 'clients')
    assert done.returncode == 4 and 'no server listens there' in done.stderr, done


@test
def clients_follows_vidmm_socket_and_the_option_takes_precedence(folder):
    path, absent = os.path.join(folder, 's'), os.path.join(folder, 'absent')
    server = Server(folder, '--socket', path)

    def clients(named, *args):
        return subprocess.run([VIDMM, 'clients', *args], capture_output=True, text=True, check=False,
                              env=environment(folder, VIDMM_SOCKET=named))

    done = clients(path)
    assert done.returncode == 0 and 'no client is connected' in done.stdout, done
    done = clients(absent)
    assert done.returncode == 4 and absent in done.stderr, done
    done = clients(absent, '--socket', path)
    assert done.returncode == 0, done
    done = clients('')  # empty: as if not set
    assert done.returncode == 4 and os.path.join(folder, 'vidmm', 'socket') in done.stderr, done
    server.end()


@test
def a_driver_that_crashes_is_named_in_the_log(folder):
    if 'linked_driver' not in DRIVER:
        return 'a sanitizer says more'
    log = os.path.join(folder, 'log')
    for options in ((), ('--log', log)):
        done = vidmm(folder, 'serve', '--driver', DRIVER['scripted_driver'], '--set', 'Break=12', *options)
        assert done.returncode == -signal.SIGSEGV, done
        text = done.stderr
        if options:
            with open(log, encoding='utf-8') as file:
                text = file.read()
        assert 'vidmm: the driver crashed in DxgkDdiStartDevice: SIGSEGV at address 0x0 (Q-441)\n' in text, (text, done)
        assert 'vidmm: in ' in text and '(scripted_driver.so+0x' in text, text
    return None


def few_descriptors():
    resource.setrlimit(resource.RLIMIT_NOFILE, (60, 240))


@test
def clients_connect_after_more_peers_than_descriptors_have_gone(folder):
    path = os.path.join(folder, 's')
    server = Server(folder, '--socket', path, preexec_fn=few_descriptors)
    try:
        with open(f'/proc/{server.process.pid}/limits', encoding='ascii') as file:
            files = next(line for line in file if line.startswith('Max open files')).split()
        assert files[3:5] == ['240', '240'], files
        for stranger in [connect(path) for _ in range(300)]:
            stranger.close()
        done = [vidmm(folder, 'clients', '--socket', path).returncode]
        while done[-1] != 0 and len(done) < 100:
            done.append(vidmm(folder, 'clients', '--socket', path).returncode)
        assert done[-1] == 0, done
    finally:
        server.end()


@test
def one_program_cannot_use_up_the_descriptors(folder):
    path = os.path.join(folder, 's')
    examples, data = os.environ['VIDMM_EXAMPLES'], os.path.join(os.environ['VIDMM_SOURCE_ROOT'], 'tests/replay/data')
    server = Server(folder, '--socket', path, '--set', 'Model=wddm1', preexec_fn=few_descriptors)
    play = 'replay', '--socket', path, '--gpu-time', 'none', '--quiet', '--verify', 'stamps'
    done = vidmm(folder, *play, os.path.join(examples, 'glmark2-1080p-skl.trace.zst'))
    assert done.returncode == 4 and 'memory' in done.stderr, done
    done = vidmm(folder, *play, os.path.join(data, 'every-op.trace'))
    assert done.returncode == 0, done
    said = server.end()
    assert 'it has reached its limit' in said and 'no descriptors left' not in said, said


FAULTS = 'memory', 'mapping', 'descriptor', 'thread', 'socket'


def serve_with_fault(folder, fault):
    """Two programs play one after the other against a host, one of whose calls fails. Returns their exit codes and the log."""
    path = os.path.join(folder, 's')
    data = os.path.join(os.environ['VIDMM_SOURCE_ROOT'], 'tests/replay/data')
    server = Server(folder, '--socket', path, '--set', 'Model=wddm1', '--fault', fault)
    codes = [vidmm(folder, 'replay', '--socket', path, '--gpu-time', 'none', '--quiet', '--verify', 'stamps',
                   os.path.join(data, name)).returncode for name in ('importer.trace', 'tiled.trace')]
    server.await_departures()
    return codes, server.end()


@test
def q_488_one_fault_costs_one_call(folder):
    for wrong in ('memory', 'memory:', 'memory:x', 'seeds:1', 'seed:-1', 'thread:99999999999', ':1'):
        done = vidmm(folder, 'serve', '--fault', wrong)
        assert done.returncode == 2, done
        if 'release build' in done.stderr:
            return 'a release build has no faults'
        assert f'--fault "{wrong}" is not valid: expected memory:N' in done.stderr, done
    codes, said = serve_with_fault(folder, 'memory:0')
    assert codes == [0, 0] and 'faults: 0 calls failed; calls for memory ' in said, (codes, said)
    counted = said.split('calls for ')[-1].splitlines()[0].split(', ')
    calls = {name: int(count) for name, count in (part.split() for part in counted)}
    assert tuple(calls) == FAULTS and all(calls.values()), calls
    # The third descriptor is the connection of the first program's device: the host closes it.
    codes, said = serve_with_fault(folder, 'descriptor:3')
    assert codes == [4, 0] and 'the host has no descriptors left' in said, (codes, said)
    for kind in FAULTS:
        for at in sorted({1, calls[kind] // 3 + 1, calls[kind] // 2 + 1}):
            codes, said = serve_with_fault(folder, f'{kind}:{at}')
            # The player that lost a call says so; the other one does not notice.
            assert all(code in (0, 4) for code in codes) and 0 in codes, (kind, at, codes, said)
            assert 'is cut off' not in said, (kind, at, said)
    codes, said = serve_with_fault(folder, 'seed:1')
    assert all(code in (0, 4) for code in codes), (codes, said)
    return None


@test
def both_signals_end_it_with_silent_peers_connected(folder):
    for number in signal.SIGTERM, signal.SIGINT:
        path = os.path.join(folder, 's')
        server = Server(folder, '--socket', path)
        clients = [connect(path) for _ in range(5)]
        server.end(number)
        for client in clients:
            try:
                assert client.recv(1) == b''
            except ConnectionResetError:
                pass  # it was still in the queue of those to be accepted
            client.close()


class Sleeper:
    """A program whose threads hold locks, sleep in pages of fences, wait in calls and have work queued.

    It exits with 4 when each of them has ended because the device was removed."""

    def __init__(self, path, what):
        self.process = subprocess.Popen([CLIENT, 'asleep', path, what], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.has_come(1)

    def has_come(self, times):
        assert self.process.stdout.read(times) == b'.' * times

    def end(self):
        self.process.communicate()
        assert self.process.returncode == 4, self.process.returncode


@test
def every_end_is_the_removal_of_the_device(folder):
    config = os.path.join(folder, 'config')
    with open(config, 'w', encoding='utf-8') as file:
        json.dump({'socket': os.path.join(folder, 's'),
                   'adapters': [{'settings': {'Model': 'wddm1'}}, {'driver': DRIVER['scripted_driver'], 'bars': ['16M'], 'settings': {'Break': 13}}]}, file)
    for number, code in [(signal.SIGTERM, 0), (signal.SIGINT, 0), (signal.SIGKILL, -signal.SIGKILL)]:
        server = Server(folder, '--config', config)
        programs = [Sleeper(os.path.join(folder, 's'), what) for what in ('make', 'sleep', 'open')]
        for program in programs:
            program.has_come(1)
        said = server.end(number, code)
        for program in programs:
            program.end()
        assert code or said.count('is cut off: the host ends') == 3, said


@test
def a_second_server_is_refused_and_a_stale_socket_replaced(folder):
    path = os.path.join(folder, 's')
    server = Server(folder, '--socket', path)
    done = vidmm(folder, 'serve', '--socket', path)
    assert done.returncode == 4 and 'another server' in done.stderr, done
    server.end(signal.SIGKILL, -signal.SIGKILL)
    assert os.path.exists(path)
    Server(folder, '--socket', path).end()


@test
def a_file_that_is_no_socket_is_not_replaced(folder):
    path = os.path.join(folder, 'file')
    with open(path, 'w', encoding='utf-8') as file:
        file.write('precious')
    done = vidmm(folder, 'serve', '--socket', path)
    assert done.returncode == 4 and 'no socket' in done.stderr, done
    with open(path, encoding='utf-8') as file:
        assert file.read() == 'precious'


@test
def a_folder_that_others_may_enter_is_refused(folder):
    os.mkdir(os.path.join(folder, 'vidmm'))
    os.chmod(os.path.join(folder, 'vidmm'), 0o755)
    done = vidmm(folder, 'serve')
    assert done.returncode == 4 and 'others may reach' in done.stderr, done


@test
def without_a_place_it_says_so(folder):
    for verb in 'serve', 'clients':
        done = vidmm(None, verb)
        assert done.returncode == 4 and 'XDG_RUNTIME_DIR' in done.stderr, done
    done = vidmm(folder, 'serve', '--socket', os.path.join(folder, 'x' * 200))
    assert done.returncode == 4, done


@test
def several_adapters_and_a_log(folder):
    log = os.path.join(folder, 'log')
    config = os.path.join(folder, 'config')
    with open(config, 'w', encoding='utf-8') as file:
        json.dump({'socket': os.path.join(folder, 's'), 'log': log, 'clients': 3,
                   'limits': {'channels': 2, 'unread': '64K', 'memory': '1G', 'handles': 1000},
                   'adapters': [{'driver': 'softgpu', 'bars': ['64M'], 'settings': {'VramBanks': 1, 'Model': 'wddm1'}, 'description': 'one'},
                                {'driver': 'softgpu', 'settings': {'Model': 'wddm2', 'VramPageSize': '64K'}},
                                {'driver': DRIVER['scripted_driver'], 'bars': ['16M'], 'system_memory': '1G'}]}, file)
    process = subprocess.Popen([VIDMM, 'serve', '--config', config, '--driver', 'softgpu'], env=environment(folder))
    while not os.path.exists(log) or 'serves 4 adapters' not in open(log, encoding='utf-8').read():
        assert process.poll() is None
        select.select([], [], [], 0.01)
    client = connect(os.path.join(folder, 's'))
    client.send(b'what?')
    assert client.recv(1) == b''
    process.terminate()
    assert process.wait() == 0
    with open(log, encoding='utf-8') as file:
        text = file.read()
    assert 'shorter than the head' in text and text.rstrip().endswith('stops on a signal'), text


@test
def nobody_fills_the_log(folder):
    server = Server(folder)
    path = os.path.join(folder, 'vidmm', 'socket')
    for _ in range(1000):
        client = connect(path)
        client.send(b'nonsense' * 4)
        assert client.recv(16) == b''
        client.close()
    text = server.end()
    refused = [line for line in text.splitlines() if 'refused: pid' in line]
    assert 50 <= len(refused) < 900, text
    del server


@test
def the_log_has_the_reasons_of_failures(folder):
    log, config = os.path.join(folder, 'log'), os.path.join(folder, 'config')
    for linked, code in (2, 1), (1, 0):
        with open(config, 'w', encoding='utf-8') as file:
            json.dump({'socket': os.path.join(folder, 's'), 'adapters': [{'driver': 'softgpu', 'settings': {'LinkedAdapters': linked, 'Model': 'wddm1'}}]}, file)
        process = subprocess.Popen([VIDMM, 'serve', '--config', config, '--log', log], env=environment(folder), stderr=subprocess.DEVNULL)
        while process.poll() is None and not (os.path.exists(log) and 'serves 1 adapter' in open(log, encoding='utf-8').read()):
            select.select([], [], [], 0.01)
        process.terminate()
        assert process.wait() == code
        with open(log, encoding='utf-8') as file:
            text = file.read()
        assert (' reason ' in text and 'LNK-03' in text) == (code == 1), text
        os.unlink(log)


@test
def q_421_an_adapter_may_have_a_device_model(folder):
    config = os.path.join(folder, 'config')
    socket_path = os.path.join(folder, 's')

    def write(**more):
        with open(config, 'w', encoding='utf-8') as file:
            json.dump({'socket': socket_path, 'adapters': [{'driver': DRIVER['copier_kmd'], **more}]}, file)

    write(device=DRIVER['copier'])
    server = Server(folder, '--config', config)
    server.end(signal.SIGTERM, 0)
    for code, more in ((1, {'device': DRIVER['copier'], 'bars': ['1M']}), (1, {}), (3, {'device': DRIVER['copier_kmd']}), (3, {'device': ''}), (3, {'device': 'softgpu'})):
        write(**more)
        done = vidmm(folder, 'serve', '--config', config)
        assert done.returncode == code, (more, done)


@test
def bad_configurations_are_refused(folder):
    bad = ['', '[]', '{"sokcet": "x"}', '{"socket": 3}', '{"adapters": {}}', '{"adapters": [{"bars": [5]}]}',
           '{"adapters": [{"bars": []}]}', '{"adapters": [{"settings": {"a": "b"}}]}',
           '{"adapters": [{"settings": {"Model": "wddm9"}}]}', '{"adapters": [{"settings": {"a": "wddm2"}}]}', '{"limits": {"channels": 0}}',
           '{"limits": {"channels": -1}}', '{"limits": {"memory": "much"}}', '{"clients": 1, "clients": 2}',
           '{"other_users": 1}', '{"adapters": [{"driver": ""}]}', '{"adapters": [' + ','.join(['{}'] * 17) + ']}']
    for text in bad:
        path = os.path.join(folder, 'config')
        with open(path, 'w', encoding='utf-8') as file:
            file.write(text)
        done = vidmm(folder, 'serve', '--config', path)
        assert done.returncode == 3 and path in done.stderr, (text, done)
    done = vidmm(folder, 'serve', '--config', os.path.join(folder, 'none'))
    assert done.returncode == 3 and 'none: ' in done.stderr and ':-1' not in done.stderr, done
    with open(os.path.join(folder, 'config'), 'w', encoding='utf-8') as file:
        json.dump({'adapters': [{}, {'settings': {'SwizzlingRange': 1}}]}, file)
    done = vidmm(folder, 'serve', '--config', os.path.join(folder, 'config'))
    assert done.returncode == 3 and 'softgpu has no registry value "SwizzlingRange"' in done.stderr, done


@test
def usage_and_drivers(folder):
    for args in (['--what'], ['word'], ['--driver', ''], ['--set', 'Model'], ['--set', 'Model=wddm9'], ['--set', '=1'], ['--set', 'SwizzlingRange=1'], ['--set', 'Vidmm', '--policy', 'lru']):
        assert vidmm(folder, 'serve', *args).returncode == 2, args
    assert vidmm(folder, 'clients', 'word').returncode == 2
    assert vidmm(folder, 'serve', '--driver', os.path.join(folder, 'none.so')).returncode == 3
    assert vidmm(folder, 'serve', '--driver', DRIVER['empty_driver']).returncode == 3
    done = vidmm(folder, 'serve', '--driver', DRIVER['lacking_driver'])
    assert done.returncode in (1, 3), done
    assert not os.path.exists(os.path.join(folder, 'vidmm', 'socket'))


@test
def systemd_hands_a_socket_over(folder):
    path = os.path.join(folder, 'handed')
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    listener.bind(path)
    listener.listen(5)
    script = 'exec 3<&"$1" && shift && LISTEN_FDS=1 LISTEN_PID=$$ exec "$@"'
    process = subprocess.Popen(['sh', '-c', script, 'sh', str(listener.fileno()), VIDMM, 'serve'], stderr=subprocess.PIPE,
                               text=True, pass_fds=[listener.fileno()], env=environment(folder))
    assert "systemd's socket" in process.stderr.readline()
    done = vidmm(folder, 'clients', '--socket', path)
    assert done.returncode == 0, done
    process.terminate()
    process.communicate()
    assert process.returncode == 0 and os.path.exists(path)
    listener.close()


if __name__ == '__main__':
    sys.exit(main())
