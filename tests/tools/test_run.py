#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""test_run.py VIDMM CLIENT PRESSURE LIBRARY FILE.so...: `vidmm run` from outside. TAP."""
import glob
import os
import re
import shutil
import signal
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'support'))
from tap_tests import main, test

VIDMM = os.path.abspath(sys.argv[1])
CLIENT = os.path.abspath(sys.argv[2])
PRESSURE = os.path.abspath(sys.argv[3])
LIBRARY = os.path.abspath(sys.argv[4])
FILE = {os.path.basename(path)[:-len('.so')]: os.path.abspath(path) for path in sys.argv[5:]}
MODES = (), ('--serve',)
UNSUCCESSFUL, DEVICE_REMOVED, INVALID_PARAMETER, NAME_NOT_FOUND = 0xC0000001, 0xC00002B6, 0xC000000D, 0xC0000034
NOT_SUPPORTED = 0xC00000BB


def environment(folder, **more):
    full = {key: value for key, value in os.environ.items() if not key.startswith(('VIDMM_SOCKET', 'VIDMM_ADAPTER', 'VIDMM_DEBUG'))}
    # ThreadSanitizer ends a child of fork() that starts threads, unless it is told not to.
    tsan = ':'.join(filter(None, (full.get('TSAN_OPTIONS'), 'die_after_fork=0')))
    return dict(full, TMPDIR=folder, XDG_RUNTIME_DIR=os.path.join(folder, 'runtime'), TSAN_OPTIONS=tsan, **more)


def start(folder, *args, **how):
    variables = how.pop('variables', {})
    return subprocess.Popen(args, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment(folder, **variables), **how)


def finish(process):
    process.stdout_text, process.stderr_text = process.communicate()
    return process


def run(folder, *args, **how):
    return finish(start(folder, VIDMM, 'run', *args, **how))


def left_behind(folder):
    return glob.glob(os.path.join(folder, 'vidmm-run-*'))


def calls(page):
    """The section of the calls: {function: {status: number}}."""
    table, function = {}, None
    for line in page.split('\nCalls\n')[1].split('\n\n')[0].splitlines():
        found = re.match(r'  (\w+)? +([\d,]+)  (\w+)', line)
        if found:
            function = found[1] or function
            table.setdefault(function, {})[found[3]] = int(found[2].replace(',', ''))
    return table


@test
def a_program_gets_an_adapter_and_keeps_its_output_and_exit_code(folder):
    for mode in MODES:
        done = run(folder, *mode, '--', CLIENT, 'exit')
        assert done.returncode == 7 and done.stdout_text == 'enumerated: 0x00000000\n', (done.returncode, done.stdout_text, done.stderr_text)
        assert f'{CLIENT} exited with 7' in done.stderr_text, done.stderr_text
        assert not left_behind(folder)


@test
def every_name_of_the_library_is_found(folder):
    for name in 'libdxcore.so', 'libdxg.so', 'libdxg.so.1', 'libvidmm.so':
        done = run(folder, '--', CLIENT, 'exit', name)
        assert done.returncode == 7, (name, done.stdout_text, done.stderr_text)


@test
def the_path_of_wsl_is_found_or_the_page_says_why_not(folder):
    path = '/usr/lib/wsl/lib/libdxcore.so'
    done = run(folder, '--', CLIENT, 'exit', path)
    said = f'{path} was not the library: ' in done.stderr_text
    assert (done.returncode == 7) != said, (done.returncode, done.stdout_text, done.stderr_text)
    done = run(folder, '--no-namespace', '--', CLIENT, 'exit', path)
    if not os.path.exists(path):
        assert done.returncode == 96, (done.returncode, done.stdout_text)
    assert not left_behind(folder)


@test
def the_page_has_calls_by_function_and_status_and_unsupported_ones_first(folder):
    for mode in MODES:
        for what in 'calls', '_exit':
            page = os.path.join(folder, 'page')
            done = run(folder, *mode, '--set', 'Model=wddm1', '--report', page, '--', CLIENT, what)
            assert done.returncode == 5, (done.returncode, done.stdout_text, done.stderr_text)
            assert done.stderr_text == '', done.stderr_text
            with open(page, encoding='utf-8') as file:
                text = file.read()
            table = calls(text)
            assert table['D3DKMTEnumAdapters2'] == {'STATUS_SUCCESS': 1 + (what == '_exit')}, text
            assert list(table['D3DKMTLock'].values()) == [2] and 'STATUS_SUCCESS' not in table['D3DKMTLock'], text
            assert table['D3DKMTCreatePagingQueue'] == {'STATUS_NOT_SUPPORTED': 1}, text
            assert text.index('Not supported') < text.index('\nCalls'), text
            assert 'D3DKMTCreatePagingQueue, once' in text.split('Not supported')[1].split('\n\n')[0], text
            assert 'aperture' in text and 'of system memory' in text, text


@test
def the_events_of_a_host_are_recorded_with_the_names_of_processes(folder):
    record = os.path.join(folder, 'record')
    done = run(folder, '--serve', '--set', 'Model=wddm1', '--record', record, '--', CLIENT, 'calls')
    assert done.returncode == 5, (done.returncode, done.stderr_text)
    explained = subprocess.run([VIDMM, 'explain', record], capture_output=True, text=True, check=True).stdout
    assert f'({os.path.basename(CLIENT)}): ' in explained and 'last failed call' in explained, explained
    host = serve(folder, '--record', record)
    done = plain(folder, 'exit')
    assert done.returncode == 7, (done.returncode, done.stderr_text)
    host.terminate()
    assert finish(host).returncode == 0, host.stderr_text
    explained = subprocess.run([VIDMM, 'explain', record], capture_output=True, text=True, check=True).stdout
    assert f'({os.path.basename(CLIENT)}): ' in explained and ' 0 failed' in explained, explained
    done = run(folder, '--serve', '--record', os.path.join(folder, 'none', 'record'), '--', CLIENT, 'exit')
    assert done.returncode == 4 and 'none/record: No such file' in done.stderr_text, (done.returncode, done.stderr_text)


@test
def memory_at_its_peak_is_that_of_the_program(folder):
    for mode in MODES:
        done = run(folder, *mode, '--set', 'Model=wddm1', '--bar', '16M', '--', PRESSURE, '8', '4')
        assert done.returncode == 0 and '0 words wrong' in done.stdout_text, (done.stdout_text, done.stderr_text)
        page = done.stderr_text
        assert re.search(r'segment 1 +memory +16.0 MiB of 16.0 MiB', page), page
        assert re.search(r'pressure +32.0 MiB, and 0 B at the end', page), page
        assert re.search(r'evictions [1-9]', page), page
        assert calls(page)['D3DKMTCreateAllocation'] == {'STATUS_SUCCESS': 8}, page


def evictions(folder, *options):
    done = run(folder, *options, '--set', 'Model=wddm1', '--bar', '16M', '--', PRESSURE, '24', '1', 'libdxcore.so', '8')
    assert done.returncode == 0 and '0 words wrong' in done.stdout_text, (done.stdout_text, done.stderr_text)
    return int(re.search(r'evictions ([\d,]+)', done.stderr_text)[1].replace(',', ''))


@test
def q_300_the_order_of_eviction_is_an_option(folder):
    for mode in MODES:
        lru, mru = (evictions(folder, *mode, '--policy', name) for name in ('lru', 'mru'))
        assert mru < lru, (mode, lru, mru)
        done = run(folder, *mode, '--policy', 'newest', '--', CLIENT, 'exit')
        assert done.returncode == 2 and '--policy "newest" is not valid: expected lru, clock, mru or predicted' in done.stderr_text, done.stderr_text


@test
def q_352_a_host_beside_the_program_takes_a_policy_file(folder):
    path = FILE['own_mru']
    assert evictions(folder, '--serve', '--policy', path) < evictions(folder, '--serve', '--policy', 'lru')
    done = run(folder, '--policy', path, '--', CLIENT, 'exit')
    assert done.returncode == 2 and '--policy FILE needs --serve' in done.stderr_text and not done.stdout_text, done.stderr_text
    done = run(folder, '--serve', '--policy', './absent.so', '--', CLIENT, 'exit')
    assert done.returncode == 3 and 'Q-352' in done.stderr_text and not done.stdout_text, done.stderr_text


@test
def softgpu_is_of_wddm_2_unless_the_options_say_otherwise(folder):
    for mode in MODES:
        for options, queue in (((), 'STATUS_SUCCESS'), (('--set', 'Model=wddm2'), 'STATUS_SUCCESS'),
                               (('--interface', '2.0'), 'STATUS_SUCCESS'), (('--set', 'HardwareQueues=1'), 'STATUS_SUCCESS'),
                               (('--set', 'Model=wddm1'), 'STATUS_NOT_SUPPORTED'), (('--interface', '1.2'), 'STATUS_NOT_SUPPORTED')):
            done = run(folder, *mode, *options, '--', CLIENT, 'calls')
            assert done.returncode == 5, (options, done.returncode, done.stdout_text, done.stderr_text)
            assert calls(done.stderr_text)['D3DKMTCreatePagingQueue'] == {queue: 1}, (options, done.stderr_text)


@test
def a_crash_leaves_a_page(folder):
    for mode in MODES:
        done = run(folder, *mode, '--', CLIENT, 'crash')
        assert done.returncode == 128 + signal.SIGSEGV, done.returncode
        assert 'was ended by signal 11' in done.stderr_text and 'Memory of the adapter' in done.stderr_text, done.stderr_text
        assert calls(done.stderr_text)['D3DKMTEnumAdapters2'] == {'STATUS_SUCCESS': 1}, done.stderr_text
        assert not left_behind(folder)


@test
def signals_are_passed_on(folder):
    for mode in MODES:
        process = start(folder, VIDMM, 'run', *mode, '--', CLIENT, 'signals')
        assert process.stdout.readline().startswith('enumerated: 0x0000'), process.stderr.read()
        assert process.stdout.readline() == 'ready\n'
        for number in signal.SIGUSR1, signal.SIGINT, signal.SIGTERM:
            process.send_signal(number)
            assert process.stdout.readline() == f'got {number.value}\n'
        finish(process)
        assert process.returncode == 9, (process.returncode, process.stderr_text)


@test
def the_signal_that_ends_a_program_is_in_the_exit_code(folder):
    for number in signal.SIGTERM, signal.SIGKILL:
        done = run(folder, '--', 'sh', '-c', f'kill -{number.value} $$')
        assert done.returncode == 128 + number, done.returncode


@test
def a_host_beside_serves_the_children_of_the_program_and_in_process_each_has_its_own(folder):
    done = run(folder, '--serve', '--', CLIENT, 'children')
    assert done.returncode == 5 and 'child: 0' in done.stdout_text, (done.returncode, done.stdout_text, done.stderr_text)
    assert len(re.findall(r'\(pid \d+\)', done.stderr_text)) == 3, done.stderr_text
    done = run(folder, '--', CLIENT, 'children')
    assert done.returncode == 5 and 'child: 1' in done.stdout_text, (done.returncode, done.stdout_text, done.stderr_text)
    assert f'enumerated: 0x{DEVICE_REMOVED:08x}' in done.stdout_text.lower(), done.stdout_text
    assert 'a child of fork() cannot use' in done.stderr_text, done.stderr_text
    assert len(re.findall(r'Memory of the adapter in process \d+', done.stderr_text)) == 2, done.stderr_text
    assert calls(done.stderr_text)['D3DKMTEnumAdapters2'] == {'STATUS_SUCCESS': 3, 'STATUS_DEVICE_REMOVED': 1}, done.stderr_text


@test
def the_library_stays_when_the_program_closes_it(folder):
    for mode in MODES:
        done = run(folder, *mode, '--', CLIENT, 'close')
        assert done.returncode == 7, (done.returncode, done.stderr_text)


@test
def a_program_that_does_not_load_the_library_is_reported_so(folder):
    done = run(folder, '--', 'true')
    assert done.returncode == 0 and 'did not load libdxcore.so' in done.stderr_text, done.stderr_text


@test
def programs_that_cannot_be_executed(folder):
    plain = os.path.join(folder, 'plain')
    with open(plain, 'w', encoding='ascii') as file:
        file.write('text')
    for name, code in (os.path.join(folder, 'none'), 127), ('no-such-program-anywhere', 127), (plain, 126):
        done = run(folder, '--', name)
        assert done.returncode == code and name in done.stderr_text, (done.returncode, done.stderr_text)
        assert done.stderr_text.count('\n') == 1, done.stderr_text
        assert not left_behind(folder)


@test
def bad_options_are_refused_before_anything_starts(folder):
    for args in ([], ['--'], ['--what', '--', CLIENT], ['--set', 'x', '--', CLIENT], ['--set', 'NoSuchValue=1', '--', CLIENT],
                 ['--bar', '5', '--', CLIENT], ['--driver', '', '--', CLIENT], ['--report', '', '--', CLIENT], ['--interface', 'x', CLIENT]):
        done = run(folder, *args)
        assert done.returncode == 2 and 'vidmm run: ' in done.stderr_text, (args, done.returncode, done.stderr_text)
    record = os.path.join(folder, 'record')
    done = run(folder, '--record', record, '--', CLIENT, 'exit')
    assert done.returncode == 2 and 'needs --serve' in done.stderr_text and not os.path.exists(record), done.stderr_text
    for name in 'bar', 'a,b':
        done = run(folder, '--driver', FILE['scripted_driver'], '--set', f'{name}=4096', '--', CLIENT)
        assert done.returncode == 2 and name in done.stderr_text, (done.returncode, done.stderr_text)
    for driver in os.path.join(folder, 'none.so'), FILE['empty_driver']:
        done = run(folder, '--driver', driver, '--', CLIENT, 'exit')
        assert done.returncode == 3 and driver in done.stderr_text and not done.stdout_text, (done.returncode, done.stderr_text)
    done = run(folder, '--report', os.path.join(folder, 'none', 'page'), '--', 'true')
    assert done.returncode == 4, (done.returncode, done.stderr_text)
    assert not left_behind(folder)


@test
def options_after_the_program_are_the_programs(folder):
    done = run(folder, 'sh', '-c', 'echo "$@"', 'sh', '--serve', '--set', 'x')
    assert done.returncode == 0 and done.stdout_text == '--serve --set x\n', (done.stdout_text, done.stderr_text)


@test
def a_refused_adapter_is_explained(folder):
    done = run(folder, '--set', 'PagingBufferSize=0', '--', CLIENT, 'exit')
    assert done.returncode == 8 and 'enumerated: 0xc' in done.stdout_text, (done.returncode, done.stdout_text)
    assert 'Findings' in done.stderr_text and 'SEG-21' in done.stderr_text, done.stderr_text
    assert 'was refused' in done.stderr_text, done.stderr_text
    done = run(folder, '--serve', '--set', 'PagingBufferSize=0', '--', CLIENT, 'exit')
    assert done.returncode == 1 and not done.stdout_text, (done.returncode, done.stdout_text)
    assert 'was not started' in done.stderr_text and 'SEG-21' in done.stderr_text, done.stderr_text
    assert not left_behind(folder)


@test
def a_driver_file_is_started_from_any_folder(folder):
    shutil.copy(FILE['scripted_driver'], os.path.join(folder, 'driver.so'))
    for mode in MODES:
        done = run(folder, *mode, '--driver', 'driver.so', '--bar', '16M', '--', 'sh', '-c', 'cd / && exec "$0" exit', CLIENT, cwd=folder)
        assert done.returncode == 7, (done.returncode, done.stdout_text, done.stderr_text)


def start_plain(folder, *args, **variables):
    """The client without `vidmm run`."""
    links = os.path.join(folder, 'links')
    os.makedirs(links, exist_ok=True)
    if not os.path.islink(os.path.join(links, 'libdxcore.so')):
        os.symlink(os.path.realpath(LIBRARY), os.path.join(links, 'libdxcore.so'))
    return start(folder, CLIENT, *args, variables=dict(variables, LD_LIBRARY_PATH=links))


def plain(folder, *args, **variables):
    return finish(start_plain(folder, *args, **variables))


@test
def the_log_of_a_host_tells_an_exit_from_a_kill(folder):
    path = os.path.join(folder, 's')
    for what, code, ends in (('exit', 7, ['exited']), ('calls', 5, ['exited']), ('close', 7, ['exited']), ('_exit', 5, ['killed']),
                             ('crash', -signal.SIGSEGV, ['killed']), ('children', 5, ['exited', 'exited', 'killed'])):
        server = start(folder, VIDMM, 'serve', '--socket', path)
        connected, said = 0, []
        assert 'serves 1 adapter' in server.stderr.readline()
        done = finish(start_plain(folder, what, VIDMM_SOCKET=path))
        assert done.returncode == code, (what, done.returncode, done.stdout_text, done.stderr_text)
        while not connected or len(said) != connected:
            line = server.stderr.readline()
            assert line, (what, said)
            connected += ' connected: ' in line
            # Which of the two sockets of a killed program is seen closed first is left to chance.
            end = re.search(r'client \d+ (exited|disconnected: (it was killed|its view socket))', line)
            said += ['exited' if end[1] == 'exited' else 'killed'] if end else []
        server.terminate()
        assert finish(server).returncode == 0, server.stderr_text
        assert sorted(said) == ends, (what, said)


@test
def q_170_vidmm_adapter_starts_an_adapter_in_the_program(folder):
    for value in 'softgpu', 'softgpu,bar=64M,ApertureSize=0x1000000', FILE['softgpu_driver'] + ',bar=4096K':
        done = plain(folder, 'exit', VIDMM_ADAPTER=value)
        assert done.returncode == 7 and not done.stderr_text, (value, done.returncode, done.stdout_text, done.stderr_text)


@test
def q_170_softgpu_is_of_wddm_2_unless_the_value_says_otherwise(folder):
    for value, queue in (('softgpu', 0), ('softgpu,InterfaceVersion=0x5023', 0), ('softgpu,Model=2', 0),
                         ('softgpu,Model=1', NOT_SUPPORTED), ('softgpu,InterfaceVersion=0x300E', NOT_SUPPORTED),
                         ('softgpu' + ',HardwareQueues=0' * 64, 0), (FILE['softgpu_driver'], NOT_SUPPORTED)):
        done = plain(folder, 'calls', VIDMM_ADAPTER=value)
        assert done.returncode == 5 and f'queue: 0x{queue:08x}' in done.stdout_text, (value, done.stdout_text, done.stderr_text)


@test
def q_170_a_malformed_vidmm_adapter_is_refused_with_a_message(folder):
    bad = ['', ',', 'softgpu,', 'softgpu,bar', 'softgpu,bar=', 'softgpu,bar=5', 'softgpu,bar=0', 'softgpu,=3', 'softgpu,A=-1',
           'softgpu,A=1x', 'softgpu,A=1MM', 'softgpu,A=99999999999999999999', 'softgpu,A=0xFFFFFFFFFFFFFFFFK',
           'softgpu' + ',bar=4096' * 7, 'softgpu' + ',A=1' * 65, 'x' * 9000]
    for value in bad:
        done = plain(folder, 'calls', VIDMM_ADAPTER=value)
        assert done.returncode == 6 and f'enumerated: 0x{INVALID_PARAMETER:08x}' in done.stdout_text, (value, done.stdout_text)
        assert '(Q-170)' in done.stderr_text and done.stderr_text.count('VIDMM_ADAPTER=') == 1 and done.stderr_text.count('\n') == 1, (value, done.stderr_text)


@test
def q_170_a_driver_that_cannot_be_loaded_is_named(folder):
    for value in os.path.join(folder, 'none.so'), FILE['empty_driver']:
        done = plain(folder, 'exit', VIDMM_ADAPTER=value)
        assert done.returncode == 8 and f'enumerated: 0x{NAME_NOT_FOUND:08x}' in done.stdout_text, (value, done.stdout_text)
        assert value in done.stderr_text, done.stderr_text


def serve(folder, *args):
    os.makedirs(os.path.join(folder, 'runtime'), exist_ok=True)
    server = start(folder, VIDMM, 'serve', '--quiet', *args)
    assert 'serves' in server.stderr.readline()
    return server


@test
def q_171_a_host_at_the_default_path_is_found(folder):
    server = serve(folder)
    done = plain(folder, 'exit')
    server.terminate()
    finish(server)
    assert done.returncode == 7 and not done.stderr_text, (done.returncode, done.stdout_text, done.stderr_text)


@test
def q_171_without_an_adapter_a_message_says_what_to_do(folder):
    done = plain(folder, 'calls')
    assert done.returncode == 6 and f'enumerated: 0x{UNSUCCESSFUL:08x}' in done.stdout_text, done.stdout_text
    assert done.stderr_text.count('\n') == 1 and '(Q-171)' in done.stderr_text and 'vidmm run -- PROGRAM' in done.stderr_text, done.stderr_text
    done = plain(folder, 'exit', VIDMM_SOCKET=os.path.join(folder, 'absent'))
    assert done.returncode == 8 and os.path.join(folder, 'absent') in done.stderr_text, (done.returncode, done.stderr_text)


@test
def q_171_vidmm_socket_precedes_vidmm_adapter(folder):
    path = os.path.join(folder, 'absent')
    done = plain(folder, 'exit', VIDMM_SOCKET=path, VIDMM_ADAPTER='softgpu')
    assert done.returncode == 8 and path in done.stderr_text, (done.returncode, done.stderr_text)
    server = serve(folder)
    done = plain(folder, 'exit', VIDMM_ADAPTER='x' * 9000)  # and the default path comes last
    server.terminate()
    finish(server)
    assert done.returncode == 8 and 'VIDMM_ADAPTER' in done.stderr_text, (done.returncode, done.stderr_text)


def told(done):
    """Kinds and texts of the lines on the standard error stream, without numbers of events and times."""
    return [re.sub(r'^vidmm: #\d+ \d+ns p\d+ ', '', line) for line in done.stderr_text.splitlines() if line.startswith('vidmm: #')]


@test
def q_172_a_client_of_a_host_prints_what_concerns_it(folder):
    here = told(plain(folder, 'calls', VIDMM_ADAPTER='softgpu,Model=1', VIDMM_DEBUG='1'))
    assert any(line.startswith('reason') for line in here) and any(line.startswith('finding') for line in here), here
    server = serve(folder, '--set', 'Model=wddm1')
    try:
        assert told(plain(folder, 'calls', VIDMM_DEBUG='1')) == here
    finally:
        server.terminate()
        finish(server)


@test
def q_172_a_client_prints_nothing_that_concerns_others_or_that_it_did_not_ask_for(folder):
    server = serve(folder)
    waiting = start_plain(folder, 'signals', VIDMM_DEBUG='1')
    try:
        assert waiting.stdout.readline() == 'enumerated: 0x00000000\n' and waiting.stdout.readline() == 'ready\n'
        done = plain(folder, 'calls')
        assert done.returncode == 5 and not done.stderr_text, done.stderr_text
        done = plain(folder, 'calls', VIDMM_DEBUG='2')
        assert done.returncode == 5 and not done.stderr_text, done.stderr_text
    finally:
        waiting.send_signal(signal.SIGTERM)
        finish(waiting)
        server.terminate()
        finish(server)
    assert waiting.returncode == 9 and not waiting.stderr_text, (waiting.returncode, waiting.stderr_text)


if __name__ == '__main__':
    sys.exit(main())
