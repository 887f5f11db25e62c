/* SPDX-License-Identifier: MIT */
/* The columns of the page: base64, deflated, variable-length integers (column.h). */
'use strict';

async function readColumn(run, name, rows) {
	const text = document.getElementById(`run${run}-${name}`).textContent;
	const packed = Uint8Array.from(atob(text), c => c.charCodeAt(0));
	const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream('deflate'));
	const bytes = new Uint8Array(await new Response(stream).arrayBuffer());
	const values = new Float64Array(rows);
	let at = 0;
	for (let i = 0; i < rows; i++) {
		let value = 0, unit = 1;
		for (; bytes[at] >= 128; at++, unit *= 128)
			value += (bytes[at] - 128) * unit;
		values[i] = value + bytes[at++] * unit;
	}
	return values;
}

const signed = value => value % 2 ? -(value + 1) / 2 : value / 2;

/* Running sums of differences, from `sum` on. */
function sums(differences, isSigned, sum = 0) {
	return differences.map(d => sum += isSigned ? signed(d) : d);
}

/* Times count from the first event, so that two runs can be shown side by side. */
function fromBegin(info) {
	const shift = time => time - info.begin;
	return {
		...info,
		begin: 0,
		end: shift(info.end),
		stalls: info.stalls.map(s => ({...s, end: shift(s.end)})),
		messages: info.messages.map(m => ({...m, first: shift(m.first)}))
	};
}

/*
 * Returns the figures of a run, its columns by name, and what the first time of each counts
 * from.
 */
async function readRun(run) {
	const info = JSON.parse(document.getElementById(`run${run}`).textContent);
	const names = Object.keys(info.rows);
	const columns =
		await Promise.all(names.map(name => readColumn(run, name, info.rows[name])));
	return {
		info: fromBegin(info),
		start: -info.begin,
		column: Object.fromEntries(names.map((name, i) => [name, columns[i]]))
	};
}
