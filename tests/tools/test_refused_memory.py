#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""test_refused_memory.py VIDMM FAILING.so: refused calls for memory or a descriptor, one in each run. The program
never crashes, and never has the exit code of success with another output. TAP."""
import json
import os
import resource
import signal
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'support'))
from tap_tests import main, test

VIDMM, FAILING = (os.path.abspath(path) for path in sys.argv[1:3])
ENVIRONMENT = 4


def run(args, at=0, count=None, **how):
    environment = dict(os.environ, LD_PRELOAD=FAILING, VIDMM_FAIL_AT=str(at))
    if count:
        environment['VIDMM_FAIL_COUNT'] = count
    return subprocess.run([VIDMM, *args], capture_output=True, text=True, env=environment, check=False, **how)


def walk(folder, args, output, step=1):
    """Runs the command with each call refused, or with every STEPth. Returns the exit codes seen."""
    path = os.path.join(folder, 'count')
    expected = run(args, count=path)
    assert expected.returncode == 0, expected
    with open(path, encoding='ascii') as file:
        calls = int(file.read())
    codes = set()
    for at in range(1, calls + 1, step):
        done = run(args, at)
        assert 0 <= done.returncode <= ENVIRONMENT, (at, done)
        assert done.returncode != 2, (at, done)  # the command line is right
        if done.returncode == 0:
            assert output(done.stdout) == output(expected.stdout), (at, done)
        else:
            assert done.stderr or done.stdout, (at, done)
        codes.add(done.returncode)
    return codes


@test
def q_457_no_refused_call_of_caps_gives_a_wrong_success(folder):
    codes = walk(folder, ['caps', '--set', 'ApertureSize=16777216', '--json'], json.loads, 2)
    assert ENVIRONMENT in codes, codes


@test
def q_457_a_setting_that_cannot_be_read_is_not_a_default(folder):
    def aperture(text):
        return [line for line in text.splitlines() if '16 MiB' in line]

    assert aperture(run(['caps', '--set', 'ApertureSize=16777216']).stdout)
    walk(folder, ['caps', '--set', 'ApertureSize=16777216'], aperture, 9)


@test
def q_457_no_refused_call_of_replay_gives_a_wrong_success(folder):
    def counts(text):
        return [line for line in text.splitlines() if 'of this machine' not in line]

    recording = os.path.join(os.environ['VIDMM_SOURCE_ROOT'], 'tests/replay/data/importer.trace')
    codes = walk(folder, ['replay', '--backend', 'sim', '--vram', '64K', recording], counts, 7)
    assert ENVIRONMENT in codes, codes


def serve_and_play(folder, at, count=None):
    """A host, of which one call is refused, and two clients one after the other."""
    path = os.path.join(folder, f's{at}')
    environment = dict(os.environ, LD_PRELOAD=FAILING, VIDMM_FAIL_AT=str(at))
    if count:
        environment['VIDMM_FAIL_COUNT'] = count
    with subprocess.Popen([VIDMM, 'serve', '--socket', path, '--set', 'Model=wddm1'], stderr=subprocess.PIPE, text=True,
                          env=environment) as server:
        if 'serves' not in server.stderr.readline():
            return server.wait(), None, server.stderr.read()
        data = os.path.join(os.environ['VIDMM_SOURCE_ROOT'], 'tests/replay/data')
        clients = [subprocess.run([VIDMM, 'replay', '--socket', path, '--gpu-time', 'none', '--quiet', '--verify', 'stamps',
                                   os.path.join(data, name)], capture_output=True, text=True, check=False)
                   for name in ('importer.trace', 'tiled.trace')]
        server.send_signal(signal.SIGTERM)
        log = server.communicate()[1]
        return server.returncode, clients, log


@test
def q_458_a_refused_call_of_a_host_costs_a_client_that_call_only(folder):
    path = os.path.join(folder, 'count')
    code, clients, log = serve_and_play(folder, 0, path)
    assert code == 0 and [client.returncode for client in clients] == [0, 0], (clients, log)
    with open(path, encoding='ascii') as file:
        calls = int(file.read())
    for at in range(100, calls + 1, 17):
        code, clients, log = serve_and_play(folder, at)
        if not clients:  # refused at the start
            assert code in (1, ENVIRONMENT), (at, code, log)
            continue
        assert code == 0, (at, code, log)
        assert 'is cut off' not in log, (at, log)
        for client in clients:
            assert client.returncode in (0, ENVIRONMENT), (at, client, log)


@test
def q_456_a_limit_of_file_size_is_an_error_and_no_signal(folder):
    def small_files():
        resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20))

    recording = os.path.join(os.environ['VIDMM_SOURCE_ROOT'], 'tests/replay/data/importer.trace')
    for args in (['replay', recording], ['serve', '--socket', os.path.join(folder, 's')], ['caps']):
        done = subprocess.run([VIDMM, *args], capture_output=True, text=True, preexec_fn=small_files, check=False)
        assert done.returncode in (1, ENVIRONMENT) and done.stderr + done.stdout, (args, done)


if __name__ == '__main__':
    sys.exit(main())
