#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""test_whatif_chart.py VIDMM: the picture and the page of `vidmm what-if`. TAP."""
import html.parser
import json
import os
import re
import shutil
import sys
import tempfile
import xml.etree.ElementTree

from whatif_cases import EVERY, GLMARK, IMPORTER, TILED, TOO_LARGE, read, run, whatif, write_changed

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'support'))
from tap_tests import main, test

SVG = '{http://www.w3.org/2000/svg}'
PANELS = ('Bytes paged in beyond first uses', 'Late frames', 'p99 latency', 'Slow-down')
ROWS = ('paged in beyond first uses', 'late frames', 'p99 latency', 'slow-down')


class Panel:
    """A panel of a figure: (policy, memory) -> the marker's position, and what is drawn around it."""

    def __init__(self, group):
        texts = [text.text for text in group.findall(SVG + 'text')]
        self.title, self.texts = texts[0], texts
        self.points, self.rings, self.crosses, self.tooltips, self.dashes = {}, [], [], {}, {}
        for series in group.findall(SVG + 'g'):
            tooltip = series.find(SVG + 'title')
            if tooltip is None:
                self.dashes.setdefault(series.get('class'), []).extend(path.get('stroke-dasharray') for path in series.findall(SVG + 'path'))
                continue
            name, memory = tooltip.text.split('\n')[0].rsplit(', ', 1)
            x, y = re.match(r'translate\((\S+) (\S+)\)', series.find(SVG + 'path').get('transform')).groups()
            if 'no figures' in tooltip.text:
                self.crosses.append((name, memory))
                continue
            self.points[name, memory] = float(x), float(y)
            self.tooltips[name, memory] = dict(line.split(': ') for line in tooltip.text.split('\n')[1:])
            if series.find(SVG + 'circle') is not None:
                self.rings.append((name, memory))


def figures(*args, **more):
    """The result as JSON, and for each figure its element and panels."""
    with tempfile.NamedTemporaryFile('r', encoding='utf-8') as out:
        text = whatif(*args, '--svg', '-', '--json', out.name, **more).stdout
        report = json.load(out)
    root = xml.etree.ElementTree.fromstring(text)
    return report, [(figure, [Panel(group) for group in figure.findall(SVG + 'g') if group.get('transform')])
                    for figure in root.findall(SVG + 'svg')]


def distances(values):
    return [round(after - before, 0) for before, after in zip(values, values[1:])]


@test
def each_recording_has_a_figure_with_four_panels():
    _, drawn = figures(EVERY, TILED, '--vram', '1M,2M', '--policy', 'lru')
    assert [figure.find(SVG + 'title').text for figure, _ in drawn] == [EVERY, TILED]
    for _, panels in drawn:
        assert [panel.title for panel in panels] == list(PANELS)
        assert all('video memory' in panel.texts for panel in panels)


@test
def each_marker_has_the_figures_of_its_cell():
    report, [(_, panels)] = figures(GLMARK, '--vram', '32M,128M', '--policy', 'lru,reference')
    table = whatif(GLMARK, '--vram', '32M,128M', '--policy', 'lru,reference').stdout
    assert len(report['cells']) == 4
    for panel, row in zip(panels, ROWS):
        assert len(panel.points) == len(report['cells']), panel.points
        for cell in report['cells']:
            key = cell['policy'], '%.*f MiB' % (cell['vram_bytes'] < 100 << 20, cell['vram_bytes'] / (1 << 20))
            value = panel.tooltips[key][row]
            line = next(line for line in table.splitlines() if line.split()[:3:2] == [key[1].split()[0], key[0]])
            assert value in line, (value, line)


@test
def positions_are_those_of_the_values():
    report, [(_, panels)] = figures(GLMARK, '--vram', '16M..128M:geometric', '--policy', 'lru,predicted')
    values = {'Bytes paged in beyond first uses': 'bytes_paged_in_again', 'Late frames': 'late_frames', 'p99 latency': 'latency_p99_ns',
              'Slow-down': 'slowdown_permille'}
    for panel in panels:
        key = values[panel.title]
        heights = [(cell[key], panel.points[cell['policy'], '%.*f MiB' % (cell['vram_bytes'] < 100 << 20, cell['vram_bytes'] / (1 << 20))][1])
                   for cell in report['cells']]
        # All points lie on one falling line from values to positions.
        heights.sort()
        (low, bottom), (high, top) = heights[0], heights[-1]
        assert low < high and bottom > top, heights
        assert all(abs(bottom + (value - low) / (high - low) * (top - bottom) - y) < 0.2 for value, y in heights), heights


@test
def the_axis_is_logarithmic_for_geometric_sizes():
    for sizes, logarithmic in (('8M,1M,4M,2M', True), ('1M..8M:geometric', True), ('1M,2M,3M,4M', False)):
        _, [(_, panels)] = figures(EVERY, '--vram', sizes, '--policy', 'lru')
        for panel in panels:
            assert ('video memory (logarithmic)' in panel.texts) == logarithmic, sizes
            # The sizes are evenly spread with this axis.
            spread = distances(sorted(x for x, _ in panel.points.values()))
            assert len(spread) == 3 and max(spread) - min(spread) <= 1, (sizes, spread)
    _, [(_, panels)] = figures(EVERY, '--vram', '2M', '--policy', 'lru')
    assert len(panels[0].points) == 1 and panels[0].texts.count('2 MiB') == 1


@test
def reference_alone_is_dashed():
    _, [(_, panels)] = figures(EVERY, '--vram', '1M,2M', '--policy', 'all+reference')
    for panel in panels:
        assert {name for name, dashes in panel.dashes.items() if dashes != [None]} == {'reference'}, panel.dashes
        assert set(panel.dashes) == {'lru', 'clock', 'mru', 'predicted', 'reference'}
    # A second model has dots and hollow markers.
    _, [(figure, panels)] = figures(EVERY, '--vram', '1M,2M', '--policy', 'lru', '--model', 'wddm1,wddm2')
    assert panels[0].dashes == {'lru': [None, '2 3']} and {name for name, _ in panels[0].points} == {'lru, wddm1', 'lru, wddm2'}
    assert any(path.get('class') == 'hollow' for path in figure.iter(SVG + 'path'))


@test
def more_links_and_models_have_a_figure_each():
    _, drawn = figures(EVERY, '--vram', '1M', '--policy', 'lru', '--link', 'pcie3x4,pcie3x8,pcie3x16')
    assert len(drawn) == 3 and all(set(panel.points) == {('lru', '1.00 MiB')} for _, panels in drawn for panel in panels)
    names = [figure.findall(SVG + 'text')[1].text for figure, _ in drawn]
    assert names == ['pcie3x4, wddm1', 'pcie3x8, wddm1', 'pcie3x16, wddm1'], names


@test
def the_knee_has_a_ring():
    report, [(figure, panels)] = figures(GLMARK, '--vram', '32M,128M,64M', '--policy', 'lru')
    assert [knee['vram_bytes'] for knee in report['knees']] == [64 << 20]
    assert all(panel.rings == [('lru', '64.0 MiB')] for panel in panels)
    assert any(text.text.startswith('knee:') for text in figure.findall(SVG + 'text'))
    report, [(figure, panels)] = figures(GLMARK, '--vram', '32M', '--policy', 'lru')
    assert report['knees'][0]['vram_bytes'] is None
    assert not any(panel.rings for panel in panels) and not any(text.text.startswith('knee:') for text in figure.findall(SVG + 'text'))


@test
def the_lower_bound_is_stated():
    report, [(figure, _)] = figures(GLMARK, '--vram', '100%', '--policy', 'lru')
    [cell] = report['cells']
    assert cell['bytes_paged_in_again'] == 0
    uses = 'first uses, %.0f MiB,' % (cell['bytes_paged_in'] / (1 << 20))
    assert any(uses in text.text for text in figure.findall(SVG + 'text')), uses


@test
def the_legend_is_above_the_plots():
    _, [(figure, _)] = figures(EVERY, '--vram', '1M,2M', '--policy', 'all+reference', '--link', 'pcie3x16,pcie1x1')
    panels = [float(re.match(r'translate\(\S+ (\S+)\)', group.get('transform'))[1]) for group in figure.findall(SVG + 'g') if group.get('transform')]
    legend = [float(text.get('y')) for text in figure.findall(SVG + 'text') if re.match('(lru|clock|mru|predicted|reference), |knee', text.text)]
    assert len(legend) == 11 and max(legend) < min(panels), (legend, panels)


@test
def a_failed_replay_is_a_cross_and_a_gap():
    with tempfile.TemporaryDirectory() as folder:
        path = write_changed(os.path.join(folder, 'large.trace'), *TOO_LARGE)
        _, [(figure, panels)] = figures(path, '--vram', '1M,3G', '--policy', 'lru', code=1, err='findings')
        for panel in panels:
            assert panel.crosses == [('lru', '1.00 MiB')] and list(panel.points) == [('lru', '3.00 GiB')]
            assert panel.dashes == {'lru': []}, 'one point has no line'
        assert any('the replay failed' in text.text for text in figure.findall(SVG + 'text'))
    _, [(figure, panels)] = figures(folder + '/none', '--vram', '1M', '--policy', 'lru', code=4, err='No such file')
    assert panels == [] and any(text.text == 'no figures: environment' for text in figure.findall(SVG + 'text'))


@test
def any_file_name_is_shown():
    with tempfile.TemporaryDirectory() as folder:
        name = os.fsencode(folder) + b'/a<b>&"c"\x01\xff\xc3\xa9.trace'
        shutil.copy(EVERY, name)
        for option in '--svg', '--html':
            done = run('what-if', name, '--vram', '1M', '--policy', 'lru', option, '-')
            assert done.returncode == 0 and 'a&lt;b&gt;&amp;&quot;c&quot;\ufffd\ufffd\u00e9.trace' in done.stdout, done
        xml.etree.ElementTree.fromstring(run('what-if', name, '--vram', '1M', '--policy', 'lru', '--svg', '-').stdout)


class Page(html.parser.HTMLParser):
    EMPTY = ('meta', 'link', 'br')

    def __init__(self, text):
        super().__init__()
        self.open, self.tags, self.balanced = [], [], True
        self.feed(text)
        self.balanced = self.balanced and not self.open

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        if tag not in self.EMPTY:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append(tag)

    def handle_endtag(self, tag):
        self.balanced = self.balanced and self.open and self.open.pop() == tag


@test
def the_page_contains_all_it_needs():
    arguments = (EVERY, IMPORTER, '--vram', '1M,2M', '--policy', 'lru,reference')
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, 'out.html')
        table = whatif(*arguments, '--html', path).stdout
        text = read(path)
        assert text == whatif(*arguments, '--html', '-').stdout, 'the page is the same each time'
    page = Page(text)
    assert page.balanced and page.tags.count('svg') == 2 and page.tags.count('tr') == 2 + 8, page.tags
    # The rows of both tables have the same figures.
    rows = [re.sub('<[^>]*>', '  ', line).split() for line in text.splitlines() if line.startswith('<tr') and '<td' in line]
    assert rows == [line.split() for line in table.splitlines() if line.startswith('  1.00') or line.startswith('  2.00')], rows
    # Nothing is loaded, and there are rules for a dark background.
    assert not re.search(r'<script|https?:|src=|href=|url\(|@import', text)
    assert text.count('prefers-color-scheme:dark') == 2


@test
def a_file_that_cannot_be_written_is_an_error():
    for option in '--html', '--svg':
        for path in '/dev/full', '/nonexistent/file':
            done = whatif(EVERY, '--vram', '1M', '--policy', 'lru', option, path, code=4, err='vidmm what-if: ' + path)
            assert 'knee' in done.stdout


if __name__ == '__main__':
    sys.exit(main())
