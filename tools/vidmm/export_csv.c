/* SPDX-License-Identifier: MIT */
/* A folder with a CSV file of each table (RFC 4180). */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "export.h"

struct csv {
	struct export_sink sink;
	char *folder, *path; /* path: of the file that is open */
	FILE *file;
	unsigned columns;
	bool failed; /* a message was printed */
};

static bool fail(struct csv *csv, const char *path)
{
	if (!csv->failed)
		fprintf(stderr, "vidmm: %s: %s\n", path, strerror(errno));
	csv->failed = true;
	return false;
}

static bool close_file(struct csv *csv)
{
	FILE *file = csv->file;
	bool good = true;

	csv->file = NULL;
	if (file && (fflush(file) != 0 || ferror(file)))
		good = fail(csv, csv->path);
	if (file && fclose(file) != 0 && good)
		good = fail(csv, csv->path);
	free(csv->path);
	csv->path = NULL;
	return good;
}

/* A text with a comma, a quote or a line break is quoted, with its quotes doubled. */
static void put_text(FILE *file, const char *text)
{
	bool quoted = text[strcspn(text, ",\"\r\n")] != '\0';

	if (quoted)
		putc('"', file);
	for (; *text; text++) {
		if (*text == '"')
			putc('"', file);
		putc(*text, file);
	}
	if (quoted)
		putc('"', file);
}

static bool begin_table(struct export_sink *sink, const char *name, const char *const *columns)
{
	struct csv *csv = (struct csv *)sink;

	if (!close_file(csv))
		return false;
	if (asprintf(&csv->path, "%s/%s.csv", csv->folder, name) < 0) {
		csv->path = NULL;
		return fail(csv, csv->folder);
	}
	csv->file = fopen(csv->path, "w");
	if (!csv->file)
		return fail(csv, csv->path);
	for (csv->columns = 0; columns[csv->columns]; csv->columns++)
		fprintf(csv->file, "%s%.*s", csv->columns ? "," : "",
			(int)strcspn(columns[csv->columns], " "), columns[csv->columns]);
	fputs("\r\n", csv->file);
	return true;
}

static bool add_row(struct export_sink *sink, const struct export_value *values)
{
	struct csv *csv = (struct csv *)sink;

	for (unsigned i = 0; i < csv->columns; i++) {
		if (i)
			putc(',', csv->file);
		if (values[i].kind == EXPORT_NUMBER)
			fprintf(csv->file, "%" PRIu64, values[i].number);
		else if (values[i].kind == EXPORT_TEXT)
			put_text(csv->file, values[i].text);
	}
	fputs("\r\n", csv->file);
	return !ferror(csv->file) || fail(csv, csv->path);
}

struct export_sink *export_csv_open(const char *folder)
{
	struct csv *csv = calloc(1, sizeof(*csv));

	if (!csv || !(csv->folder = strdup(folder)) ||
	    (mkdir(folder, 0777) != 0 && errno != EEXIST)) {
		fprintf(stderr, "vidmm: %s: %s\n", folder, strerror(errno));
		if (csv)
			free(csv->folder);
		free(csv);
		return NULL;
	}
	csv->sink = (struct export_sink){.table = begin_table, .row = add_row};
	return &csv->sink;
}

bool export_csv_close(struct export_sink *sink)
{
	struct csv *csv = (struct csv *)sink;

	if (!csv)
		return true;
	bool good = close_file(csv) && !csv->failed;

	free(csv->folder);
	free(csv);
	return good;
}
