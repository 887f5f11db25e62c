#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""test_report_browser.py VIDMM EVERY-OP: the page of `vidmm report` in Chromium, without a window: what it shows, and what it does when a
person points, zooms, drags, selects and types. Needs the Debian packages chromium, chromium-driver and python3-selenium. TAP."""
import atexit
import json
import os
import shutil
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'support'))
sys.path.append('/usr/lib/python3/dist-packages')  # Debian's modules, for any Python
from tap_tests import main, test

VIDMM, EVERY = sys.argv[1:3]
GLMARK = os.path.join(os.environ['VIDMM_EXAMPLES'], 'glmark2-1080p.trace.zst')
MISSING = 'chromium, chromium-driver or python3-selenium is not installed'


def find_browser():
    try:
        from selenium import webdriver
        from selenium.webdriver.chrome.service import Service
    except ImportError:
        return None
    if not shutil.which('chromium') or not shutil.which('chromedriver'):
        return None
    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which('chromium')
    for argument in '--headless=new', '--no-sandbox', '--disable-gpu', '--window-size=1280,720', '--disable-dev-shm-usage':
        options.add_argument(argument)
    options.set_capability('goog:loggingPrefs', {'browser': 'ALL'})
    driver = webdriver.Chrome(service=Service(shutil.which('chromedriver')), options=options)
    driver.set_script_timeout(1800)
    driver.set_page_load_timeout(1800)
    atexit.register(driver.quit)
    return driver


BROWSER = find_browser()
READY = '''const done = arguments[0]; const look = () => document.documentElement.dataset.ready ? done(true) : setTimeout(look, 20); look();'''
FRAME = '''const done = arguments[0]; requestAnimationFrame(() => requestAnimationFrame(() => done(true)));'''


def js(script, *arguments):
    return BROWSER.execute_script(script, *arguments)


def frame():
    BROWSER.execute_async_script(FRAME)


def show(folder, *runs):
    """Opens the page of the runs, each a list of arguments of a replay."""
    page, paths = os.path.join(folder, 'page.html'), []
    for number, run in enumerate(runs):
        paths.append(os.path.join(folder, f'run{number}'))
        subprocess.run([VIDMM, 'replay', '-q', '--record', paths[-1], *run], check=True)
    subprocess.run([VIDMM, 'report', *paths, '-o', page], check=True)
    BROWSER.get('file://' + page)
    BROWSER.execute_async_script(READY)
    frame()
    return page


def check_log():
    log = [entry for entry in BROWSER.get_log('browser') if entry['level'] == 'SEVERE' and 'favicon' not in entry['message']]
    assert not log, log


def pointer(kind, x, y, panel=0, **more):
    """An event of the mouse at a point of a panel, in CSS pixels."""
    js('''const canvas = report.view.panels[arguments[0]].canvas, box = canvas.getBoundingClientRect();
    const init = {bubbles: true, cancelable: true, clientX: box.left + arguments[2], clientY: box.top + arguments[3], ...arguments[4]};
    (arguments[1] === 'mouseup' ? window : canvas).dispatchEvent(new (arguments[1] === 'wheel' ? WheelEvent : MouseEvent)(arguments[1], init));''',
       panel, kind, x, y, more)
    frame()


def place():
    """A large placement in the first map that is visible now: its number, and a point in it."""
    return js('''const panel = report.view.panels[0], view = report.view, rows = panel.rows; let best = -1, most = 0;
    for (let i = 0; i < rows.count; i++) {
        const area = rows.visible(i) ? (view.x(rows.end[i]) - view.x(rows.begin[i])) * (rows.y1(i) - rows.y0(i)) : 0;
        if (area > most) { most = area; best = i; }
    }
    return [best, view.x((rows.begin[best] + rows.end[best]) / 2), (rows.y0(best) + rows.y1(best)) / 2 * panel.height];''')


def browser_test(function):
    def run(folder):
        if not BROWSER:
            return MISSING
        function(folder)
        check_log()
        return None
    run.__name__ = function.__name__
    return test(run)


@browser_test
def the_page_shows_maps_lanes_counters_and_tables(folder):
    show(folder, ['--vram', '25%', GLMARK])
    titles = js("return [...document.querySelectorAll('figcaption, h2')].map(e => e.textContent)")
    for wanted in ('segment 1: ', 'segment 2 (aperture): ', 'engines', 'waits of each process', 'paging per second', 'resident in segment 1', 'fragmentation',
                   'packets submitted', 'Figures', 'The longest calls', 'Allocations by bytes paged', 'Findings'):
        assert any(title.startswith(wanted) for title in titles), (wanted, titles)
    assert 'glmark2' in js("return document.getElementById('head').textContent")
    for panel in range(js('return report.view.panels.length')):
        drawn = js('''const c = report.view.panels[arguments[0]].canvas; const data = c.getContext('2d').getImageData(0, 0, c.width, c.height).data;
        let count = 0; for (let i = 3; i < data.length; i += 4) count += data[i] > 0; return count / (c.width * c.height);''', panel)
        assert drawn > 0, (panel, drawn)


@browser_test
def each_of_the_longest_calls_says_why(folder):
    show(folder, ['--vram', '10%', GLMARK])
    cells = js('''const section = [...document.querySelectorAll('section')].find(s => s.querySelector('h2').textContent.startsWith('The longest calls'));
    return [...section.querySelectorAll('tbody tr')].map(row => [...row.querySelectorAll('td.why div')].map(e => e.textContent));''')
    assert len(cells) == 20 and cells == js('return report.models[0].info.stalls.map(s => s.why)'), cells
    assert all('waited' in why[0] and 'submission' in why[0] for why in cells), cells
    assert js("return [...document.querySelectorAll('th')].every(e => !e.textContent.includes('object Object'))")


@browser_test
def the_budget_is_a_line_where_segments_have_a_budget_group(folder):
    show(folder, ['--vram', '25%', '--model', 'wddm2', GLMARK], ['--vram', '25%', GLMARK])
    titles = js("return [...document.querySelectorAll('figcaption')].map(e => e.textContent)")
    size = js('return report.models[0].segments[0].bytes')
    budgets = [title for title in titles if 'budget' in title]
    assert len(budgets) == 1 and budgets[0].startswith('A: glmark2') and 'resident in the local budget group: ' in budgets[0], titles
    assert budgets[0].endswith(f', largest budget {js("return formatBytes(arguments[0])", size)}'), (budgets, size)
    assert [js('return report.models[arguments[0]].budgets.map(b => [b.name, b.budget, b.lines.length])', model) for model in (0, 1)] == \
        [[['local', size, 1], ['non-local', js('return report.models[0].segments[1].bytes'), 0]], []]
    most = js('return d3.max(report.models[0].budgets[0].lines[0].value)')
    assert 0 < most <= size and most == js('return d3.max(report.models[0].resident[1].value)'), (most, size)
    line = js('''const panel = report.view.panels.find(p => p.title.includes('budget group')), c = panel.canvas;
    return [...c.getContext('2d').getImageData(3, Math.round((1 - arguments[0] / Math.max(arguments[0], arguments[1])) * (c.height - 1)), 1, 1).data];''',
              size, most)
    assert line == [0xd5, 0x5e, 0x00, 255], line


@browser_test
def the_figures_are_those_of_the_replay(folder):
    show(folder, ['--vram', '25%', GLMARK])
    done = subprocess.run([VIDMM, 'replay', '--json', '--vram', '25%', GLMARK], capture_output=True, text=True, check=True)
    run = json.loads(done.stdout)
    figures = js("return report.models[0].totals")
    assert (figures['pagedIn'], figures['pagedOut']) == (run['bytes_paged_in'], run['bytes_paged_out']) > (0, 0), (figures, run)


@browser_test
def the_pointer_names_an_allocation_and_a_click_selects_it(folder):
    show(folder, ['--vram', '25%', GLMARK])
    row, x, y = place()
    pointer('mousemove', x, y)
    tip = js("const tip = document.getElementById('tip'); return tip.hidden ? '' : tip.textContent")
    handle = js('''const m = report.models[0]; return '0x' + m.allocations.handle[m.placements.allocation[arguments[0]]].toString(16).padStart(8, '0')''', row)
    assert handle in tip and 'glmark2' in tip and 'created at' in tip, (handle, tip)
    pointer('mousedown', x, y)
    pointer('mouseup', x, y)
    assert js('return report.view.selected.allocation === report.models[0].placements.allocation[arguments[0]]', row)
    assert handle in js("return document.getElementById('selection').textContent")
    pointer('mouseleave', x, y)
    assert js("return document.getElementById('tip').hidden")
    js("document.querySelector('#selection button').click()")
    assert js("return report.view.selected === null && !document.getElementById('selection').textContent")


@browser_test
def wheel_drag_and_keys_change_what_is_shown(folder):
    show(folder, ['--vram', '25%', GLMARK])
    domain = lambda: js('return report.view.x.domain()')
    full = domain()
    center = js('return report.view.x.invert(300)')
    pointer('wheel', 300, 40, deltaY=-900)
    near = domain()
    assert near[1] - near[0] < 0.5 * (full[1] - full[0]) and near[0] < center < near[1], (full, near)
    assert abs(js('return report.view.x.invert(300)') - center) < 0.001 * (full[1] - full[0])
    pointer('mousedown', 300, 40)
    js("window.dispatchEvent(new MouseEvent('mousemove', {clientX: report.view.panels[0].canvas.getBoundingClientRect().left + 200}))")
    pointer('mouseup', 200, 40)
    moved = domain()
    assert moved[0] > near[0] and abs((moved[1] - moved[0]) - (near[1] - near[0])) < 1, (near, moved)
    for key, check in (('ArrowLeft', lambda d: d[0] < moved[0]), ('+', lambda d: d[1] - d[0] < moved[1] - moved[0]), ('0', lambda d: d == full)):
        js("report.view.panels[0].canvas.dispatchEvent(new KeyboardEvent('keydown', {key: arguments[0], bubbles: true, cancelable: true}))", key)
        frame()
        assert check(domain()), (key, domain())


@browser_test
def colors_can_be_chosen(folder):
    show(folder, ['--vram', '25%', GLMARK])
    seen = set()
    for coloring in 'process', 'kind', 'allocation', 'paging':
        js('''const select = document.getElementById('coloring'); select.value = arguments[0]; select.dispatchEvent(new Event('change'))''', coloring)
        frame()
        seen.add(js("return document.querySelector('canvas').toDataURL()"))
        assert js("return document.querySelectorAll('.legend i').length") > 0
    assert len(seen) == 4


@browser_test
def two_runs_begin_with_their_differences(folder):
    show(folder, ['--vram', '15%', GLMARK], ['--vram', '100%', GLMARK])
    first = js("return document.querySelector('#main h2').textContent + document.querySelector('#main table').textContent")
    assert first.startswith('Differences') and 'evictions' in first and 'same' in first, first
    titles = js("return [...document.querySelectorAll('figcaption')].map(e => e.textContent)")
    assert any(t.startswith('A: segment 1') for t in titles) and any(t.startswith('B: segment 1') for t in titles)


@browser_test
def the_page_follows_a_dark_theme_and_the_width_of_the_window(folder):
    show(folder, ['--vram', '1M', EVERY])
    ground = lambda: js("return getComputedStyle(document.body).backgroundColor")
    light = ground()
    BROWSER.execute_cdp_cmd('Emulation.setEmulatedMedia', {'features': [{'name': 'prefers-color-scheme', 'value': 'dark'}]})
    frame()
    assert ground() != light
    BROWSER.execute_cdp_cmd('Emulation.setEmulatedMedia', {'features': []})
    before = js('return report.view.width')
    BROWSER.set_window_size(900, 700)
    frame()
    frame()
    assert js('return report.view.width') < before
    assert js('return document.documentElement.scrollWidth <= window.innerWidth + 1')
    BROWSER.set_window_size(1280, 720)


if __name__ == '__main__':
    sys.exit(main())
