/* SPDX-License-Identifier: MIT */
/* What the documentation site adds to the theme: js/theme_extra.js of mkdocs, which Debian's package lacks. */

/* The navigation shows the current page. */
const current = document.querySelector('.wy-menu li.current > a');
if (current)
	current.scrollIntoView({block: 'center'});

/* Gives tables the style of the theme, and a box that scrolls if a table is too wide. */
document.querySelectorAll('.document table').forEach((table) => {
	const box = document.createElement('div');

	table.classList.add('docutils');
	box.className = 'wy-table-responsive';
	table.replaceWith(box);
	box.appendChild(table);
});
