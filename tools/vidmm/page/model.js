/* SPDX-License-Identifier: MIT */
/* What happened in a run, from its columns: allocations, placements, packets, waits, marks. */
'use strict';

/* The names of an event type's reasons, by number. */
function reasonNames(info, type) {
	const event = info.about.events.find(e => e.name === type);
	return event ? event.reasons : {};
}

function readAllocations(run) {
	const c = run.column;
	const created = sums(c.allocation_created, true, run.start);
	return {
		count: created.length,
		process: c.allocation_process,
		handle: c.allocation_handle,
		bytes: c.allocation_bytes,
		flags: c.allocation_flags,
		created,
		destroyed:
			c.allocation_life.map((life, i) => life ? created[i] + life - 1 : Infinity),
		pagedIn: c.allocation_in,
		pagedOut: c.allocation_out,
		evictions: c.allocation_evictions,
	};
}

/* Rows of one allocation are found by first[a] .. first[a + 1] in `index`, in the order of time. */
function groupBy(keys, count) {
	const first = new Uint32Array(count + 1), index = new Uint32Array(keys.length);
	for (const key of keys)
		first[key + 1]++;
	for (let i = 0; i < count; i++)
		first[i + 1] += first[i];
	const next = first.slice();
	keys.forEach((key, row) => index[next[key]++] = row);
	return {first, index};
}

function readMoves(run, allocations) {
	const c = run.column, count = c.move_time.length;
	const moves = {
		count,
		time: sums(c.move_time, false, run.start),
		allocation: sums(c.move_allocation, true),
		reason: c.move_reason,
		to: c.move_segment,
		from: new Float64Array(count),
	};
	moves.of = groupBy(moves.allocation, allocations.count);
	return moves;
}

/* A placement: an allocation, or a piece of one, in a segment from a move to the next one. */
function readPlacements(run, allocations, moves) {
	const c = run.column;
	let total = 0, piece = 0, end = 0;
	for (let i = 0; i < moves.count; i++)
		total += moves.to[i] ? Math.max(1, c.move_pieces[i]) : 0;
	const p = {
		count: 0,
		allocation: new Uint32Array(total),
		segment: new Uint8Array(total),
		offset: new Float64Array(total),
		bytes: new Float64Array(total),
		begin: new Float64Array(total),
		end: new Float64Array(total).fill(run.info.end),
		move: new Uint32Array(total),
	};
	const current =
		new Int32Array(allocations.count).fill(-1); /* the first of its placements */
	const segmentOf = new Float64Array(allocations.count);
	for (let i = 0; i < moves.count; i++) {
		const a = moves.allocation[i], time = moves.time[i], to = moves.to[i];
		for (let k = current[a]; k >= 0 && k < p.count && p.move[k] === p.move[current[a]];
		     k++)
			p.end[k] = time;
		moves.from[i] = segmentOf[a];
		segmentOf[a] = to;
		current[a] = to ? p.count : -1;
		let offset = 0;
		if (to) {
			offset = end + signed(c.move_offset[i]);
			end = offset + allocations.bytes[a];
		}
		for (let n = Math.max(1, c.move_pieces[i]), k = 0; k < n; k++) {
			let bytes = allocations.bytes[a];
			if (c.move_pieces[i]) {
				bytes = c.piece_bytes[piece];
				offset = end + signed(c.piece_offset[piece++]);
				end = offset + bytes;
			}
			if (!to)
				continue;
			p.allocation[p.count] = a;
			p.segment[p.count] = to;
			p.offset[p.count] = offset;
			p.bytes[p.count] = bytes;
			p.begin[p.count] = time;
			p.move[p.count++] = i;
		}
	}
	return p;
}

function readPackets(run) {
	const c = run.column, time = sums(c.packet_time, false, run.start), free = {};
	const begin = new Float64Array(time.length), end = new Float64Array(time.length);
	for (let i = 0; i < time.length; i++) {
		const node = c.packet_node[i], done = c.packet_ns[i];
		/* A node executes one packet after the other. */
		begin[i] = Math.max(time[i], free[node] || 0);
		end[i] = done ? time[i] + done - 1 : run.info.end;
		free[node] = Math.max(end[i], free[node] || 0);
	}
	return {
		count: time.length,
		submitted: time,
		begin,
		end,
		node: c.packet_node,
		process: c.packet_process,
		nodes: [...new Set(c.packet_node)].sort((a, b) => a - b)
	};
}

function readWaits(run) {
	const c = run.column, end = sums(c.wait_time, false, run.start);
	return {
		count: end.length,
		end,
		begin: end.map((t, i) => Math.max(run.info.begin, t - c.wait_ns[i])),
		ns: c.wait_ns,
		process: c.wait_process,
		reason: c.wait_reason,
		allocation: c.wait_allocation
	};
}

function readMarks(run, allocations) {
	const c = run.column;
	const marks = {
		time: sums(c.mark_time, false, run.start),
		type: c.mark_type,
		allocation: sums(c.mark_allocation, true)
	};
	marks.of = groupBy(marks.allocation, allocations.count);
	return marks;
}

/* Segments without an event get the size that their placements need. */
function completeSegments(run, placements) {
	const segments = run.info.segments.map(s => ({...s}));
	for (let i = 0; i < placements.count; i++) {
		const id = placements.segment[i], end = placements.offset[i] + placements.bytes[i];
		let segment = segments.find(s => s.id === id);
		if (!segment)
			segments.push(segment = {id, bytes: 0, flags: 0, guessed: true});
		if (segment.guessed)
			segment.bytes = Math.max(segment.bytes, end);
	}
	return segments.sort((a, b) => a.id - b.id);
}

/* Resident bytes of each segment after each move: {time, bytes} for a line. */
function residentBytes(run, allocations, moves, segments) {
	const now = {};
	const lines =
		Object.fromEntries(segments.map(s => [s.id, {time: [run.info.begin], value: [0]}]));
	for (const s of segments)
		now[s.id] = 0;
	for (let i = 0; i < moves.count; i++) {
		const bytes = allocations.bytes[moves.allocation[i]];
		for (const [segment, sign] of [[moves.from[i], -1], [moves.to[i], 1]]) {
			if (!lines[segment])
				continue;
			now[segment] += sign * bytes;
			lines[segment].time.push(moves.time[i]);
			lines[segment].value.push(now[segment]);
		}
	}
	return lines;
}

/*
 * The budget groups that the flags of the segments assign: LocalBudgetGroup, NonLocalBudgetGroup,
 * and ApplicationTarget, the older flag of both. Adapters of WDDM 1.x have none.
 */
function budgetGroups(segments) {
	const local = flags => flags & 0x80000 || (flags & 0x8000 && !(flags & 1));
	const nonLocal = flags => flags & 0x100000 || (flags & 0x8000 && flags & 1);
	return [
		['local', s => local(s.flags)],
		['non-local', s => !local(s.flags) && nonLocal(s.flags)]
	].map(([name, test]) => ({name, segments: segments.filter(test)}))
		.map(group => ({
			     ...group,
			     ids: new Set(group.segments.map(s => s.id)),
			     budget: d3.sum(group.segments, s => s.bytes)
		     }))
		.filter(group => group.segments.length);
}

/* Resident bytes of each process in a budget group, the most bytes first. */
function residentInGroup(run, allocations, moves, group) {
	const lines = new Map();
	for (let i = 0; i < moves.count; i++) {
		const a = moves.allocation[i], process = allocations.process[a];
		const step = group.ids.has(moves.to[i]) - group.ids.has(moves.from[i]);
		if (!step)
			continue;
		if (!lines.has(process))
			lines.set(process, {process, time: [run.info.begin], value: [0]});
		const line = lines.get(process);
		line.time.push(moves.time[i]);
		line.value.push(line.value[line.value.length - 1] + step * allocations.bytes[a]);
	}
	return [...lines.values()].sort((x, y) => d3.max(y.value) - d3.max(x.value));
}

/* Packets of all nodes that are submitted and not complete. */
function queueDepth(run, packets) {
	const steps = [];
	for (let i = 0; i < packets.count; i++)
		steps.push([packets.submitted[i], 1], [packets.end[i], -1]);
	steps.sort((a, b) => a[0] - b[0]);
	let depth = 0;
	const line = {time: [run.info.begin], value: [0]};
	for (const [time, step] of steps) {
		line.time.push(time);
		line.value.push(depth += step);
	}
	return line;
}

function totals(model) {
	const sum = values => values.reduce((a, b) => a + b, 0);
	const busy = {};
	for (let i = 0; i < model.packets.count; i++)
		busy[model.packets.node[i]] = (busy[model.packets.node[i]] || 0) +
			model.packets.end[i] - model.packets.begin[i];
	return {
		pagedIn: sum(model.allocations.pagedIn),
		pagedOut: sum(model.allocations.pagedOut),
		evictions: sum(model.allocations.evictions),
		busy,
		waited: sum(model.waits.ns),
		longestWait: Math.max(0, ...model.waits.ns.length ? [d3.max(model.waits.ns)] : []),
	};
}

function makeModel(run) {
	const allocations = readAllocations(run);
	const moves = readMoves(run, allocations);
	const placements = readPlacements(run, allocations, moves);
	const model = {
		info: run.info,
		allocations,
		moves,
		placements,
		packets: readPackets(run),
		waits: readWaits(run),
		marks: readMarks(run, allocations)
	};
	model.segments = completeSegments(run, placements);
	model.resident = residentBytes(run, allocations, moves, model.segments);
	model.budgets =
		budgetGroups(model.segments).map(group => ({
							 ...group,
							 lines: residentInGroup(
								 run, allocations, moves, group)
						 }));
	model.depth = queueDepth(run, model.packets);
	model.totals = totals(model);
	model.residencyReasons = reasonNames(run.info, 'residency');
	model.waitReasons = reasonNames(run.info, 'wait');
	model.doors = reasonNames(run.info, 'door');
	return model;
}
