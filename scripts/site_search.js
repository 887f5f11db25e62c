/* SPDX-License-Identifier: MIT */
/*
 * The search of the documentation site, in place of mkdocs' search/main.js. It loads its index as a
 * script and runs without a worker, so that it also works on pages that were opened from disk.
 */
(function() {
'use strict';

const LIMIT = 50;
const SUMMARY = 200; /* characters */
const RULE = /^[a-z]{1,4}-\d{2,3}[a-z]?$/i;
let index, documents;

function load(scripts, done)
{
	if (!scripts.length) {
		done();
		return;
	}
	const script = document.createElement('script');
	script.src = `${base_url}/search/${scripts[0]}`;
	script.onload = () => load(scripts.slice(1), done);
	document.head.appendChild(script);
}

/* "run.html#memory" is a section of the page "run.html". */
function page_of(doc)
{
	return documents.get(doc.location.split('#')[0]) || doc;
}

function prepare()
{
	const data = vidmm_search_index;

	documents = new Map(data.docs.map((doc) => [doc.location, doc]));
	/* A page's own entry repeats the text of its sections, and the first section has its title. */
	data.docs = data.docs.filter((doc) => doc.location.includes('#'));
	lunr.tokenizer.separator = new RegExp(data.config.separator);
	index = lunr(function() {
		this.ref('location');
		this.field('title', {boost: 10});
		this.field('text');
		data.docs.forEach((doc) => this.add(doc));
	});
}

/* Returns the sections that have every word of the query, or else those that have one of them. */
function by_words(query)
{
	const words = query.replace(/[+~^:*-]/g, ' ').split(/\s+/).filter(Boolean);
	const all = index.search(words.map((word) => '+' + word).join(' '));

	return all.length ? all : index.search(words.join(' '));
}

/* A rule's id finds its own section first. */
function find(query)
{
	const ids = new Set(query.split(/\s+/).filter((word) => RULE.test(word)).map((word) => word.toUpperCase()));
	const first = [...documents.values()].filter((doc) => ids.has(doc.title));
	const others = by_words(query).map((result) => documents.get(result.ref)).filter((doc) => !ids.has(doc.title));

	return [...first, ...others].slice(0, LIMIT);
}

/* The index has a space at each end of a link or of code. */
function beginning(text)
{
	const plain = text.replace(/ (?=[,.;:)])/g, '').replace(/\( /g, '(');

	return plain.length > SUMMARY ? plain.slice(0, SUMMARY) + ' ...' : plain;
}

function article(doc)
{
	const element = document.createElement('article');
	const heading = element.appendChild(document.createElement('h3'));
	const link = heading.appendChild(document.createElement('a'));
	const page = page_of(doc);

	link.href = `${base_url}/${doc.location}`;
	link.textContent = page.title !== doc.title ? `${doc.title} – ${page.title}` : doc.title;
	element.appendChild(document.createElement('p')).textContent = beginning(doc.text);
	return element;
}

function show(query)
{
	const list = document.getElementById('mkdocs-search-results');
	const found = query ? find(query) : [];

	list.replaceChildren(...found.map(article));
	if (!found.length)
		list.textContent = query ? 'No results found' : '';
}

const input = document.getElementById('mkdocs-search-query');
if (document.getElementById('mkdocs-search-results')) {
	input.value = new URLSearchParams(window.location.search).get('q') || '';
	load([ 'lunr.js', 'search_index.js' ], () => {
		prepare();
		show(input.value.trim());
		input.addEventListener('input', () => show(input.value.trim()));
	});
}
})();
