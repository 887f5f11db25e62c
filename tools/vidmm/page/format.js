/* SPDX-License-Identifier: MIT */
/* Numbers, times and names as a person reads them. */
'use strict';

function formatBytes(bytes) {
	const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];
	let unit = 0;
	for (; Math.abs(bytes) >= 1024 && unit < 4; unit++)
		bytes /= 1024;
	return `${
		unit && Math.abs(bytes) < 100 ? bytes.toFixed(bytes < 10 ? 2 : 1) :
						Math.round(bytes)} ${units[unit]}`;
}

function formatTime(ns) {
	const size = Math.abs(ns);
	if (size < 1e3)
		return `${Math.round(ns)} ns`;
	if (size < 1e6)
		return `${(ns / 1e3).toPrecision(3)} us`;
	if (size < 1e9)
		return `${(ns / 1e6).toPrecision(3)} ms`;
	return `${(ns / 1e9).toPrecision(4)} s`;
}

/* A point in time, as exact as what is visible. */
function formatClock(ns, span) {
	const digits = Math.min(9, Math.max(0, Math.ceil(3 - Math.log10(Math.max(span, 1) / 1e9))));
	return `${(ns / 1e9).toFixed(digits)} s`;
}

const formatCount = count => d3.format(',')(count);
const formatHandle = handle => `0x${handle.toString(16).padStart(8, '0')}`;

/* DXGK_ALLOCATIONINFOFLAGS: the flags that say how an allocation is used. */
const FLAG_NAMES = [
	'CpuVisible', 'PermanentSysMem', 'Cached', 'Protected', 'ExistingSysMem',
	'ExistingKernelSysMem', 'FromEndOfSegment', 'Swizzled', 'Overlay', 'Capture',
	'UseAlternateVA', 'SynchronousPaging'
];

const flagNames = flags => FLAG_NAMES.filter((name, bit) => flags >> bit & 1).join(', ') || 'none';

function processName(model, row) {
	const process = model.info.processes[row];
	if (!process)
		return 'the system';
	return process.name ? `${process.name} (process ${process.number})` :
			      `process ${process.number}`;
}
