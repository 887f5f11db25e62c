#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""test_caps.py VIDMM DRIVER.so...: `vidmm caps` from outside, on softgpu and on driver files. TAP."""
import fcntl
import json
import os
import pty
import re
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import termios

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'support'))
from tap_tests import main, test

VIDMM = os.path.abspath(sys.argv[1])
DRIVER = {os.path.basename(path)[:-len('.so')]: os.path.abspath(path) for path in sys.argv[2:]}
ROOT = os.environ['VIDMM_SOURCE_ROOT']
SCRIPTED = ('--driver', DRIVER['scripted_driver'], '--bar', '16M')
NOTHING, SEGMENTS, TABLE, START_DEVICE, NO_INITIALIZE, BANKS, WAITS, CAPS, LEVEL, OLD, COUNT, DISPLAY, CRASH = range(13)

KEYS = set('''schema_version vidmm_version driver driver_file device_file backend settings bars interface driver_caps nodes
    segment_count segments paging_buffer findings reasons started step status status_name exit_code'''.split())
CAPS_KEYS = set('''structure_bytes HighestAcceptableAddress MaxAllocationListSlotId ApertureSegmentCommitLimit
    InterruptMessageNumber NumberOfSwizzlingRanges SchedulingCaps MemoryManagementCaps PagingNode
    NbAsymetricProcessingNodes WDDMVersion GraphicsPreemptionGranularity ComputePreemptionGranularity
    SupportPerEngineTDR'''.split())
SEGMENT_KEYS = set('''id kind size_bytes commit_limit_bytes base_address cpu_translated_address
    system_memory_end_address flags ignored_flags bank_count bank_ends paging_buffer'''.split())
STEPS = {'options', 'load', 'add_device', 'start_device', 'driver_caps', 'segments', 'core', 'running'}


def caps(*args, env=None):
    full = {key: value for key, value in os.environ.items() if key not in ('COLUMNS', 'NO_COLOR')}
    return subprocess.run([VIDMM, 'caps', *args], capture_output=True, text=True, env=dict(full, **(env or {})))


def broken(how, *args, **more):
    return caps(*SCRIPTED, '--set', f'Break={how}', *args, **more)


def expect(done, code, out=(), err=''):
    assert done.returncode == code, (done.returncode, done.stdout, done.stderr)
    for text in (out,) if isinstance(out, str) else out:
        assert text in done.stdout, (text, done.stdout)
    assert err in done.stderr, done.stderr
    return done


def report_of(done):
    """The JSON of a run, whose schema has been checked."""
    report = json.loads(done.stdout)
    assert set(report) == KEYS, set(report) ^ KEYS
    assert report['schema_version'] == 1 and report['exit_code'] == done.returncode
    assert report['step'] in STEPS and report['started'] == (report['step'] == 'running')
    assert re.fullmatch('0x[0-9a-f]+', report['status'])
    if report['interface']:
        assert set(report['interface']) == {'value', 'wddm'}
    if report['driver_caps']:
        assert set(report['driver_caps']) == CAPS_KEYS, set(report['driver_caps']) ^ CAPS_KEYS
        for word in ('SchedulingCaps', 'MemoryManagementCaps'):
            assert set(report['driver_caps'][word]) == {'value', 'flags'}
    for segment in report['segments']:
        assert set(segment) == SEGMENT_KEYS, set(segment) ^ SEGMENT_KEYS
        assert isinstance(segment['size_bytes'], int) and segment['base_address'].startswith('0x')
        assert set(segment['flags']) == {'value', 'flags'}
    for node in report['nodes']:
        assert set(node) == {'node', 'paging', 'packets'}
    for bar in report['bars']:
        assert set(bar) == {'physical_address', 'size_bytes'}
    if report['paging_buffer']:
        assert set(report['paging_buffer']) == {'segment_id', 'size_bytes', 'private_data_bytes'}
    for finding in report['findings']:
        assert set(finding) == {'rule', 'text', 'count'}
    for reason in report['reasons']:
        assert set(reason) == {'status', 'status_name', 'text', 'count'}
    return report


def on_terminal(width, *args, env=None):
    """The output on a terminal of that width."""
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack('HHHH', 50, width, 0, 0))
    full = {key: value for key, value in os.environ.items() if key not in ('COLUMNS', 'NO_COLOR')}
    process = subprocess.Popen([VIDMM, 'caps', *args], stdout=slave, stderr=subprocess.DEVNULL,
                               env=dict(full, **(env or {})))
    os.close(slave)
    text = b''
    try:
        while chunk := os.read(master, 65536):
            text += chunk
    except OSError:
        pass  # the other end is closed
    os.close(master)
    process.wait()
    return text.decode().replace('\r\n', '\n')


# ---- softgpu ----

@test
def softgpu_is_clean():
    done = expect(caps(), 0, ('softgpu', '0xb004 (WDDM 2.6)', 'MultiEngineAware', 'BAR 0 + 0x0', 'the adapter starts'))
    assert done.stderr == '', done.stderr
    assert re.search(r'^  1   memory +256 MiB +256 MiB  0x0 +BAR 0 \+ 0x0  CpuVisible LocalBudgetGroup$', done.stdout, re.M), done.stdout
    assert re.search(r'^  node 1 .*paging$', done.stdout, re.M)


@test
def softgpu_reports_its_configuration():
    done = caps('--json', '--set', 'Model=wddm1', '--bar', '64M', '--set', 'ApertureSize=128M', '--set', 'SwizzlingRanges=3', '--set',
                'VramCpuVisible=0', '--set', 'ApertureCoherent=0', '--set', 'PagingBufferSize=0x8000', '--set',
                'PagingBufferSegment=0', '--set', 'PagingNode=0', '--set', 'PerEngineTdr=0',
                '--set', 'PreemptionAware=1')
    report = report_of(expect(done, 0))
    memory, aperture = report['segments']
    assert memory['size_bytes'] == 64 << 20 and memory['flags']['flags'] == [] and memory['kind'] == 'memory'
    assert aperture['size_bytes'] == 128 << 20 and aperture['flags']['flags'] == ['Aperture']
    assert report['driver_caps']['NumberOfSwizzlingRanges'] == 3
    assert report['driver_caps']['SupportPerEngineTDR'] is False
    assert 'PreemptionAware' in report['driver_caps']['SchedulingCaps']['flags']
    assert report['driver_caps']['HighestAcceptableAddress'] == '0xffffffffffffffff'
    assert report['paging_buffer'] == {'segment_id': 0, 'size_bytes': 32768, 'private_data_bytes': 16}
    assert [node['paging'] for node in report['nodes']] == [True, False]
    assert report['settings']['ApertureSize'] == 128 << 20 and report['bars'][0]['size_bytes'] == 64 << 20


@test
def an_older_interface_has_fewer_members():
    for version, number, structure in (('1.0', '0x1052', 336), ('1.1', '0x2005', 528), ('1.2', '0x300e', 544),
                                       ('1.3', '0x4002', 552)):
        report = report_of(expect(caps('--interface', version, '--json'), 0))
        assert report['interface'] == {'value': number, 'wddm': version}, report['interface']
        assert report['driver_caps']['structure_bytes'] == structure
        assert (report['driver_caps']['WDDMVersion'] is None) == (version == '1.0')
        assert (report['driver_caps']['SupportPerEngineTDR'] is None) == (version < '1.2')
        text = expect(caps('--interface', version), 0).stdout
        assert ('SupportPerEngineTDR' in text) == (version >= '1.2')


@test
def model_wddm2_starts_without_findings():
    for version, number in (('2.0', '0x5023'), ('2.4', '0x9006'), ('2.7', '0xc004')):
        for more in ((), ('--set', 'PageTableLevels=2'), ('--set', 'VramPageSize=64K'),
                     ('--set', 'VideoPresentSources=1', '--bar', '64M', '--bar', '16M')):
            report = report_of(expect(caps('--set', 'Model=wddm2', '--interface', version, '--json', *more), 0))
            assert report['interface'] == {'value': number, 'wddm': version}, report['interface']
            assert report['findings'] == [], report
            assert len(report['reasons']) == more.count('VideoPresentSources=1'), report  # PRS-02
            assert 'GpuMmuSupported' in report['driver_caps']['MemoryManagementCaps']['flags']
    for default in (), ('--set', 'Model=2'):
        assert report_of(expect(caps(*default, '--json'), 0))['interface']['value'] == '0xb004'
    file = report_of(expect(caps('--driver', DRIVER['softgpu_driver'], '--json'), 0))
    assert file['interface']['value'] == '0x4002', file['interface']  # a driver file has its own default
    assert report_of(expect(caps('--set', 'Model=wddm1', '--json'), 0))['interface']['value'] == '0x4002'
    for kind in ('1', '2'):
        for version in ('2.4', '2.6', '2.7'):
            report = report_of(expect(caps('--set', 'Model=wddm2', '--interface', version, '--set', 'HardwareQueues=' + kind, '--json'), 0))
            assert report['findings'] == [] and report['reasons'] == [], report
    expect(caps('--set', 'Model=wddm2', '--interface', '2.3', '--set', 'HardwareQueues=1'), 1, 'STATUS_DEVICE_CONFIGURATION_ERROR')
    expect(caps('--set', 'Model=wddm1', '--set', 'HardwareQueues=1'), 1, 'STATUS_DEVICE_CONFIGURATION_ERROR')
    for bad in ('ApertureSize=0', 'VramBanks=2', 'LinkedAdapters=2', 'PageTableLevels=3', 'VramPageSize=8192', 'HardwareQueues=3'):
        expect(caps('--set', 'Model=wddm2', '--set', bad), 1, 'STATUS_DEVICE_CONFIGURATION_ERROR')
    expect(caps('--set', 'Model=3'), 1, 'STATUS_DEVICE_CONFIGURATION_ERROR')
    for version in ('1.3', '2.8', '3.2'):
        expect(caps('--set', 'Model=wddm2', '--interface', version), 1, ('STATUS_NOT_SUPPORTED', 'in DriverEntry'))
    expect(caps('--set', 'Model=wddm3'), 2)


@test
def bad_settings_are_refused_with_everything_learned_before():
    done = expect(caps('--set', 'PagingBufferSegment=1'), 1,
                  ('SEG-21', 'PagingBufferSegmentId is 1, which is a memory segment', 'STATUS_INVALID_PARAMETER',
                   'vidmm rules SEG-21', 'NumberOfSwizzlingRanges', 'CpuVisible'))
    assert 'the adapter starts' not in done.stdout
    expect(caps('-q', '--set', 'ApertureSize=61440'), 1, ('65536 bytes does not fit into segment 2 of 61440', 'SEG-21'))
    expect(caps('-q', '--set', 'ApertureSize=65536'), 0)
    expect(caps('--set', 'ApertureSize=4097'), 1, ('STATUS_DEVICE_CONFIGURATION_ERROR', 'in DxgkDdiStartDevice'))
    expect(caps('--interface', '3.0'), 1, ('STATUS_NOT_SUPPORTED', 'in DriverEntry'))
    expect(caps('--set', 'Model=wddm1', '--interface', '2.0'), 1, ('STATUS_NOT_SUPPORTED', 'in DriverEntry'))
    expect(caps('--set', 'PagingNode=2'), 1, 'refused')


@test
def quiet_prints_faults_only():
    done = expect(caps('-q'), 0)
    assert done.stdout == '' and done.stderr == ''
    done = expect(caps('--quiet', '--set', 'PagingBufferSegment=1'), 1, ('SEG-21', 'refused'))
    assert 'DXGK_DRIVERCAPS' not in done.stdout


@test
def both_backends_print_the_same():
    sim, linux = (json.loads(caps('--json', '--backend', backend).stdout) for backend in ('sim', 'linux'))
    assert (sim.pop('backend'), linux.pop('backend')) == ('sim', 'linux')
    assert sim == linux


# ---- driver files ----

@test
def softgpu_as_a_file_is_softgpu():
    settings = ('--json', '--set', 'Model=wddm1', '--set', 'SwizzlingRanges=7')
    file = report_of(expect(caps('--driver', DRIVER['softgpu_driver'], *settings), 0))
    builtin = report_of(expect(caps(*settings), 0))
    assert file.pop('driver') == 'file' and builtin.pop('driver') == 'softgpu'
    assert file.pop('driver_file') == DRIVER['softgpu_driver'] and builtin.pop('driver_file') is None
    assert file == builtin


@test
def q_421_a_device_model_is_a_file():
    args = '--device', DRIVER['copier'], '--driver', DRIVER['copier_kmd']
    report = report_of(expect(caps(*args, '--json'), 0))
    assert report['device_file'] == DRIVER['copier'] and report['started']
    # The memory BAR of the model; its registers are no memory.
    assert [bar['size_bytes'] for bar in report['bars']] == [4 << 20], report['bars']
    assert report['segments'][0]['cpu_translated_address'] == report['bars'][0]['physical_address']
    expect(caps(*args, '--backend', 'linux'), 0, 'the adapter starts')
    expect(caps(*args, '--bar', '1M'), 2, err='--bar and --device are given')
    expect(caps('--device', DRIVER['copier_kmd']), 3, err='the function vidmm_device_model is not exported')
    expect(caps('--device', './missing.so'), 3, err='Q-421')
    expect(caps('--device', 'softgpu'), 3, err='./softgpu')
    # A miniport that finds other hardware.
    report = report_of(expect(caps('--driver', DRIVER['copier_kmd'], '--bar', '1M', '--json'), 1))
    assert report['step'] == 'start_device' and report['device_file'] is None


@test
def a_driver_file_is_found_by_its_path():
    folder, name = os.path.split(DRIVER['softgpu_driver'])
    done = subprocess.run([VIDMM, 'caps', '--driver', name], cwd=folder, capture_output=True, text=True)
    expect(done, 0, 'the adapter starts')


@test
def a_driver_linked_with_libvidmm_uses_the_services_of_the_program():
    if 'linked_driver' not in DRIVER:
        return 'not built with sanitizers'
    for backend in ('sim', 'linux'):
        expect(caps('--driver', DRIVER['linked_driver'], '--bar', '16M', '--backend', backend), 0, 'the adapter starts')
    return None


@test
def all_faults_of_an_answer_are_reported_together():
    report = report_of(expect(broken(SEGMENTS, '--json'), 1))
    assert [finding['rule'] for finding in report['findings']] == ['SEG-08', 'SEG-03', 'SEG-04', 'SEG-06', 'SEG-21',
                                                                   'SEG-21'], report['findings']
    assert report['step'] == 'segments' and report['status_name'] == 'STATUS_INVALID_PARAMETER'
    assert report['segment_count'] == 4 and len(report['segments']) == 4
    assert report['segments'][1]['size_bytes'] == 4097 and report['segments'][3]['kind'] == 'agp'
    report = report_of(expect(broken(CAPS, '--json'), 1))
    assert [finding['rule'] for finding in report['findings']] == ['PRE-09', 'SPL-15', 'SWZ-01']
    assert report['driver_caps']['SchedulingCaps']['flags'] == ['PreemptionAware', 'NoDmaPatching']
    assert report['segments'] == [] and report['nodes'] == [] and report['paging_buffer'] is None
    report = report_of(expect(broken(TABLE, '--json'), 1))
    assert [finding['rule'] for finding in report['findings']] == ['PNP-01', 'PNP-01']
    assert report['driver_caps'] is None and report['interface']['wddm'] == '1.3' and report['step'] == 'load'


@test
def the_refusing_step_is_named():
    for how, step, status in ((TABLE, 'load', 'STATUS_INVALID_PARAMETER'),
                              (NO_INITIALIZE, 'load', 'STATUS_INVALID_PARAMETER'),
                              (START_DEVICE, 'start_device', 'STATUS_DEVICE_CONFIGURATION_ERROR'),
                              (CAPS, 'driver_caps', 'STATUS_INVALID_PARAMETER'),
                              (COUNT, 'segments', 'STATUS_INVALID_PARAMETER')):
        report = report_of(expect(broken(how, '--json'), 1))
        assert (report['step'], report['status_name']) == (step, status), (how, report['step'], report['status_name'])
        expect(broken(how), 1, ('refused', status))
    assert report_of(broken(NO_INITIALIZE, '--json'))['interface'] is None
    reasons = report_of(broken(START_DEVICE, '--json'))['reasons']
    assert reasons[0]['status_name'] == 'STATUS_DEVICE_CONFIGURATION_ERROR', reasons


@test
def banks_and_ignored_flags_are_shown():
    expect(broken(BANKS), 0, ('NbOfBanks 3, ends: 0x400000 0x600000 and 16 MiB', '(ignored:', 'UseBanking'))
    memory, aperture = report_of(broken(BANKS, '--json'))['segments']
    assert memory['bank_count'] == 3 and memory['bank_ends'] == [4 << 20, 6 << 20]
    assert memory['ignored_flags'] == ['CacheCoherent'] and aperture['ignored_flags'] == ['CpuVisible']
    assert memory['flags']['flags'] == ['CpuVisible', 'UseBanking', 'CacheCoherent']


@test
def a_driver_that_waits_forever_is_reported():
    done = expect(broken(WAITS), 1, ('deadlock', 'in DxgkDdiStartDevice'), 'waits for')
    assert 'BAR 0' in done.stdout


@test
def q_441_a_driver_that_crashes_says_where():
    if 'linked_driver' not in DRIVER:
        return 'a sanitizer says more'
    for backend in ('sim', 'linux'):
        done = broken(CRASH, '--backend', backend)
        assert done.returncode == -signal.SIGSEGV, done.returncode
        first, second = done.stderr.splitlines()
        assert first == 'vidmm: the driver crashed in DxgkDdiStartDevice: SIGSEGV at address 0x0 (Q-441)', done.stderr
        assert second.startswith('vidmm: in ') and '(scripted_driver.so+0x' in second, done.stderr
        if shutil.which('addr2line'):
            assert ' crashing_start at ' in second and 'scripted_driver.c:' in second, done.stderr
    return None


# enum vidmm_ddi, and 128 for DriverEntry; the types are those of DXGK_QUERYADAPTERINFOTYPE.
ROUTINES = {'DriverEntry': 128, 'DxgkDdiAddDevice': 1, 'DxgkDdiStartDevice': 2, 'DxgkDdiStopDevice': 3,
            'DxgkDdiRemoveDevice': 4, 'DxgkDdiQueryAdapterInfo of type 1': 5, 'DxgkDdiCreateDevice': 6}
LOOP, WAIT, POLL, FAULT, DESCEND = 1, 2, 3, 4, 5
# A thread that hangs cannot synchronize with the one that reports it, and ThreadSanitizer says so.
RACES = 'a thread that hangs races with the report'
with open(VIDMM, 'rb') as program:
    THREAD_SANITIZER = b'__tsan_init' in program.read()
LIMITS_S = (10, 60, 600)  # the driver reaches its routine much earlier; on a loaded machine within a later one
LIMIT_S = LIMITS_S[0]


def stuck(how, routine, *args):
    settings = [f'StickAt={ROUTINES[routine]}', f'StickHow={how}']
    if ' of type ' in routine:
        settings.append('StickType=' + routine.split()[-1])
    command = [VIDMM, 'caps', *SCRIPTED, '--json', *args]
    for setting in settings:
        command += ['--set', setting]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def complaint(process):
    out, err = process.communicate()
    assert process.returncode == 1, (process.returncode, err)
    findings = [finding for finding in json.loads(out)['findings'] if finding['rule'] == 'Q-440']
    assert len(findings) == 1, findings
    return findings[0]['text']


def hangs(process, how, routine, backend, doing):
    """What a process says that has the first limit; with a longer limit if the driver had not come that far."""
    for limit in LIMITS_S:
        if limit != LIMIT_S:
            process = stuck(how, routine, '--backend', backend, '--limit', str(limit))
        text = complaint(process)
        if text.startswith(f'hang: after {limit} s the driver has not returned from {routine}: it {doing}'):
            break
    else:
        raise AssertionError(text)
    return text


@test
def q_440_a_wait_without_an_end_names_the_routine_and_the_service():
    for routine in ROUTINES:  # virtual time: no thread can run any more
        text = complaint(stuck(WAIT, routine, '--backend', 'sim'))
        expected = f'deadlock: the miniport waits in {routine}, KeWaitForSingleObject, and no thread can wake it'
        assert text == expected, text
    if THREAD_SANITIZER:
        return RACES
    limit = ('--backend', 'linux', '--limit', str(LIMIT_S))
    for routine, process in [(routine, stuck(WAIT, routine, *limit)) for routine in ROUTINES]:
        text = hangs(process, WAIT, routine, 'linux', 'waits in KeWaitForSingleObject, called by ')
        assert 'scripted_driver.so+0x' in text, text
    return None


@test
def a_driver_that_hangs_is_not_called_refused():
    if THREAD_SANITIZER:
        return RACES
    done = broken(WAITS, '--backend', 'linux', '--limit', str(LIMIT_S))
    expect(done, 1, ('hang: after', 'BAR 0', 'the driver hangs'))
    assert 'refused' not in done.stdout, done.stdout
    return None


@test
def a_loop_without_an_end_names_the_routine_and_the_function():
    if THREAD_SANITIZER:
        return RACES
    cases = [(how, routine, backend, stuck(how, routine, '--backend', backend, '--limit', str(LIMIT_S)))
             for how, routine, backend in ((LOOP, 'DriverEntry', 'sim'), (LOOP, 'DxgkDdiStartDevice', 'linux'),
                                           (LOOP, 'DxgkDdiQueryAdapterInfo of type 1', 'sim'),
                                           (POLL, 'DxgkDdiCreateDevice', 'linux'))]
    for how, routine, backend, process in cases:
        doing = 'runs in ' if how == LOOP else 'waits in KeDelayExecutionThread, called by '
        text = hangs(process, how, routine, backend, doing)
        if how == LOOP and shutil.which('addr2line'):
            assert 'loop_for_ever at ' in text or 'get_stuck' in text, text
    return None


@test
def a_crash_in_each_step_names_the_routine():
    if 'linked_driver' not in DRIVER:
        return 'a sanitizer says more'
    for routine in ROUTINES:
        process = stuck(FAULT, routine)
        err = process.communicate()[1]
        assert process.returncode == -signal.SIGSEGV, process.returncode
        assert f'the driver crashed in {routine}: SIGSEGV at address 0x0 (Q-441)\n' in err, err
        assert '(scripted_driver.so+0x' in err, err
    return None


@test
def a_driver_that_uses_up_its_stack_is_reported():
    if 'linked_driver' not in DRIVER:
        return 'a sanitizer says more'
    process = stuck(DESCEND, 'DxgkDdiStartDevice')
    err = process.communicate()[1]
    assert process.returncode == -signal.SIGSEGV, process.returncode
    assert 'the driver crashed in DxgkDdiStartDevice: SIGSEGV' in err and '(scripted_driver.so+0x' in err, err
    return None


@test
def a_driver_that_starts_may_break_rules():
    expect(broken(LEVEL), 1, ('NT-02', 'the adapter starts, but it breaks rules'))
    report = report_of(broken(LEVEL, '--json'))
    assert report['started'] and report['findings'][0]['rule'] == 'NT-02' and len(report['segments']) == 2


@test
def features_that_are_not_built_are_notes():
    expect(broken(DISPLAY), 0, ('Notes', 'displays are not built', 'the adapter starts'))
    assert report_of(broken(DISPLAY, '--json'))['reasons'][0]['status_name'] == 'STATUS_NOT_SUPPORTED'


@test
def an_old_driver_has_one_node():
    report = report_of(expect(broken(OLD, '--json'), 0))
    assert report['nodes'] == [{'node': 0, 'paging': True, 'packets': 2}], report['nodes']


# ---- usage and bad files ----

@test
def exit_code_2_for_wrong_usage():
    for args in (('--bogus',), ('file.so',), ('--set', 'PagingNode'), ('--set', '=1'), ('--set', 'PagingNode=x'),
                 ('--set', 'PagingMode=1'), ('--interface', 'vista'), ('--bar', '4097'), ('--bar', 'much'),
                 ('--bar', '1M') * 7, ('--backend', 'win'), ('--color', 'red'), ('--driver', ''),
                 ('--driver', DRIVER['softgpu_driver'], '--interface', '1.1')):
        done = expect(caps(*args), 2, err='vidmm caps: ')
        assert done.stdout == '', done.stdout


@test
def exit_code_3_for_files_that_are_no_drivers():
    with tempfile.NamedTemporaryFile('w', suffix='.so') as text:
        text.write('not an object file\n' * 100)
        text.flush()
        for path, why in (('/nonexistent/driver.so', 'No such file'), (text.name, text.name),
                          (DRIVER['empty_driver'], 'no DriverEntry is exported'), ('nonexistent.so', './nonexistent.so'),
                          (DRIVER['lacking_driver'], 'vidmm_test_service_that_nobody_has')):
            done = expect(caps('--driver', path), 3, err=why)
            assert done.stdout == '' and done.stderr.startswith('vidmm: '), done


@test
def exit_code_4_for_an_output_that_cannot_be_written():
    with open('/dev/full', 'w') as full:
        done = subprocess.run([VIDMM, 'caps'], stdout=full, stderr=subprocess.PIPE, text=True)
    assert done.returncode == 4 and 'No space left' in done.stderr, done


@test
def help_goes_to_stdout():
    expect(caps('--help'), 0, ('--driver', '--set', '--interface', '--json'))


# ---- the terminal ----

@test
def lines_fit_the_terminal():
    for width in (80, 120):
        for args in ((), ('--set', 'PagingBufferSegment=1'), SCRIPTED + ('--set', f'Break={SEGMENTS}'),
                     SCRIPTED + ('--set', f'Break={BANKS}')):
            text = on_terminal(width, *args)
            assert '\033[' in text, text
            plain = re.sub('\033\\[[0-9]*m', '', text)
            for line in plain.splitlines()[1:]:  # the first is the file's name
                assert len(line) <= width, (width, line)
                assert line == line.rstrip(), line


@test
def color_is_for_terminals_or_on_request():
    assert '\033' not in caps().stdout
    assert '\033' in caps('--color', 'always').stdout
    assert '\033' not in on_terminal(80, '--color', 'never')
    assert '\033' not in on_terminal(80, env={'NO_COLOR': '1'})
    assert '\033' not in on_terminal(80, '--json')


@test
def width_without_a_terminal_is_that_of_columns():
    for width in ('72', '80'):
        lines = broken(SEGMENTS, env={'COLUMNS': width}).stdout.splitlines()[1:]
        assert max(len(line) for line in lines) <= int(width), lines


# ---- names in the program are those of the headers ----

def read(*path):
    with open(os.path.join(ROOT, *path), encoding='utf-8') as file:
        return file.read()


@test
def the_readme_shows_what_is_printed():
    readme = read('README.md')
    command, block = re.search(r'\n    \$ vidmm caps (--quiet [^\n]*)\n(.*?)\n\nWithout', readme, re.S).groups()
    shown = '\n'.join(line.removeprefix('    ') for line in block.splitlines())
    assert caps(*command.split()).stdout.strip() == shown.strip(), shown
    table = re.search(r'\n    Segments\n(.*?)\n\n', readme, re.S).group(1).splitlines()
    printed = caps().stdout.splitlines()
    for line in table:
        assert line.removeprefix('    ') in printed, line


@test
def every_setting_of_softgpu_is_known():
    names = re.findall(r'SETTING\(L"(\w+)"', read('drivers', 'softgpu', 'settings.c'))
    known = re.search(r'softgpu_settings\[\] = \{(.*?)\};', read('tools', 'vidmm', 'driver.c'), re.S).group(1)
    assert len(names) > 10 and sorted(names) == sorted(re.findall(r'"(\w+)"', known))


@test
def every_status_has_its_name():
    header = re.findall(r'#define (STATUS_\w+) +\(\(NTSTATUS\)', read('include', 'wddm', 'wddm_status.h'))
    table = re.findall(r'NAME\((STATUS_\w+)\)', read('tools', 'vidmm', 'status_names.c'))
    assert len(header) > 50 and sorted(header) == sorted(table), set(header) ^ set(table)


@test
def every_flag_has_its_bit():
    source = read('tools', 'vidmm', 'caps_names.c')
    for words, path, structure in (('segment_names', 'kmddi_segment.h', '_DXGK_SEGMENTFLAGS'),
                                   ('scheduling_names', 'kmddi_caps.h', '_DXGK_VIDSCHCAPS'),
                                   ('memory_names', 'kmddi_caps.h', '_DXGK_VIDMMCAPS')):
        body = read('include', 'wddm', path).split(f'typedef struct {structure} {{')[1].split('} DXGK')[0]
        bits = [name for name in re.findall(r'UINT (\w+) : 1;', body) if name != 'Reserved']
        names = re.findall(r'"(\w+)"', re.search(words + r'\[\] = \{(.*?)\};', source, re.S).group(1))
        assert len(bits) > 5 and bits == names, (structure, bits, names)


if __name__ == '__main__':
    sys.exit(main())
