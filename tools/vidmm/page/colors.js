/* SPDX-License-Identifier: MIT */
/* Colors of allocations: by process, by kind, or each its own. */
'use strict';

/* Okabe and Ito's colors, which people with a color blindness tell apart. */
const PALETTE =
	['#0072b2', '#e69f00', '#009e73', '#cc79a7', '#56b4e9', '#d55e00', '#f0e442', '#8c8c8c'];

const KINDS = [
	{name: 'swizzled', test: flags => flags & 0x80},
	{name: 'CPU-visible, cached', test: flags => (flags & 5) === 5},
	{name: 'CPU-visible', test: flags => flags & 1},
	{name: 'not CPU-visible', test: () => true},
];

const COLORINGS = {
	process: {
		color: (model, a) => PALETTE[model.allocations.process[a] % PALETTE.length],
		legend: model =>
			model.info.processes
				.map((p, i) => [PALETTE[i % PALETTE.length], processName(model, i)])
				.filter((entry, i) => model.allocations.process.includes(i)),
	},
	kind: {
		color: (model, a) =>
			PALETTE[KINDS.findIndex(kind => kind.test(model.allocations.flags[a]))],
		legend: () => KINDS.map((kind, i) => [PALETTE[i], kind.name]),
	},
	allocation: {
		/* Neighbours in the order of creation differ in lightness and hue. */
		color: (model, a) => d3.interpolateViridis(a * 0.618034 % 1),
		legend: () => [
			['#440154', 'each allocation has a color; move the pointer for its name']],
	},
	paging: {
		color: (model, a) => {
			const most = model.mostPaged ||
				(model.mostPaged = d3.max(model.allocations.pagedIn) || 1);
			return d3.interpolateCividis(
				Math.sqrt(model.allocations.pagedIn[a] / most));
		},
		legend: model =>
			[[d3.interpolateCividis(0), 'never paged in'],
			 [
				 d3.interpolateCividis(1),
				 `paged in most: ${
					 formatBytes(d3.max(model.allocations.pagedIn) || 0)}`
			 ]],
	},
};

/* A color as a pixel of a canvas: 0xAABBGGRR. */
function pixelOf(color) {
	const c = d3.rgb(color);
	return (255 << 24 | c.b << 16 | c.g << 8 | c.r) >>> 0;
}
