/* SPDX-License-Identifier: MIT */
/* Tables: figures of the run, stalls, allocations, messages, the selected allocation. */
'use strict';

function table(parent, title, head, rows, note) {
	const section = d3.select(parent).append('section');
	section.append('h2').text(title);
	if (note)
		section.append('p').attr('class', 'muted').text(note);
	if (!rows.length) {
		section.append('p').attr('class', 'muted').text('None.');
		return section;
	}
	const t = section.append('div').attr('class', 'wide').append('table');
	t.append('thead')
		.append('tr')
		.selectAll('th')
		.data(head)
		.enter()
		.append('th')
		.attr('scope', 'col')
		.attr('class', h => h.number ? 'number' : null)
		.text(h => typeof h === 'string' ? h : h.name);
	const tr = t.append('tbody').selectAll('tr').data(rows).enter().append('tr');
	tr.selectAll('td')
		.data(row => row.cells)
		.enter()
		.append('td')
		.attr('class', (_, i) => head[i].number ? 'number' : null)
		.each(function(cell) {
			/* An array is a list of sentences. */
			if (Array.isArray(cell))
				d3.select(this)
					.attr('class', 'why')
					.selectAll('div')
					.data(cell)
					.enter()
					.append('div')
					.text(sentence => sentence);
			else
				this.textContent = cell;
		});
	tr.filter(row => row.action)
		.attr('tabindex', 0)
		.attr('class', 'link')
		.on('click', row => row.action())
		.on('keydown', row => {
			if (d3.event.key === 'Enter')
				row.action();
		});
	return section;
}

const number = name => ({name, number: true});

/* Rows of name and value, of one run or of two with the difference. */
function figures(models) {
	const bytes = (name, of) => ({name, of, format: formatBytes});
	const time = (name, of) => ({name, of, format: formatTime});
	const count = (name, of) => ({name, of, format: formatCount});
	const rows = [
		time('simulated time', m => m.info.end),
		bytes('paged in', m => m.totals.pagedIn),
		bytes('paged out', m => m.totals.pagedOut),
		count('evictions', m => m.totals.evictions),
		count('allocations', m => m.allocations.count),
		time('waited', m => m.totals.waited),
		time('longest wait', m => m.totals.longestWait),
		count('submissions and paging packets', m => m.packets.count),
		count('changes of placement', m => m.moves.count),
		count('events', m => m.info.events),
		count('findings',
		      m => d3.sum(m.info.messages.filter(x => x.type === 19), x => x.count)),
	];
	const nodes = [...new Set([].concat(...models.map(m => m.packets.nodes)))];
	for (const node of nodes)
		rows.push(time(`node ${node} busy`, m => m.totals.busy[node] || 0));
	return rows.map(row => {
		const values = models.map(row.of);
		return {
			...row,
			values,
			cells: [
				row.name, ...values.map(row.format),
				...models.length > 1 ? [difference(values)] : []
			]
		};
	});
}

function difference([before, after]) {
	if (before === after)
		return 'same';
	return before ? `${after > before ? '+' : '−'}${
				Math.abs((after - before) / before * 100).toPrecision(3)} %` :
			'new';
}

function figuresTable(parent, models) {
	const rows = figures(models);
	/* Of two runs: what differs most comes first. */
	if (models.length > 1)
		rows.sort((a, b) => distance(b.values) - distance(a.values));
	table(parent, models.length > 1 ? 'Differences' : 'Figures',
	      [
		      '',
		      ...models.map(
			      (m,
			       i) => number(models.length > 1 ? `${'AB'[i]}: ${m.info.path}` : '')),
		      ...models.length > 1 ? [number('B against A')] : []
	      ],
	      rows);
}

function distance([before, after]) {
	return before === after ?
		0 :
		Math.abs(Math.log(Math.max(after, 1) / Math.max(before, 1))) + 1e-9;
}

function stallTable(parent, view, model, title) {
	const rows = model.info.stalls.map(
		s => ({
			cells: [
				formatTime(s.ns), formatClock(s.end, 1e6),
				model.doors[s.door] || s.door,
				s.process ? processName(model, s.process - 1) : 'the system',
				s.object ? formatHandle(s.object) : '', waitsDuring(model, s), s.why
			],
			action: () => view.show(s.end - s.ns * 2, s.end + s.ns),
		}));
	table(parent, `${title}The longest calls`,
	      [
		      number('took'), number('ended at'), 'call', 'process', 'object',
		      'waits in it', 'why'
	      ],
	      rows,
	      'Each sentence comes from events between the beginning and the end of the call.');
}

/* The waits of the call's process that ended while it ran. */
function waitsDuring(model, stall) {
	const w = model.waits, sums = {};
	const first = d3.bisector((d, x) => d - x).left(w.end, stall.end - stall.ns);
	for (let i = first; i < w.count && w.end[i] <= stall.end; i++)
		if (w.process[i] === stall.process && w.ns[i]) {
			const name = model.waitReasons[w.reason[i]] || `reason ${w.reason[i]}`;
			sums[name] = (sums[name] || 0) + w.ns[i];
		}
	return Object.entries(sums).map(([name, ns]) => `${name} ${formatTime(ns)}`).join(', ');
}

function allocationTable(parent, view, model, title) {
	const x = model.allocations;
	const rows =
		d3.range(x.count)
			.filter(a => x.pagedIn[a] + x.pagedOut[a] > 0)
			.sort((a, b) => x.pagedIn[b] + x.pagedOut[b] - x.pagedIn[a] - x.pagedOut[a])
			.slice(0, 50)
			.map(a => ({
				     cells: [
					     formatHandle(x.handle[a]),
					     processName(model, x.process[a]),
					     formatBytes(x.bytes[a]), formatBytes(x.pagedIn[a]),
					     formatBytes(x.pagedOut[a]),
					     formatCount(x.evictions[a]), flagNames(x.flags[a])
				     ],
				     action: () => view.select(model, a),
			     }));
	table(parent, `${title}Allocations by bytes paged`,
	      [
		      'allocation', 'process', number('size'), number('paged in'),
		      number('paged out'), number('evictions'), 'flags'
	      ],
	      rows, 'A row selects the allocation in the maps.');
}

function messageTable(parent, model, title) {
	const kinds = {19: 'finding', 20: 'reason', 21: 'fatal'};
	const rows = model.info.messages.slice()
			     .sort((a, b) => a.type - b.type || b.count - a.count)
			     .map(m => ({
					  cells: [
						  kinds[m.type], formatCount(m.count),
						  formatClock(m.first, 1e6), m.text
					  ],
				  }));
	const left = model.info.messages_left_out;
	table(parent, `${title}Findings and reasons of failed calls`,
	      ['', number('times'), number('first at'), 'text'], rows,
	      left ? `${formatCount(left)} more messages had other texts.` : '');
}

/* What happened to the selected allocation. */
function selectionTable(parent, view, selected) {
	parent.replaceChildren();
	if (!selected)
		return;
	const {model,
	       allocation: a} = selected,
			   moves = model.moves, marks = model.marks,
			   names = {14: 'renamed', 15: 'offered', 16: 'reclaimed', 17: 'discarded'};
	const rows = [];
	for (let k = moves.of.first[a]; k < moves.of.first[a + 1]; k++)
		rows.push([moves.time[moves.of.index[k]], moveText(model, moves.of.index[k])]);
	for (let k = marks.of.first[a]; k < marks.of.first[a + 1]; k++)
		rows.push([marks.time[marks.of.index[k]], names[marks.type[marks.of.index[k]]]]);
	rows.sort((x, y) => x[0] - y[0]);
	const section =
		table(parent, allocationLines(model, a, model.info.end)[0],
		      [number('at'), 'what happened'],
		      rows.slice(0, 300).map(
			      ([time, text]) => ({
				      cells: [formatClock(time, 1e6), text],
				      action: () => view.show(
					      time - view.span() / 2, time + view.span() / 2)
			      })),
		      allocationLines(model, a, model.info.end).slice(1, 4).join('; ') +
			      (rows.length > 300 ?
				       `; the first 300 of ${formatCount(rows.length)} events` :
				       ''));
	section.attr('class', 'selection')
		.append('button')
		.text('close')
		.on('click', () => view.select(null));
}
