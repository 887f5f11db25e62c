#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""test_full.py VIDMM: a file system without space for what a command writes, and a client that may have little
memory (a cgroup's limit). TAP. What the system does not allow is skipped, with the reason."""
import os
import signal
import socket
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'support'))
from tap_tests import main, test

VIDMM = os.path.abspath(sys.argv[1])
DATA = os.path.join(os.environ['VIDMM_SOURCE_ROOT'], 'tests/replay/data')
RECORDING = os.path.join(DATA, 'importer.trace')
EXAMPLE = os.path.join(os.environ['VIDMM_SOURCE_ROOT'], 'examples/glmark2-1080p-skl.trace.zst')
ENVIRONMENT = 4
INSIDE = 'VIDMM_TEST_NAMESPACE'


def mount(folder, kib=64):
    """A tmpfs in the folder. Returns why there is none."""
    if os.environ.get(INSIDE) != 'yes':
        return 'no mount namespace may be created here'
    done = subprocess.run(['mount', '-t', 'tmpfs', '-o', f'size={kib}k', 'none', folder], capture_output=True, text=True,
                          check=False)
    if done.returncode:
        return done.stderr.strip()
    return None


def fill(folder):
    with open(os.path.join(folder, 'all'), 'ab', buffering=0) as file:
        try:
            while file.write(bytes(4096)):
                pass
        except OSError:
            pass


def unmount(folder):
    subprocess.run(['umount', '-l', folder], check=True)


def run(*args, **how):
    return subprocess.run([VIDMM, *args], stderr=subprocess.PIPE, text=True, check=False, **how)


def writers(folder, events):
    """Commands that write a file each."""
    def at(name):
        return os.path.join(folder, name)

    yield 'replay', '--record', at('a'), RECORDING
    yield 'report', events, '-o', at('b.html')
    yield 'export', events, '--perfetto=' + at('c')
    yield 'export', events, '--csv=' + at('d')
    yield 'export', events, '--sqlite=' + at('e')
    yield 'picture', at('f.png')


@test
def q_496_a_file_without_space_is_an_error(folder):
    full, events = os.path.join(folder, 'full'), os.path.join(folder, 'events')
    os.mkdir(full)
    assert run('replay', '--record', events, RECORDING, stdout=subprocess.PIPE).returncode == 0
    why = mount(full)
    if why:
        return why
    fill(full)
    try:
        for args in writers(full, events):
            done = run(*args, stdout=subprocess.PIPE)
            assert done.returncode == ENVIRONMENT, (args, done)
            assert 'No space left' in done.stderr or 'disk is full' in done.stderr, (args, done)
        # The report of a program is written by stores to a mapping.
        done = run('run', '--', 'true', stdout=subprocess.PIPE, env=dict(os.environ, TMPDIR=full))
        assert done.returncode == ENVIRONMENT and 'No space left' in done.stderr, done
    finally:
        unmount(full)
    return None


@test
def q_496_output_without_space_is_an_error(folder):
    full, events = os.path.join(folder, 'full'), os.path.join(folder, 'events')
    os.mkdir(full)
    assert run('replay', '--record', events, RECORDING, stdout=subprocess.PIPE).returncode == 0
    why = mount(full)
    if why:
        return why
    fill(full)
    try:
        for args in (['replay', RECORDING], ['caps', '--json'], ['explain', events], ['check', events], ['rules'],
                     ['sim', '--steps', '10'], ['coverage', events]):
            with open(os.path.join(full, 'all'), 'a', encoding='ascii') as file:
                done = run(*args, stdout=file)
            # If an earlier write failed than the last one, the reason is no longer known.
            named = 'No space left' in done.stderr or 'standard output could not be written' in done.stderr
            assert done.returncode == ENVIRONMENT and named, (args, done)
    finally:
        unmount(full)
    return None


def serve(folder, *args):
    """A host that accepts connections: it says so by the protocol of systemd, whatever its log is."""
    ready = os.path.join(folder, 'ready')
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listener:
        listener.bind(ready)
        server = subprocess.Popen([VIDMM, 'serve', '--socket', os.path.join(folder, 's'), '--set', 'Model=wddm1', *args],
                                  stderr=subprocess.PIPE, text=True, env=dict(os.environ, NOTIFY_SOCKET=ready))
        listener.settimeout(120)
        assert b'READY=1' in listener.recv(256)
    return server


def end(server):
    server.send_signal(signal.SIGTERM)
    log = server.communicate()[1]
    return server.returncode, log


def play(folder, name='importer.trace', **how):
    return run('replay', '--socket', os.path.join(folder, 's'), '--gpu-time', 'none', '--quiet', '--verify', 'stamps',
               os.path.join(DATA, name), stdout=subprocess.PIPE, **how)


@test
def q_496_a_host_goes_on_without_space_for_its_log_and_recording(folder):
    full = os.path.join(folder, 'full')
    os.mkdir(full)
    why = mount(full)
    if why:
        return why
    try:
        server = serve(folder, '--log', os.path.join(full, 'log'), '--record', os.path.join(full, 'record'))
        for name in ('importer.trace', EXAMPLE, 'tiled.trace'):  # from the second on without space
            done = play(folder, name)
            assert done.returncode == 0, done
            fill(full)
        code, log = end(server)
        assert code == ENVIRONMENT and 'No space left' in log, (code, log)
    finally:
        unmount(full)
    return None


class Cgroup:
    """A group of processes that may have so much memory, in either version of the interface."""

    def __init__(self, limit):
        self.path = None
        for root, name in (('/sys/fs/cgroup/memory', 'memory.limit_in_bytes'), ('/sys/fs/cgroup', 'memory.max')):
            path = os.path.join(root, f'vidmm-test-{os.getpid()}')
            try:
                os.mkdir(path)
                with open(os.path.join(path, name), 'r+', encoding='ascii') as file:
                    file.write(str(limit))
                self.path = path
                return
            except OSError as error:
                self.why = f'no cgroup with a limit of memory: {error}'
                if os.path.isdir(path):
                    os.rmdir(path)

    def enter(self):
        with open(os.path.join(self.path, 'cgroup.procs'), 'w', encoding='ascii') as file:
            file.write(str(os.getpid()))

    def remove(self):
        os.rmdir(self.path)


@test
def q_496_a_client_that_is_killed_for_its_memory_harms_no_other(folder):
    group = Cgroup(2 << 20)
    if not group.path:
        return group.why
    server = serve(folder)
    try:
        assert play(folder).returncode == 0
        killed = play(folder, EXAMPLE, preexec_fn=group.enter)
        assert killed.returncode in (0, ENVIRONMENT, -signal.SIGKILL), killed
        for name in ('importer.trace', 'tiled.trace'):
            done = play(folder, name)
            assert done.returncode == 0, (done, killed.returncode)
    finally:
        code, log = end(server)
        group.remove()
    assert code == 0, log
    return None if killed.returncode == -signal.SIGKILL else 'the limit ended no client'


def in_a_namespace():
    """Starts this program again where it may mount a file system, if the system allows that."""
    for flags in ('-m', '-rm'):
        done = subprocess.run(['unshare', flags, 'true'], capture_output=True, check=False)
        if done.returncode == 0:
            os.environ[INSIDE] = 'yes'
            os.execvp('unshare', ['unshare', flags, sys.executable, *sys.argv])
    os.environ[INSIDE] = 'no'


if __name__ == '__main__':
    if INSIDE not in os.environ:
        try:
            in_a_namespace()
        except OSError:
            os.environ[INSIDE] = 'no'
    sys.exit(main())
