/* SPDX-License-Identifier: MIT */
#include "markup.h"

#include <stdbool.h>

#define REPLACEMENT "\xef\xbf\xbd" /* U+FFFD */

static bool follows(const unsigned char *text, unsigned count)
{
	for (unsigned i = 1; i <= count; i++)
		if ((text[i] & 0xc0) != 0x80)
			return false;
	return true;
}

/* Returns the bytes of the character at TEXT; 0: it is invalid, or XML forbids it. */
static unsigned character_bytes(const unsigned char *text)
{
	unsigned first = text[0];

	if (first < 0x80)
		return first >= ' ' || first == '\t' || first == '\n' || first == '\r';
	if (first >= 0xc2 && first <= 0xdf)
		return follows(text, 1) ? 2 : 0;
	if (first >= 0xe0 && first <= 0xef) {
		unsigned code;

		if (!follows(text, 2))
			return 0;
		code = (first & 0xfu) << 12 | (text[1] & 0x3fu) << 6 | (text[2] & 0x3fu);
		return code < 0x800 || (code >= 0xd800 && code < 0xe000) || code >= 0xfffe ? 0 : 3;
	}
	if (first >= 0xf0 && first <= 0xf4 && follows(text, 3)) {
		unsigned code = (first & 7u) << 6 | (text[1] & 0x3fu);

		return code < 0x10 || code >= 0x110 ? 0 : 4;
	}
	return 0;
}

void markup_text(FILE *file, const char *text)
{
	const unsigned char *at = (const unsigned char *)text;

	while (*at) {
		unsigned bytes = character_bytes(at);

		if (bytes == 0)
			fputs(REPLACEMENT, file);
		else if (*at == '&')
			fputs("&amp;", file);
		else if (*at == '<')
			fputs("&lt;", file);
		else if (*at == '>')
			fputs("&gt;", file);
		else if (*at == '"')
			fputs("&quot;", file);
		else
			fwrite(at, 1, bytes, file);
		at += bytes ? bytes : 1;
	}
}

void markup_group(FILE *file, const char *class_name, const char *tooltip)
{
	fprintf(file, "<g class=\"%s\">", class_name);
	if (tooltip) {
		fputs("<title>", file);
		markup_text(file, tooltip);
		fputs("</title>", file);
	}
	fputc('\n', file);
}

void markup_group_end(FILE *file)
{
	fputs("</g>\n", file);
}

void markup_rectangle(FILE *file, const char *class_name, struct markup_point corner,
		      struct markup_point size)
{
	fprintf(file, "<rect class=\"%s\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\"/>\n",
		class_name, corner.x, corner.y, size.x, size.y);
}

void markup_line(FILE *file, const char *class_name, struct markup_point from,
		 struct markup_point to)
{
	fprintf(file, "<line class=\"%s\" x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\"/>\n",
		class_name, from.x, from.y, to.x, to.y);
}

void markup_label(FILE *file, const char *class_name, struct markup_point at,
		  enum markup_anchor anchor, const char *text)
{
	static const char *const anchors[] = {"start", "middle", "end"};

	fprintf(file, "<text class=\"%s\" x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\">", class_name,
		at.x, at.y, anchors[anchor]);
	markup_text(file, text);
	fputs("</text>\n", file);
}

void markup_path(FILE *file, const char *dashes, const struct markup_point *points, unsigned count)
{
	fputs("<path class=\"line\"", file);
	if (dashes)
		fprintf(file, " stroke-dasharray=\"%s\"", dashes);
	fputs(" d=\"", file);
	for (unsigned i = 0; i < count; i++)
		fprintf(file, "%c%.1f %.1f", i == 0 ? 'M' : 'L', points[i].x, points[i].y);
	fputs("\"/>\n", file);
}

void markup_shape(FILE *file, const char *class_name, enum markup_shape shape,
		  struct markup_point at)
{
	/* Around 0, 0, with about the same area. */
	static const char *const paths[] = {
		[MARKUP_CIRCLE] = "M-4.5 0a4.5 4.5 0 1 0 9 0a4.5 4.5 0 1 0 -9 0Z",
		[MARKUP_SQUARE] = "M-4 -4H4V4H-4Z",
		[MARKUP_TRIANGLE] = "M0 -5.5L5 3.5H-5Z",
		[MARKUP_DIAMOND] = "M0 -5.5L5.5 0L0 5.5L-5.5 0Z",
		[MARKUP_PLUS] = "M-5 0H5M0 -5V5",
		[MARKUP_CROSS] = "M-4 -4L4 4M-4 4L4 -4",
	};

	fprintf(file, "<path class=\"%s\" transform=\"translate(%.1f %.1f)\" d=\"%s\"/>\n",
		class_name, at.x, at.y, paths[shape]);
}
