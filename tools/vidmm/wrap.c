/* SPDX-License-Identifier: MIT */
/* Word wrapping for terminals. */
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>

#include "wrap.h"

#define WIDTH_MIN 40

int wrap_width(int fd)
{
	const char *columns = getenv("COLUMNS");
	struct winsize size = {0};
	int width = columns ? atoi(columns) : 0;

	if (width <= 0 && ioctl(fd, TIOCGWINSZ, &size) == 0)
		width = size.ws_col;
	if (width <= 0)
		return WRAP_WIDTH_DEFAULT;
	return width < WIDTH_MIN ? WIDTH_MIN : width;
}

void wrap_print(FILE *file, const char *text, int column, int indent, int width)
{
	int used = 0; /* columns of this line that hold words of TEXT */

	while (*text) {
		int length = (int)strcspn(text, " ");

		if (used > 0 && column + 1 + length > width) {
			fprintf(file, "\n%*s", indent, "");
			column = indent;
			used = 0;
		}
		if (used > 0)
			fputc(' ', file);
		fprintf(file, "%.*s", length, text);
		column += length + (used > 0);
		used += length;
		text += length;
		text += strspn(text, " ");
	}
	fputc('\n', file);
}
