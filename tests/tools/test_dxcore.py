#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""test_dxcore.py VIDMM LIBRARY C_CLIENT CPP_SOURCE: DXCore in clients of `vidmm serve`, in C and, if directx-headers is
installed, in C++ with its headers. TAP."""
import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile

VIDMM, LIBRARY, C_CLIENT, CPP_SOURCE = (os.path.abspath(path) for path in sys.argv[1:5])
INTEL = {'VidmmVendorId': 0x8086, 'VidmmDeviceId': 0x56A0, 'VidmmSubsystemVendorId': 0x1849, 'VidmmSubsystemId': 0x6004,
         'VidmmRevisionId': 8, 'VidmmDriverVersion': 0x001F000000651C07, 'VidmmHardware': 1, 'VidmmDetachable': 1}
CONFIGURATION = {'adapters': [
    {'description': 'Arc A770', 'bars': ['16M'], 'settings': INTEL},
    {'description': 'an NPU', 'bars': ['1M'], 'settings': {'VidmmHardwareType': 4, 'Model': 'wddm1'}},
]}
# The default driver version is that of the library.
MAJOR, MINOR, PATCH = map(int, subprocess.run([VIDMM, '--version'], capture_output=True, text=True, check=True).stdout.split()[1].split('.'))
FIRST = '''\
Arc A770, 8086:56a0, 60041849, revision 8
parts 8086:56a0, 6004:1849, 8
driver 001f000000651c07, model 2600
memory 16777216 0
hardware 1, integrated 0, detachable 1, attributes 1 1 1
'''
BEFORE = '2 adapters\n' + FIRST + f'''\
an NPU, 1d4d:0001, 00000000, revision 0
parts 1d4d:0001, 0000:0000, 0
driver {MAJOR << 48 | MINOR << 32 | PATCH << 16:016x}, model 1300
memory 1048576 0
hardware 0, integrated 0, detachable 0, attributes 0 0 1
80070057 80070057 80070057 80070057 80070057 80004003 0
notifications 0 887a0001 0
valid 1, stale 0, update 00000000
'''
VALID = 'valid 1, stale 0, update 00000000\n'
GONE = 'valid 0, stale 1, update 887a0005\n'
LEFT = 'left 0 0 0\n'
FINDINGS = ('DXC-05', 'DXC-07', 'DXC-15', 'DXC-19', 'DXC-10', 'DXC-24', 'C-243')


class Server:
    def __init__(self, folder):
        self.path = os.path.join(folder, 'socket')
        configuration = os.path.join(folder, 'host.json')
        with open(configuration, 'w', encoding='utf-8') as file:
            json.dump(CONFIGURATION, file)
        self.process = subprocess.Popen([VIDMM, 'serve', '--socket', self.path, '--config', configuration],
                                        stderr=subprocess.PIPE, text=True)
        line = self.process.stderr.readline()
        assert 'serves 2 adapters' in line, line

    def end(self):
        self.process.send_signal(signal.SIGTERM)
        self.process.communicate()
        assert self.process.returncode == 0, self.process.returncode


def run(client, folder, end_first):
    """What a client prints, and its errors. The server ends while the client waits (end_first), or after it."""
    server = Server(folder)
    environment = dict(os.environ, VIDMM_SOCKET=server.path, VIDMM_DEBUG='1')
    process = subprocess.Popen([client, LIBRARY], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                               text=True, env=environment)
    lines = ''
    while lines.count('\n') < BEFORE.count('\n'):
        line = process.stdout.readline()
        if not line:
            break
        lines += line
    if end_first:
        server.end()
    output, errors = process.communicate('\n')
    if not end_first:
        server.end()
    assert process.returncode == 0, (process.returncode, lines, output, errors)
    return lines + output, errors


def without_a_host(client, folder):
    """No socket is named: there are no adapters to enumerate."""
    environment = {name: value for name, value in os.environ.items() if name != 'VIDMM_SOCKET'}
    done = subprocess.run([client, LIBRARY], capture_output=True, text=True, env=environment, check=False)
    assert (done.returncode, done.stdout) == (2, 'no list: d0000001\n'), done
    environment['VIDMM_SOCKET'] = os.path.join(folder, 'absent')
    done = subprocess.run([client, LIBRARY], capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 2 and done.stdout.startswith('no list: d'), done


def same(actual, expected):
    assert actual == expected, f'\n{actual}\nexpected:\n{expected}'


def reads_all(client, folder):
    output, errors = run(client, folder, False)
    same(output, BEFORE + VALID + FIRST + LEFT)
    missing = [rule for rule in FINDINGS if f'vidmm: {rule}: ' not in errors]
    assert not missing, (missing, errors)


def survives_its_host(client, folder):
    same(run(client, folder, True)[0], BEFORE + GONE + FIRST + LEFT)


def build_cpp(folder):
    """The C++ client; None and a reason if it cannot be built here."""
    compiler = shutil.which('g++')
    flags = subprocess.run(['pkg-config', '--cflags', '--libs', 'DirectX-Headers'], capture_output=True, text=True, check=False)
    if not compiler or flags.returncode:
        return None, 'g++ or directx-headers is not installed'
    program = os.path.join(folder, 'dxcore_client_cpp')
    words = ['-isystem' + word[2:] if word.startswith('-I') else word for word in shlex.split(flags.stdout)]
    done = subprocess.run([compiler, '-std=c++17', '-Wall', CPP_SOURCE, *words, '-ldl', '-o', program],
                          capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return program, ''


TESTS = [
    ('DXC-26, DXC-29, C-243: %s reads the adapters of a host, and is told of its mistakes', reads_all),
    ('DXC-09, DXC-16: %s finds its adapters gone with their host, and still reads their properties', survives_its_host),
    ('DXC-25: %s without a host gets no list', without_a_host),
]


def main():
    number = 0
    print(f'1..{2 * len(TESTS)}')
    with tempfile.TemporaryDirectory() as top:
        cpp, reason = build_cpp(top)
        for name, client in (('a C client', C_CLIENT), ('a C++ client of directx-headers', cpp)):
            for title, test in TESTS:
                number += 1
                if not client:
                    print(f'ok {number} - {title % name} # SKIP {reason}')
                    continue
                with tempfile.TemporaryDirectory() as folder:
                    try:
                        test(client, folder)
                        print(f'ok {number} - {title % name}')
                    except AssertionError as error:
                        for line in str(error).splitlines():
                            print('#', line)
                        print(f'not ok {number} - {title % name}')


main()
