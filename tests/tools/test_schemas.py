#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""test_schemas.py VIDMM CAUSE_STREAM FINDING_POLICY.so JUDGED_RECORDING DRIVER.so...: what the program prints as JSON keeps to docs/schemas, and each
property and each type in a schema occurs in a document. TAP; skipped if python3-jsonschema is not installed."""
import copy
import functools
import glob
import json
import os
import signal
import subprocess
import sys
import tempfile

try:
    import jsonschema
except ImportError:
    jsonschema = None

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'support'))
import tap_tests
from planted import FAULT
from tap_tests import main
from vidmm_program import Host

VIDMM, STREAM, POLICY, RECORDING = map(os.path.abspath, sys.argv[1:5])
DRIVER = {os.path.basename(path)[:-len('.so')]: os.path.abspath(path) for path in sys.argv[5:]}
ROOT = os.environ['VIDMM_SOURCE_ROOT']
EVERY, TILED, IMPORTER = (os.path.join(ROOT, 'tests/replay/data', name + '.trace') for name in ('every-op', 'tiled', 'importer'))
EXAMPLE = os.path.join(os.environ['VIDMM_EXAMPLES'], 'glmark2-1080p-skl.trace.zst')
SCHEMAS = os.path.join(ROOT, 'docs/schemas')
# A file name that is not UTF-8, as subprocess takes it.
BAD_NAME = 'name\udcff'


def test(function):
    @functools.wraps(function)
    def guarded(*arguments):
        return function(*arguments) if jsonschema else 'python3-jsonschema is not installed'
    return tap_tests.test(guarded)


def run(*args, codes=(0,), **more):
    done = subprocess.run([VIDMM, *args], capture_output=True, text=True, check=False, **more)
    assert done.returncode in codes, (args, done.returncode, done.stdout, done.stderr)
    return done.stdout


def document(*args, **more):
    return json.loads(run(*args, **more))


def write(path, text):
    with open(path, 'w', encoding='utf-8') as file:
        file.write(text)
    return path


# ---- the documents ----

WDDM1 = {'adapters': [{'bars': ['16M'], 'settings': {'ApertureSize': '64M', 'Model': 'wddm1'}}]}


@functools.cache
def host_documents():
    """Replays against a host, the last of which loses its host, and the lists of its clients."""
    with Host(WDDM1) as host:
        replay = 'replay', '--socket', host.socket, '--json', '--gpu-time', 'none'
        clients = 'clients', '--socket', host.socket, '--json'
        replays, lists = [document(*replay, EVERY, IMPORTER)], [document(*clients)]
        # It runs during one look at its client and stands during the next; it is long enough not to end in between.
        with subprocess.Popen([VIDMM, *replay[:-2], *[EXAMPLE] * 8], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as player:
            host.await_line('connected: glmark2')
            player.send_signal(signal.SIGSTOP)
            while sum(client['requests'] for client in lists[-1]['clients']) < 200:
                player.send_signal(signal.SIGCONT)
                lists.append(document(*clients))
                player.send_signal(signal.SIGSTOP)
                assert player.poll() is None, player.communicate()
                lists.append(document(*clients))
            host.process.kill()
            player.send_signal(signal.SIGCONT)
            replays.append(json.loads(player.communicate()[0]))
    return replays, [lists[0], lists[-1]]


def too_large(folder):
    """A recording with a buffer that does not fit into 1 MiB of video memory."""
    with open(EVERY, encoding='utf-8') as file:
        text = file.read()
    for old, new in ('1048576', '1074790400'), ('400000 e 2 88\n', ''), ('#end 45', '#end 44'):
        assert old in text, old
        text = text.replace(old, new)
    return write(os.path.join(folder, 'large.trace'), text)


def replay_documents():
    with tempfile.TemporaryDirectory() as folder:
        badly_named = os.path.join(folder, BAD_NAME)
        os.symlink(EVERY, badly_named)
        runs = [document('replay', '--json', *args) for args in (
            (EVERY, '--vram', '1M'),
            (EVERY, IMPORTER, '--vram', '50%', '--against-reference', '--by-bytes', '--verify', 'full'),
            (EVERY, '--vram', '75%largest', '--model', 'wddm2', '--seed', '3', '--switch', '100', '--paging-engine', 'shared'),
            (EVERY, '--link', 'none', '--pace', 'flat-out', '--content', 'none'),
            (EVERY, '--gpu-time', 'none', '--backend', 'linux', '--verify', 'stamps'),
            (EVERY, '--compare', '100%,50%', '--aperture', 'none'),
            ('--driver', DRIVER['softgpu_driver'], '--commands', DRIVER['softgpu_commands'], EVERY),
            (badly_named,))]
        runs += [document('replay', '--json', *args, '--vram', '1M', codes=(1,)) for args in (
            (too_large(folder), '--aperture', 'none'), (EVERY, '--policy', POLICY))]
        commands = '--driver', DRIVER['planted_driver'], '--commands', DRIVER['tinykmd_commands']
        runs += [document('replay', '--json', *commands, '--set', f'Fault={FAULT["DEVICE_NO_MEMORY"]}', EVERY, EVERY, codes=(4,)),
                 document('replay', '--json', '--driver', DRIVER['odd_driver'], EVERY, codes=(1,))]
    return runs + host_documents()[0]


def what_if_documents():
    with tempfile.TemporaryDirectory() as folder:
        badly_named, state, empty = (os.path.join(folder, name) for name in (BAD_NAME, 'state', 'part'))
        os.symlink(EVERY, badly_named)
        sweep = 'what-if', EVERY, TILED, '--vram', '1M,50%,60%largest', '--policy', 'lru,mru'
        run(*sweep, '--state', state, '--shard', '1/2')
        return [document(*sweep, '--json', '-'),
                document('what-if', badly_named, too_large(folder), empty, '--vram', '1M', '--policy', 'lru', '--link', 'none', '--json', '-', codes=(4,)),
                document('merge', state, '--json', '-', codes=(3,))]


def explain_documents():
    events = ('#1 0ns p3 process/opened : name',
              '#2 10ns p3 reason 0x40000000 status=0xc01e0200 : TDR-19: page fault at 0x1000 on fence 0x00000001 of context 0x40000040 (node 0)',
              '#3 10ns p3 recovery/device_lost 0x40000000 code=0x7 node=0 fence=1 ns=0',
              '#4 20ns p3 door/lock 0x40000080 status=0xc01e0200 elements=1 ns=0 flags=0x0')
    found = [document('explain', '-', '--json', input='\n'.join(events) + '\n')]
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, 'events')
        for situation in subprocess.run([STREAM], capture_output=True, text=True, check=True).stdout.split():
            subprocess.run([STREAM, situation, path], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            found.append(document('explain', path, '--json'))
    return found


def caps_documents():
    scripted = 'caps', '--json', '--driver', DRIVER['scripted_driver'], '--bar', '16M', '--set'
    with tempfile.TemporaryDirectory() as folder:
        badly_named = os.path.join(folder, BAD_NAME)
        os.symlink(DRIVER['softgpu_driver'], badly_named)
        found = [document('caps', '--json', *args) for args in (
            (), ('--interface', '1.0'), ('--interface', '1.3'), ('--backend', 'linux'), ('--driver', badly_named))]
    # Modes 6 and 12 of the driver wait forever and crash.
    found += [document(*scripted, f'Break={how}', codes=(0, 1)) for how in range(14) if how not in (6, 12)]
    found.append(document('caps', '--json', '--driver', DRIVER['odd_driver'], codes=(1,)))
    found.append(document('caps', '--json', '--driver', DRIVER['planted_driver'], '--set', f'Fault={FAULT["FENCE_AT_START"]}', codes=(1,)))
    found.append(document('caps', '--json', '--device', DRIVER['copier'], '--driver', DRIVER['copier_kmd']))
    return found


CONFIGURATIONS = (
    {},
    {'adapters': []},
    {'adapters': [{'driver': DRIVER['copier_kmd'], 'device': DRIVER['copier']}]},
    {'adapters': [{}], 'other_users': True, 'clients': 3,
     'limits': {'channels': 2, 'descriptors': 20, 'handles': 1000, 'memory': '1.5GiB', 'unread': 65536}},
    {'adapters': [{'driver': 'softgpu', 'bars': [67108864, '16M'], 'settings': {'Model': 'wddm1', 'VramBanks': 1, 'ApertureSize': '64M'},
                   'description': 'one', 'driver_store': '/store', 'system_memory': '1G', 'physical_adapters': 1, 'policy': POLICY}]},
)
# Each breaks one rule that the schema expresses.
WRONG_CONFIGURATIONS = (
    [], {'adapters': {}}, {'adapters': [[]]}, {'adapters': [{}] * 17}, {'clients': 0}, {'clients': '3'}, {'clients': 2 ** 32},
    {'other_users': 1}, {'socket': 1}, {'log': None}, {'limits': []}, {'limits': {'channels': 0}}, {'limits': {'descriptors': 0}}, {'limits': {'memory': -1}},
    {'limits': {'memory': '1X'}}, {'limits': {'unread': True}}, {'extra': 1}, {'limits': {'extra': 1}}, {'adapters': [{'extra': 1}]},
    {'adapters': [{'driver': ''}]}, {'adapters': [{'bars': []}]}, {'adapters': [{'bars': ['16M'] * 7}]}, {'adapters': [{'bars': [4097]}]},
    {'adapters': [{'settings': {'Model': None}}]}, {'adapters': [{'settings': []}]}, {'adapters': [{'policy': 'lru'}]},
    {'adapters': [{'description': 1}]}, {'adapters': [{'driver_store': 1}]}, {'adapters': [{'system_memory': 'much'}]},
    {'adapters': [{'physical_adapters': 0}]},
)


def configurations():
    files = 'socket', 'log'
    return [dict(one, **{name: name for name in files}) if not number else one for number, one in enumerate(CONFIGURATIONS)]


def conform_documents():
    tools = '--driver', DRIVER['softgpu_driver'], '--commands', DRIVER['softgpu_commands']
    scripted = '--driver', DRIVER['scripted_driver'], '--bar', '16M', '--set', 'Break=1'
    return [document('conform', '--json', *tools), document('conform', '--json', *scripted, codes=(1,))]


def recorded(folder):
    """Two recordings: one with findings, one that ends early."""
    paths = [os.path.join(folder, name) for name in ('findings', 'cut')]
    run('replay', '-q', EVERY, '--vram', '1M', '--policy', POLICY, '--record', paths[0], codes=(1,))
    run('replay', '-q', EVERY, TILED, '--vram', '1M', '--record', paths[1])
    os.truncate(paths[1], os.path.getsize(paths[1]) - 1)
    return paths


def check_documents():
    with tempfile.TemporaryDirectory() as folder:
        paths = recorded(folder)
        paths.append(os.path.join(folder, 'judged'))
        subprocess.run([RECORDING, paths[-1]], check=True)
        paths.append(os.path.join(folder, 'broken'))
        subprocess.run([RECORDING, paths[-1], 'broken'], check=True)
        lines = write(os.path.join(folder, 'lines'), 'NT-02 "lowering" a test\nSPL-12 never\n')
        check = 'check', '--format', 'json', *paths
        return [document(*check, codes=(1,)), document(*check, '--suppress', lines, codes=(1,))]


def coverage_documents():
    with tempfile.TemporaryDirectory() as folder:
        paths = recorded(folder) + [os.path.join(folder, 'judged')]
        subprocess.run([RECORDING, paths[-1]], check=True)
        return [document('coverage', '--json', *paths)]


MAKERS = {'replay': replay_documents, 'what-if': what_if_documents, 'explain': explain_documents, 'caps': caps_documents, 'conform': conform_documents,
          'check': check_documents, 'coverage': coverage_documents,
          'clients': lambda: host_documents()[1], 'serve-config': configurations}


@functools.cache
def documents(kind):
    return MAKERS[kind]()


# ---- the schemas ----

def schema_of(kind):
    with open(os.path.join(SCHEMAS, kind + '.schema.json'), encoding='utf-8') as file:
        return json.load(file)


def validator(schema):
    return jsonschema.Draft202012Validator(schema)


def type_of(value):
    names = {bool: 'boolean', int: 'integer', float: 'number', str: 'string', type(None): 'null', list: 'array', dict: 'object'}
    return names[type(value)]


def types_of(schema):
    values = schema.get('enum', [schema['const']] if 'const' in schema else [])
    named = schema.get('type', [])
    return {type_of(value) for value in values} | set([named] if isinstance(named, str) else named)


def parts_of(path, schema):
    """The schemas in a schema, without those that it refers to: (path, schema, kind)."""
    for name, part in schema.get('properties', {}).items():
        yield f'{path}/properties/{name}', part
    for word in 'items', 'additionalProperties':
        if isinstance(schema.get(word), dict):
            yield f'{path}/{word}', schema[word]
    for number, part in enumerate(schema.get('oneOf', [])):
        yield f'{path}/oneOf/{number}', part


def all_parts(schema):
    """(path, schema) of all schemas in the file."""
    todo = [('#', schema)] + [(f'#/$defs/{name}', part) for name, part in schema.get('$defs', {}).items()]
    while todo:
        path, part = todo.pop()
        yield path, part
        todo += parts_of(path, part)


def matches(root, part, value):
    return validator({**part, '$defs': root.get('$defs', {})}).is_valid(value)


def places(root, value):
    """(path of a schema, schema, keys that lead to the value, value) for each value in a valid document."""
    todo = [('#', root, (), value)]
    while todo:
        path, part, keys, value = todo.pop()
        yield path, part, keys, value
        if '$ref' in part:
            todo.append((part['$ref'], root['$defs'][part['$ref'].split('/')[-1]], keys, value))
        for number, branch in enumerate(part.get('oneOf', [])):
            if matches(root, branch, value):
                todo.append((f'{path}/oneOf/{number}', branch, keys, value))
        if isinstance(value, dict):
            for name, member in value.items():
                if name in part.get('properties', {}):
                    todo.append((f'{path}/properties/{name}', part['properties'][name], keys + (name,), member))
                elif isinstance(part.get('additionalProperties'), dict):
                    todo.append((f'{path}/additionalProperties', part['additionalProperties'], keys + (name,), member))
        elif isinstance(value, list) and 'items' in part:
            todo += [(f'{path}/items', part['items'], keys + (number,), member) for number, member in enumerate(value)]


def missing(schema, found):
    """Parts of the schema, with their types, that occur in none of the documents."""
    wanted = {(path, name) for path, part in all_parts(schema) for name in types_of(part) or {'any'}}
    seen = set()
    for one in found:
        for path, part, _, value in places(schema, one):
            name = type_of(value)
            # An integer is a number.
            seen |= {(path, name), (path, 'any')} | ({(path, 'number')} if name == 'integer' else set())
    return sorted(wanted - seen)


def changed(value, keys, change):
    """A copy of the document in which `change` was applied to the object to which `keys` lead."""
    result = copy.deepcopy(value)
    inner = result
    for key in keys:
        inner = inner[key]
    change(inner)
    return result


# ---- tests ----

def of_kind(kind):
    def documents_are_valid():
        check = validator(schema_of(kind))
        for one in documents(kind):
            errors = [f'{list(error.absolute_path)}: {error.message[:300]}' for error in check.iter_errors(one)]
            assert not errors, errors

    def each_property_and_type_occurs():
        lacking = missing(schema_of(kind), documents(kind))
        assert not lacking, lacking

    def a_removed_or_extra_key_is_refused():
        schema, tried = schema_of(kind), set()
        check = validator(schema)
        for one in documents(kind):
            for path, part, keys, value in places(schema, one):
                if path in tried or not isinstance(value, dict) or 'properties' not in part:
                    continue
                tried.add(path)
                assert not check.is_valid(changed(one, keys, lambda inner: inner.update(vidmm_extra=1))), (path, 'an extra key')
                for name in part.get('required', []):
                    assert not check.is_valid(changed(one, keys, lambda inner, name=name: inner.pop(name))), (path, name)
        assert tried == {path for path, part in all_parts(schema) if 'properties' in part}, tried

    for function in documents_are_valid, each_property_and_type_occurs, a_removed_or_extra_key_is_refused:
        function.__name__ = f'{kind.replace("-", "_")}_{function.__name__}'
        test(function)


@test
def each_schema_is_one_and_has_documents():
    names = {os.path.basename(path) for path in glob.glob(os.path.join(SCHEMAS, '*'))}
    assert names == {kind + '.schema.json' for kind in MAKERS}, names
    for kind in MAKERS:
        schema = schema_of(kind)
        jsonschema.Draft202012Validator.check_schema(schema)
        assert schema['$schema'] == jsonschema.Draft202012Validator.META_SCHEMA['$id'] and schema['$id'] == kind + '.schema.json', kind


@test
def each_property_has_a_description_and_each_object_is_closed():
    for kind in MAKERS:
        for path, part in all_parts(schema_of(kind)):
            assert 'description' in part or not path.split('/')[-2:-1] == ['properties'], (kind, path)
            assert 'object' not in types_of(part) or 'additionalProperties' in part, (kind, path)
            assert set(part.get('required', [])) <= set(part.get('properties', {})), (kind, path)


for each in MAKERS:
    of_kind(each)


@test
def a_property_that_no_document_has_is_found():
    schema = schema_of('clients')
    schema['$defs']['client']['properties']['vidmm_extra'] = {'type': 'integer'}
    assert missing(schema, documents('clients')) == [('#/$defs/client/properties/vidmm_extra', 'integer')]
    schema['$defs']['client']['required'].append('vidmm_extra')
    assert not all(validator(schema).is_valid(one) for one in documents('clients'))


@test
def serve_accepts_the_configurations():
    for configuration in CONFIGURATIONS:
        with Host(configuration) as host:
            pass
        assert host.process.returncode == 0, (configuration, host.lines)


@test
def serve_and_the_schema_refuse_wrong_configurations(folder):
    check = validator(schema_of('serve-config'))
    for configuration in WRONG_CONFIGURATIONS:
        assert not check.is_valid(configuration), configuration
        path = write(os.path.join(folder, 'host.json'), json.dumps(configuration))
        run('serve', '--config', path, '--socket', os.path.join(folder, 's'), codes=(3,))


if __name__ == '__main__':
    sys.exit(main())
