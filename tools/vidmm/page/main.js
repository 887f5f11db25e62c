/* SPDX-License-Identifier: MIT */
'use strict';

function head(models) {
	const text = models.map(m => `${m.info.about.command} of ${
					     (m.info.about.traces || [m.info.path]).join(', ')}, ` +
					`${formatTime(m.info.end)}, ${
						formatCount(m.info.events)} events` +
					(m.info.cut ? '; the recording ends early' : ''))
			     .join(' | ');
	d3.select('#head').append('p').text(text);
}

function colorControls(view, models, parent) {
	const box = d3.select(parent).append('div').attr('class', 'controls');
	box.append('label')
		.text('color ')
		.append('select')
		.attr('id', 'coloring')
		.on('change',
		    function() {
			    view.coloring = this.value;
			    legend();
			    view.redraw();
		    })
		.selectAll('option')
		.data([
			['process', 'process'], ['kind', 'kind'], ['allocation', 'allocation'],
			['paging', 'bytes paged in']
		])
		.enter()
		.append('option')
		.attr('value', d => d[0])
		.text(d => d[1]);
	box.append('span')
		.attr('class', 'muted')
		.text('wheel or + and -: zoom; drag or arrows: move; 0: all; click: select');
	const out = box.append('output').attr('id', 'range');
	const keys = box.append('div').attr('class', 'legend');
	const legend = () => {
		const entries = COLORINGS[view.coloring].legend(models[0]).slice(0, 12);
		const item = keys.html('').selectAll('span').data(entries).enter().append('span');
		item.append('i').style('background', d => d[0]);
		item.append('span').text(d => d[1]);
	};
	/* One process would have one color. */
	view.coloring = models.some(m => new Set(m.allocations.process).size > 1) ? 'process' :
										    'allocation';
	box.select('select').property('value', view.coloring);
	legend();
	view.onDraw = () => {
		const [begin, end] = view.x.domain();
		out.text(`${formatClock(begin - view.begin, end - begin)} to ${
			formatClock(end - view.begin, end - begin)}`);
	};
}

async function main() {
	/* The browser shows the title before the data is read. */
	await new Promise(done => requestAnimationFrame(() => setTimeout(done)));
	const runs = [];
	for (let i = 0; document.getElementById(`run${i}`); i++)
		runs.push(await readRun(i));
	const models = runs.map(makeModel);
	const view = new View(0, d3.max(models, m => m.info.end));
	const main = document.getElementById('main');
	document.getElementById('loading').remove();
	head(models);
	if (models.length > 1)
		figuresTable(main, models);
	colorControls(view, models, main);
	models.forEach(
		(model, i) =>
			addPanels(view, main, model, models.length > 1 ? `${'AB'[i]}: ` : ''));
	const selection = main.appendChild(document.createElement('div'));
	selection.id = 'selection';
	view.onSelect = selected => selectionTable(selection, view, selected);
	if (models.length === 1)
		figuresTable(main, models);
	models.forEach((model, i) => {
		const title = models.length > 1 ? `${'AB'[i]}: ` : '';
		stallTable(main, view, model, title);
		allocationTable(main, view, model, title);
		messageTable(main, model, title);
	});
	d3.select('body')
		.append('div')
		.attr('id', 'tip')
		.attr('role', 'tooltip')
		.attr('hidden', true);
	window.addEventListener('resize', () => view.resize());
	view.resize();
	/* For tests and for the console of the browser. */
	window.report = {models, view};
	document.documentElement.dataset.ready = 'true';
}

main().catch(error => {
	const p = document.createElement('p');
	p.textContent = `The page cannot show its data: ${error.message}`;
	document.getElementById('main').prepend(p);
	throw error;
});
