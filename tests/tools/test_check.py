#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""test_check.py VIDMM JUDGED_RECORDING EVERY-OP: `vidmm check` and `vidmm coverage`. TAP."""
import json
import os
import subprocess
import sys
import tempfile
import xml.etree.ElementTree

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'support'))
from tap_tests import main, test
from vidmm_program import record, vidmm

EVERY = sys.argv[3]


def judged(folder, name='run', *what):
    path = os.path.join(folder, name)
    subprocess.run([sys.argv[2], path, *what], check=True)
    return path


def lines(folder, text):
    path = os.path.join(folder, 'accepted')
    with open(path, 'w', encoding='utf-8') as file:
        file.write(text)
    return path


def findings(folder, *args, code=1):
    done = vidmm('check', '--format', 'json', *args, judged(folder), code=code)
    return json.loads(done.stdout)['recordings'][0]['findings']


def in_folder(function):
    def inside():
        with tempfile.TemporaryDirectory() as folder:
            return function(folder)
    inside.__name__ = function.__name__
    return test(inside)


# ---- check ----

@in_folder
def findings_of_a_rule_are_one_entry(folder):
    found = findings(folder)
    assert [(one['rule'], one['count']) for one in found] == [
        ('SPL-12', 2), ('NT-06', 1), ('Q-9999', 1), ('', 1), ('BUGCHECK', 1)], found
    assert found[0]['text'] == 'the first' and found[0]['first'] == {'time_ns': 1000, 'sequence': 1, 'process': 3, 'object': 0x40000040}, found[0]
    assert 'split point' in found[0]['rule_text'] and found[0]['source'], found[0]
    assert found[2]['rule_text'] is None and found[3]['text'] == 'no rule is named', found
    assert found[4]['text'].startswith('0x116 (0x1, 0x2, 0x3)'), found[4]


@in_folder
def a_run_without_findings_is_clean(folder):
    path, events = record(folder, EVERY)
    done = vidmm('check', path)
    assert done.stdout == f'{path}: 0 findings in {len(events)} events\n', done.stdout
    suite = xml.etree.ElementTree.fromstring(vidmm('check', '--format=junit', path).stdout).find('testsuite')
    assert suite.get('failures') == '0' and len(suite) == 1, suite.attrib


@in_folder
def the_text_repeats_what_the_rule_says(folder):
    text = vidmm('check', judged(folder), code=1).stdout
    assert '6 findings in 11 events' in text and 'SPL-12  error, 2 times, first at 0.000001000 s, process 3, object 0x40000040' in text, text
    assert 'seen: the first' in text and 'rule: If the set required' in text and 'source: ' in text, text


def seen_in_stream(folder, what, code):
    done = vidmm('check', '--format', 'json', judged(folder, what, what), code=code)
    return {one['rule']: one for one in json.loads(done.stdout)['recordings'][0]['findings']}


@in_folder
def q_491_q_492_operations_without_effect_are_found(folder):
    found = seen_in_stream(folder, 'broken', 1)
    assert found['Q-491']['count'] == 2 and 'succeeded for TRANSFER and did not advance pDmaBuffer' in found['Q-491']['text'], found
    assert found['Q-492']['count'] == 1 and 'for 100 bytes of commands' in found['Q-492']['text'], found
    assert (found['Q-491']['severity'], found['Q-492']['severity']) == ('error', 'warning'), found
    assert 'advance pDmaBuffer' in found['Q-491']['mend'] and found['Q-491']['rule_text'], found


@in_folder
def lock_30_res_01_what_is_not_undone_is_found(folder):
    found = seen_in_stream(folder, 'broken', 1)
    assert found['LOCK-30']['text'] == 'allocation 0x40000040 was destroyed while 1 locks were not undone (allocations of this call: 1)', found
    assert found['LOCK-30']['count'] == 1 and found['LOCK-30']['first']['object'] == 0x40000040, found
    assert 'resident 4 times and evicted them 1 times' in found['RES-01']['text'], found
    assert all(found[rule]['severity'] == 'warning' and found[rule]['mend'] for rule in ('LOCK-30', 'RES-01')), found


@in_folder
def tdr_19_a_page_fault_is_found(folder):
    found = seen_in_stream(folder, 'broken', 1)
    assert found['TDR-19']['text'].startswith('page fault at 0x1000') and 'paging fence' in found['TDR-19']['mend'], found
    text = vidmm('check', os.path.join(folder, 'broken'), code=1).stdout
    assert 'TDR-19  error, 1 time' in text and 'mend: before the submission wait' in text, text
    levels = {one['ruleId']: one['level'] for one in json.loads(vidmm('check', '--format', 'sarif', os.path.join(folder, 'broken'), code=1).stdout)['runs'][0]['results']}
    assert levels == {'Q-491': 'error', 'Q-492': 'warning', 'LOCK-30': 'warning', 'RES-01': 'warning', 'TDR-19': 'error'}, levels


@in_folder
def a_stream_that_keeps_the_rules_is_clean(folder):
    assert seen_in_stream(folder, 'kept', 0) == {}
    for model in 'wddm1', 'wddm2':
        path, _ = record(folder, EVERY, '--model', model, '--vram', '2M', '--aperture', '8M')
        assert ': 0 findings in' in vidmm('check', path).stdout, model


@in_folder
def accepted_findings_do_not_fail(folder):
    file = lines(folder, '# a comment\n\nSPL-12 "second" never the first\nSPL-12   known  \nNT-06 "A&B" it lives on\nQ-9999 x\nLOCK-07 unused\n')
    found = findings(folder, '--suppress', file)
    assert [(one['rule'], one['count'], one['accepted']) for one in found] == [
        ('SPL-12', 1, 'known'), ('SPL-12', 1, 'never the first'), ('NT-06', 1, 'it lives on'), ('Q-9999', 1, 'x'), ('', 1, None), ('BUGCHECK', 1, None)], found
    text = vidmm('check', '--suppress', file, judged(folder), code=1).stdout
    assert '2 findings in 11 events, 4 accepted' in text and 'suppression in line 7 (LOCK-07) matched no finding' in text, text
    every = lines(folder, 'SPL-12 a\nNT-06 a\nQ-9999 a\nBUGCHECK a\n')
    assert vidmm('check', '--suppress', every, judged(folder), code=1).stdout.startswith(f'{folder}/run: 1 finding in'), 'the one without a rule remains'


@in_folder
def a_clean_verdict_after_accepting_all(folder):
    path, _ = record(folder, EVERY)
    file = lines(folder, 'SPL-12 x\n')
    assert 'matched no finding' in vidmm('check', '--suppress', file, path).stdout


@in_folder
def wrong_files_of_suppressions_are_refused(folder):
    for text, why in (('SPL-12\n', 'line 1: no reason'), ('\nSPL-12 "a" \n', 'line 2: no reason'), ('SPL-12 "a reason\n', 'no closing quote'),
                      ('A-RULE-WITH-A-LONG-NAME x\n', 'too long')):
        done = vidmm('check', '--suppress', lines(folder, text), judged(folder), code=3)
        assert why in done.stderr and not done.stdout, (text, done.stderr)
    vidmm('check', '--suppress', os.path.join(folder, 'absent'), judged(folder), code=4)


@in_folder
def sarif_has_rules_results_and_suppressions(folder):
    odd = judged(folder, 'a run \u00fc')
    document = json.loads(vidmm('check', '--format', 'sarif', '--suppress', lines(folder, 'NT-06 because\n'), odd, judged(folder), code=1).stdout)
    run = document['runs'][0]
    assert document['version'] == '2.1.0' and run['tool']['driver']['name'] == 'vidmm', document
    assert [rule['id'] for rule in run['tool']['driver']['rules']] == ['SPL-12', 'NT-06', 'Q-9999', '', 'BUGCHECK'], run['tool']
    results = run['results']
    assert len(results) == 10 and all(one['level'] == 'error' and one['message']['text'] for one in results), results
    assert results[0]['occurrenceCount'] == 2 and results[0]['suppressions'] == [], results[0]
    assert results[1]['suppressions'] == [{'kind': 'external', 'justification': 'because'}], results[1]
    uri = results[0]['locations'][0]['physicalLocation']['artifactLocation']['uri']
    assert uri.endswith('/a%20run%20%C3%BC') and results[5]['locations'][0]['physicalLocation']['artifactLocation']['uri'].endswith('/run'), uri


@in_folder
def junit_has_a_case_for_each_rule(folder):
    suite = xml.etree.ElementTree.fromstring(vidmm('check', '--format', 'junit', '--suppress', lines(folder, 'SPL-12 known\n'), judged(folder), code=1).stdout).find('testsuite')
    assert (suite.get('tests'), suite.get('failures'), suite.get('skipped')) == ('5', '4', '1'), suite.attrib
    cases = {case.get('name'): case for case in suite}
    assert cases['SPL-12'].find('skipped').get('message') == 'known', cases
    assert cases['NT-06'].find('failure').get('message') == '<tag> "A&B" ?? ?', cases['NT-06'].find('failure').attrib


@in_folder
def a_recording_that_ends_early_is_used(folder):
    path = judged(folder)
    os.truncate(path, os.path.getsize(path) - 1)
    done = vidmm('check', path)
    assert 'the recording is cut' in done.stdout and 'in the middle' in done.stderr, (done.stdout, done.stderr)


@in_folder
def wrong_calls_are_refused(folder):
    for verb in 'check', 'coverage':
        assert 'no recording of events' in vidmm(verb, code=2).stderr
        vidmm(verb, EVERY, code=3)
        vidmm(verb, os.path.join(folder, 'absent'), code=4)
    assert 'expected text, json, sarif or junit' in vidmm('check', '--format', 'xml', judged(folder), code=2).stderr


# ---- coverage ----

@in_folder
def coverage_counts_names_statuses_and_what_is_missing(folder):
    text = vidmm('coverage', judged(folder)).stdout
    assert text.startswith('11 events\n') and 'ddi: 2 of ' in text, text
    render = next(line for line in text.splitlines() if line.startswith('  render '))
    assert render.split()[1:] == ['3', 'STATUS_SUCCESS', '1,', 'STATUS_NO_MEMORY', '1,', '0x12345678', '1'], render
    assert ' submit_command ' in text[text.index('not seen:'):], text


@in_folder
def coverage_of_several_recordings_is_their_sum(folder):
    one, two = judged(folder), record(folder, EVERY, name='two')[0]
    types = [{kind['name']: kind for kind in json.loads(vidmm('coverage', '--json', *paths).stdout)['types']} for paths in ([one], [two], [one, two])]
    for name, kind in types[2].items():
        assert kind['count'] == types[0][name]['count'] + types[1][name]['count'], name
    counts = [{reason['name']: reason['count'] for reason in kinds['ddi']['reasons']} for kinds in types]
    assert counts[2]['render'] == counts[0]['render'] + counts[1]['render'] > 3, counts
    assert sum(counts[2].values()) == types[2]['ddi']['count'], counts


@in_folder
def coverage_agrees_with_the_events(folder):
    path, events = record(folder, EVERY, '--vram', '1M')
    found = json.loads(vidmm('coverage', '--json', path).stdout)
    assert found['events'] == len(events)
    for kind in found['types']:
        for reason in kind['reasons']:
            named = [line for line in events if line.split()[2 + (line.split()[2].startswith('p'))].startswith(kind['name'] + '/' + reason['name'])
                     and line.split()[2 + (line.split()[2].startswith('p'))] == kind['name'] + '/' + reason['name']]
            assert len(named) == reason['count'], (kind['name'], reason, len(named))


main()
