/* SPDX-License-Identifier: MIT */
/* The panels of a run: counters, a map of each segment, lanes of nodes and waits. */
'use strict';

function historyLines(model, a, time) {
	const moves = model.moves, lines = [];
	for (let k = moves.of.first[a + 1] - 1; k >= moves.of.first[a] && lines.length < 4; k--) {
		const i = moves.of.index[k];
		if (moves.time[i] > time)
			continue;
		lines.push(`${formatClock(moves.time[i], 1e6)}: ${moveText(model, i)}`);
	}
	return lines;
}

function segmentName(model, id) {
	const segment = model.segments.find(s => s.id === id);
	return id ? `segment ${id}${segment && segment.flags & 1 ? ' (aperture)' : ''}` :
		    'system memory';
}

function moveText(model, i) {
	const reason =
		model.residencyReasons[model.moves.reason[i]] || `reason ${model.moves.reason[i]}`;
	return `${segmentName(model, model.moves.from[i])} to ${
		segmentName(model, model.moves.to[i])}, ${reason}`;
}

function allocationLines(model, a, time) {
	const x = model.allocations;
	const lines = [
		`allocation ${formatHandle(x.handle[a])} of ${processName(model, x.process[a])}`,
		`${formatBytes(x.bytes[a])}, flags: ${flagNames(x.flags[a])}`,
		`created at ${formatClock(x.created[a], 1e6)}, ${
			formatTime(Math.max(0, time - x.created[a]))} before`,
		`paged in ${formatBytes(x.pagedIn[a])}, paged out ${
			formatBytes(x.pagedOut[a])}, evicted ${formatCount(x.evictions[a])} times`,
	];
	return lines.concat(historyLines(model, a, time));
}

/* An aperture is often much larger than what is mapped in it: its unused end is not shown. */
function shownBytes(model, segment) {
	const p = model.placements;
	let end = 0;
	for (let i = 0; i < p.count; i++)
		if (p.segment[i] === segment.id)
			end = Math.max(end, p.offset[i] + p.bytes[i]);
	return end && segment.flags & 1 && end < segment.bytes / 2 ? end : segment.bytes;
}

function mapPanel(view, parent, model, segment, title) {
	const p = model.placements, shown = shownBytes(model, segment);
	let pixels = null, coloring = null;
	const pixel = i => {
		if (coloring !== view.coloring) {
			coloring = view.coloring;
			pixels = Uint32Array.from(
				{length: model.allocations.count},
				(_, a) => pixelOf(COLORINGS[coloring].color(model, a)));
		}
		return pixels[p.allocation[i]];
	};
	const panel = new Panel(view, parent, {
		title: `${title}${segmentName(model, segment.id)}: ${formatBytes(segment.bytes)}${
			       segment.guessed ? ' used at most' : ''}` +
			(shown < segment.bytes ?
				 `, the first ${
					 formatBytes(shown)} are shown, the rest is never used` :
				 ''),
		height: segment.flags & 1 ? 120 : 260,
		model,
		rows: {
			count: p.count,
			begin: p.begin,
			end: p.end,
			allocation: p.allocation,
			pixel,
			visible: i => p.segment[i] === segment.id,
			y0: i => p.offset[i] / shown,
			y1: i => (p.offset[i] + p.bytes[i]) / shown,
		},
		describe: (i, time) => {
			const lines = allocationLines(model, p.allocation[i], time);
			lines.splice(
				2, 0,
				`here at offset ${formatBytes(p.offset[i])} from ${
					formatClock(p.begin[i], 1e6)} ` +
					`for ${formatTime(p.end[i] - p.begin[i])}`);
			return lines;
		},
		drawYAxis() {
			const scale = d3.scaleLinear().domain([0, shown]).range([0, this.height]);
			const values = [0, 0.25, 0.5, 0.75, 1].map(f => f * shown);
			this.yAxis.call(
				d3.axisLeft(scale).tickValues(values).tickFormat(formatBytes));
		},
	});
	panel.segment = segment.id;
	return panel;
}

/* Lanes: rows of intervals. `lanes`: {name, begin, end, pixel, describe} each. */
function lanesPanel(view, parent, model, title, lanes) {
	const total = lanes.reduce((sum, lane) => sum + lane.begin.length, 0);
	const rows = {count: total, begin: new Float64Array(total), end: new Float64Array(total)};
	const lane = new Uint16Array(total), index = new Uint32Array(total);
	let at = 0;
	lanes.forEach((one, number) => {
		rows.begin.set(one.begin, at);
		rows.end.set(one.end, at);
		for (let i = 0; i < one.begin.length; i++, at++) {
			lane[at] = number;
			index[at] = i;
		}
	});
	rows.visible = () => true;
	rows.pixel = i => lanes[lane[i]].pixel(index[i]);
	rows.y0 = i => (lane[i] + 0.12) / lanes.length;
	rows.y1 = i => (lane[i] + 0.88) / lanes.length;
	return new Panel(view, parent, {
		title,
		height: Math.max(24, 20 * lanes.length),
		model,
		rows,
		describe: i => lanes[lane[i]].describe(index[i]),
		drawYAxis() {
			const scale = d3.scaleBand().domain(lanes.map(one => one.name)).range([
				0, this.height
			]);
			this.yAxis.call(d3.axisLeft(scale).tickSize(0))
				.selectAll('text')
				.each(function() {
					const name = this.textContent;
					this.textContent =
						name.length > 17 ? `${name.slice(0, 16)}…` : name;
					d3.select(this).append('title').text(name);
				});
		},
	});
}

function pick(indexes, values) {
	return Float64Array.from(indexes, i => values[i]);
}

function nodeLanes(model) {
	const packets = model.packets, all = d3.range(packets.count);
	const pager = pixelOf('#8c8c8c');
	return packets.nodes.map(node => {
		const own = all.filter(i => packets.node[i] === node);
		const paging = own.every(i => !packets.process[i]);
		return {
			name: paging ? `node ${node}, paging` : `node ${node}`,
			begin: pick(own, packets.begin),
			end: pick(own, packets.end),
			pixel: k => packets.process[own[k]] ?
				pixelOf(PALETTE[(packets.process[own[k]] - 1) % PALETTE.length]) :
				pager,
			describe: k =>
				[packets.process[own[k]] ?
					 `submission of ${
						 processName(model, packets.process[own[k]] - 1)}` :
					 'paging',
				 `on node ${node} for ${
					 formatTime(
						 packets.end[own[k]] - packets.begin[own[k]])}, ` +
					 `${
						 formatTime(
							 packets.begin[own[k]] -
							 packets.submitted
								 [own[k]])} after its submission`,
		],
		};
	});
}

function waitLanes(model) {
	const waits = model.waits, groups = new Map();
	for (let i = 0; i < waits.count; i++) {
		if (!waits.ns[i])
			continue;
		if (!groups.has(waits.process[i]))
			groups.set(waits.process[i], []);
		groups.get(waits.process[i]).push(i);
	}
	return [...groups.entries()]
		.sort((a, b) => a[0] - b[0])
		.map(([process, own]) => ({
			     name: process ? processName(model, process - 1) : 'the system',
			     begin: pick(own, waits.begin),
			     end: pick(own, waits.end),
			     pixel: k => pixelOf(PALETTE[waits.reason[own[k]] % PALETTE.length]),
			     describe: k => {
				     const a = waits.allocation[own[k]];
				     return [
					     `wait: ${
						     model.waitReasons[waits.reason[own[k]]] ||
						     waits.reason[own[k]]}`,
					     formatTime(waits.ns[own[k]])
				     ]
					     .concat(a ? allocationLines(
								 model, a - 1, waits.end[own[k]]) :
							 []);
			     },
		     }));
}

/*
 * A line over time as an area of pixels: the highest value in each column. `limit`: {name, value}
 * that is drawn as a horizontal line, or null.
 */
function linePanel(view, parent, model, title, line, format, color, limit = null) {
	const top = d3.max(line.value) || 1, most = Math.max(top, limit ? limit.value : 0);
	const pixel = pixelOf(color), last = line.time.length - 1;
	return new Panel(view, parent, {
		title: `${title}: ${format(top)} at most` +
			(limit ? `, ${limit.name} ${format(limit.value)}` : ''),
		height: 56,
		model,
		rows: {
			count: line.time.length,
			begin: line.time,
			end: {
				get length() {
					return last + 1;
				}
			},
			pixel: () => pixel,
		},
		fill(pixels, w, h) {
			const [begin, end] = this.view.x.domain(), unit = w / (end - begin);
			const high = new Float64Array(w);
			for (let i = 0; i <= last; i++) {
				const until = i < last ? line.time[i + 1] : model.info.end;
				if (until < begin || line.time[i] > end)
					continue;
				const x0 = Math.max(0, Math.floor((line.time[i] - begin) * unit));
				const x1 = Math.min(w - 1, Math.floor((until - begin) * unit));
				for (let x = x0; x <= x1; x++)
					high[x] = Math.max(high[x], line.value[i]);
			}
			this.high = high;
			for (let x = 0; x < w; x++)
				for (let y = Math.ceil(h - high[x] / most * (h - 1)); y < h; y++) {
					pixels[y * w + x] = pixel;
					this.ids[y * w + x] = x + 1;
				}
			if (limit) {
				const y = Math.round((1 - limit.value / most) * (h - 1));
				pixels.fill(pixelOf(PALETTE[5]), y * w, (y + 1) * w);
			}
		},
		describe(x) {
			return [title, format(this.high[x])].concat(
				limit ? [`${limit.name} ${format(limit.value)}`] : []);
		},
		drawYAxis() {
			const scale = d3.scaleLinear().domain([0, most]).range([this.height, 0]);
			this.yAxis.call(
				d3.axisLeft(scale).tickValues([0, most]).tickFormat(format));
		},
	});
}

/* Bytes paged in each 1/400 of the run. */
function pagingRate(model) {
	const steps = 400,
	      [begin, end] = [model.info.begin, Math.max(model.info.end, model.info.begin + 1)];
	const line = {
		time: d3.range(steps).map(i => begin + (end - begin) * i / steps),
		value: new Array(steps).fill(0)
	};
	for (let i = 0; i < model.moves.count; i++) {
		const step = Math.min(
			steps - 1,
			Math.floor((model.moves.time[i] - begin) / (end - begin) * steps));
		if (Boolean(model.moves.from[i]) !== Boolean(model.moves.to[i]))
			line.value[step] += model.allocations.bytes[model.moves.allocation[i]];
	}
	const unit = steps / (end - begin) * 1e9;
	line.value = line.value.map(bytes => bytes * unit);
	return line;
}

/* The share of free memory that is not in the largest hole, at 300 points in time. */
function fragmentation(model, segment) {
	const p = model.placements, steps = 300, [begin, end] = [model.info.begin, model.info.end];
	const own = d3.range(p.count).filter(i => p.segment[i] === segment.id);
	const live = new Set(), line = {time: [], value: []};
	const ends = own.slice().sort((a, b) => p.end[a] - p.end[b]);
	for (let step = 0, b = 0, e = 0; step < steps; step++) {
		const time = begin + (end - begin) * step / steps;
		for (; b < own.length && p.begin[own[b]] <= time; b++)
			live.add(own[b]);
		for (; e < ends.length && p.end[ends[e]] <= time; e++)
			live.delete(ends[e]);
		let free = 0, largest = 0, at = 0;
		for (const i of [...live].sort((x, y) => p.offset[x] - p.offset[y])) {
			const hole = Math.max(0, p.offset[i] - at);
			free += hole;
			largest = Math.max(largest, hole);
			at = Math.max(at, p.offset[i] + p.bytes[i]);
		}
		const rest = Math.max(0, segment.bytes - at);
		line.time.push(time);
		line.value.push(free + rest ? 1 - Math.max(largest, rest) / (free + rest) : 0);
	}
	return line;
}

/*
 * No event has the budget of a process. It is at most the size of the group's segments, which is
 * the line: reservations of other processes and limits only lower it (PRI-13).
 */
function budgetPanels(view, parent, model, title) {
	for (const group of model.budgets)
		for (const line of group.lines.slice(0, 4))
			linePanel(
				view, parent, model,
				`${title}${processName(model, line.process)} resident in the ${
					group.name} budget group`,
				line, formatBytes, PALETTE[4],
				{name: 'largest budget', value: group.budget});
}

function addPanels(view, parent, model, title) {
	for (const segment of model.segments)
		mapPanel(view, parent, model, segment, title);
	const nodes = nodeLanes(model), waits = waitLanes(model);
	if (nodes.length)
		lanesPanel(view, parent, model, `${title}engines: what each node executes`, nodes);
	if (waits.length)
		lanesPanel(view, parent, model, `${title}waits of each process`, waits);
	linePanel(
		view, parent, model, `${title}paging per second`, pagingRate(model),
		value => `${formatBytes(value)}/s`, PALETTE[5]);
	for (const segment of model.segments)
		linePanel(
			view, parent, model,
			`${title}resident in ${segmentName(model, segment.id)}`,
			model.resident[segment.id], formatBytes, PALETTE[0],
			segment.guessed || segment.flags & 1 ?
				null :
				{name: 'size of the segment', value: segment.bytes});
	budgetPanels(view, parent, model, title);
	for (const segment of model.segments.filter(s => !(s.flags & 1)))
		linePanel(
			view, parent, model,
			`${title}fragmentation of ${
				segmentName(
					model,
					segment.id)} (free memory outside of the largest hole)`,
			fragmentation(model, segment), value => `${Math.round(value * 100)} %`,
			PALETTE[3]);
	linePanel(
		view, parent, model, `${title}packets submitted and not complete`, model.depth,
		value => formatCount(Math.round(value)), PALETTE[2]);
}
