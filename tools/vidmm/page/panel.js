/* SPDX-License-Identifier: MIT */
/*
 * A panel: a canvas of rectangles with a time axis that all panels share. The pixels are written
 * into an image, because a browser needs much longer to draw hundreds of thousands of rectangles
 * that are narrower than a pixel. A second image has the number of the rectangle at each pixel.
 */
'use strict';

const MARGIN = {
	left: 118,
	right: 12
};

class Panel {
	/*
	 * `rows`: {count, begin, end, y0, y1 of a rectangle's number, pixel: its color}; `height` in
	 * CSS pixels; y0 and y1 are 0 to 1 from above.
	 */
	constructor(view, parent, options) {
		Object.assign(this, options, {view});
		const figure = d3.select(parent).append('figure').attr('class', 'panel');
		figure.append('figcaption').html('').text(this.title);
		this.box = figure.append('div')
				   .attr('class', 'plot')
				   .style('height', `${this.height + 22}px`);
		this.canvas = this.box.append('canvas')
				      .attr('tabindex', 0)
				      .attr('role', 'img')
				      .attr('aria-label', this.title)
				      .style('left', `${MARGIN.left}px`)
				      .style('height', `${this.height}px`)
				      .node();
		this.svg = this.box.append('svg').attr('height', this.height + 22);
		this.yAxis = this.svg.append('g').attr('transform', `translate(${MARGIN.left},0)`);
		this.xAxis = this.svg.append('g').attr(
			'transform', `translate(${MARGIN.left},${this.height})`);
		view.add(this);
	}

	draw() {
		const scale = window.devicePixelRatio || 1;
		const width = this.view.width, w = Math.round(width * scale),
		      h = Math.round(this.height * scale);
		this.canvas.style.width = `${width}px`;
		this.canvas.width = w;
		this.canvas.height = h;
		this.svg.attr('width', width + MARGIN.left + MARGIN.right);
		this.scale = scale;
		this.ids = new Uint32Array(w * h);
		const image = new ImageData(w, h);
		this.fill(new Uint32Array(image.data.buffer), w, h);
		this.canvas.getContext('2d').putImageData(image, 0, 0);
		this.xAxis.call(
			d3.axisBottom(this.view.x)
				.ticks(Math.max(2, width / 110))
				.tickFormat(
					t => formatClock(t - this.view.begin, this.view.span())));
		this.drawYAxis();
	}

	fill(pixels, w, h) {
		const rows = this.rows, [begin, end] = this.view.x.domain(),
		      unit = w / (end - begin);
		const selected = this.selection(),
		      ground = pixelOf(getComputedStyle(this.canvas).backgroundColor);
		for (let i = 0; i < rows.count; i++) {
			if (rows.end[i] < begin || rows.begin[i] > end || !rows.visible(i))
				continue;
			const x0 = Math.max(0, Math.floor((rows.begin[i] - begin) * unit));
			const x1 = Math.min(
				w, Math.max(x0 + 1, Math.floor((rows.end[i] - begin) * unit)));
			const y0 = Math.max(0, Math.floor(rows.y0(i) * h));
			const y1 = Math.min(h, Math.max(y0 + 1, Math.floor(rows.y1(i) * h)));
			const pixel = selected < 0 || rows.allocation[i] === selected ?
				rows.pixel(i) :
				blend(rows.pixel(i), ground);
			for (let y = y0; y < y1; y++) {
				pixels.fill(pixel, y * w + x0, y * w + x1);
				this.ids.fill(i + 1, y * w + x0, y * w + x1);
			}
			/* A darker edge separates neighbours of the same color. */
			if (y1 - y0 > 3 && x1 - x0 > 1)
				pixels.fill(shade(pixel), (y1 - 1) * w + x0, (y1 - 1) * w + x1);
		}
	}

	/* The selected allocation, -1: none. What is not selected is drawn pale. */
	selection() {
		const selected = this.view.selected;
		return this.rows.allocation && selected && selected.model === this.model ?
			selected.allocation :
			-1;
	}

	/* Returns the number of the rectangle at a point in CSS pixels, -1: none. */
	at(x, y) {
		const px = Math.floor(x * this.scale), py = Math.floor(y * this.scale);
		/* What is one pixel high is hard to hit: look around. */
		for (const dy of [0, -1, 1, -2, 2])
			if (px >= 0 && px < this.canvas.width && py + dy >= 0 &&
			    py + dy < this.canvas.height) {
				const id = this.ids[(py + dy) * this.canvas.width + px];
				if (id)
					return id - 1;
			}
		return -1;
	}
}

/* `share` of a color, and the rest of another one. */
function blend(pixel, other, share = 0.18) {
	const mix = shift =>
		((pixel >>> shift & 255) * share + (other >>> shift & 255) * (1 - share)) << shift;
	return (255 << 24 | mix(16) | mix(8) | mix(0)) >>> 0;
}

const shade = pixel => blend(pixel, 0, 0.72);

/* The time that all panels show: zoom, pan, selection. */
class View {
	constructor(begin, end) {
		this.begin = begin;
		this.full = [begin, Math.max(end, begin + 1)];
		this.x = d3.scaleLinear().domain(this.full);
		this.panels = [];
		this.selected = null;
	}

	span() {
		const [begin, end] = this.x.domain();
		return end - begin;
	}

	add(panel) {
		this.panels.push(panel);
		const canvas = d3.select(panel.canvas);
		canvas.on('wheel', () => this.wheel(d3.event, panel))
			.on('mousedown', () => this.drag(d3.event, panel))
			.on('mousemove', () => this.hover(d3.event, panel))
			.on('mouseleave', () => hideTip())
			.on('keydown', () => this.key(d3.event))
			.on('dblclick', () => this.show(...this.full));
	}

	resize() {
		this.width = Math.max(
			300,
			document.getElementById('main').clientWidth - MARGIN.left - MARGIN.right);
		this.x.range([0, this.width]);
		this.draw();
	}

	draw() {
		for (const panel of this.panels)
			panel.draw();
		if (this.onDraw)
			this.onDraw();
	}

	redraw() {
		if (!this.pending)
			this.pending = requestAnimationFrame(() => {
				this.pending = 0;
				this.draw();
			});
	}

	/* Shows a part of the time, at least 1 us of it. */
	show(begin, end) {
		const length = Math.min(this.full[1] - this.full[0], Math.max(1000, end - begin));
		begin = Math.min(Math.max(this.full[0], begin), this.full[1] - length);
		this.x.domain([begin, begin + length]);
		this.redraw();
	}

	zoom(factor, center) {
		const [begin, end] = this.x.domain();
		this.show(center - (center - begin) * factor, center + (end - center) * factor);
	}

	wheel(event, panel) {
		event.preventDefault();
		const [x] = d3.mouse(panel.canvas);
		if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) {
			const shift = (event.deltaX || event.deltaY) / this.width * this.span();
			this.show(this.x.domain()[0] + shift, this.x.domain()[1] + shift);
		} else {
			this.zoom(Math.pow(1.0015, event.deltaY), this.x.invert(x));
		}
	}

	drag(event, panel) {
		const [begin, end] = this.x.domain(), from = event.clientX;
		let moved = false;
		d3.select(window)
			.on('mousemove.drag',
			    () => {
				    const shift =
					    (from - d3.event.clientX) / this.width * (end - begin);
				    moved = moved || Math.abs(from - d3.event.clientX) > 3;
				    this.show(begin + shift, end + shift);
			    })
			.on('mouseup.drag', () => {
				d3.select(window)
					.on('mousemove.drag', null)
					.on('mouseup.drag', null);
				if (!moved)
					this.click(panel, event);
			});
		panel.canvas.focus();
		event.preventDefault();
	}

	click(panel, event) {
		const box = panel.canvas.getBoundingClientRect();
		const row = panel.at(event.clientX - box.left, event.clientY - box.top);
		if (row >= 0 && panel.rows.allocation)
			this.select(panel.model, panel.rows.allocation[row]);
		else
			this.select(null);
	}

	select(model, allocation) {
		this.selected = model ? {model, allocation} : null;
		if (this.onSelect)
			this.onSelect(this.selected);
		this.redraw();
	}

	hover(event, panel) {
		const [x, y] = d3.mouse(panel.canvas), row = panel.at(x, y);
		if (row < 0)
			hideTip();
		else
			showTip(event, panel.describe(row, this.x.invert(x)));
	}

	key(event) {
		const [begin, end] = this.x.domain(), step = (end - begin) / 10,
			      middle = (begin + end) / 2;
		const actions = {
			ArrowLeft: () => this.show(begin - step, end - step),
			ArrowRight: () => this.show(begin + step, end + step),
			'+': () => this.zoom(0.7, middle),
			'=': () => this.zoom(0.7, middle),
			'-': () => this.zoom(1 / 0.7, middle),
			0: () => this.show(...this.full),
			Home: () => this.show(this.full[0], this.full[0] + end - begin),
			End: () => this.show(this.full[1] - end + begin, this.full[1]),
			Escape: () => this.select(null),
		};
		if (!actions[event.key])
			return;
		event.preventDefault();
		actions[event.key]();
	}
}

function showTip(event, lines) {
	const tip = document.getElementById('tip');
	tip.replaceChildren(...lines.map(
		(line, i) => Object.assign(
			document.createElement(i ? 'div' : 'strong'), {textContent: line})));
	tip.hidden = false;
	const left = Math.min(event.clientX + 14, window.innerWidth - tip.offsetWidth - 8);
	const below = event.clientY + 14 + tip.offsetHeight < window.innerHeight;
	tip.style.left = `${Math.max(4, left)}px`;
	tip.style.top = `${
		below ? event.clientY + 14 : Math.max(4, event.clientY - tip.offsetHeight - 10)}px`;
}

function hideTip() {
	document.getElementById('tip').hidden = true;
}
