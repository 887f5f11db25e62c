/* SPDX-License-Identifier: MIT */
#include "whatif_store.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define FORMAT         "vidmm what-if cells"
#define FORMAT_VERSION 1

/* A line while it is read. */
struct line {
	struct whatif_store *store;
	unsigned file, number;
	json_t *json;
};

__attribute__((format(printf, 2, 3))) static bool refuse(const struct line *line,
							 const char *format, ...)
{
	va_list arguments;

	fprintf(stderr, "vidmm %s: %s:%u: ", line->store->verb, line->store->paths[line->file],
		line->number);
	va_start(arguments, format);
	vfprintf(stderr, format, arguments);
	va_end(arguments);
	fputc('\n', stderr);
	return false;
}

static enum replay_status failed(const struct whatif_store *store, unsigned file, const char *why)
{
	fprintf(stderr, "vidmm %s: %s: %s\n", store->verb, store->paths[file], why);
	return REPLAY_ENVIRONMENT;
}

bool whatif_store_init(struct whatif_store *store, const char *verb, char **paths)
{
	*store = (struct whatif_store){.verb = verb, .paths = paths, .cells = json_object()};
	return store->cells != NULL;
}

bool whatif_store_finish(struct whatif_store *store)
{
	json_decref(store->cells);
	json_decref(store->sweep);
	if (store->file)
		fclose(store->file);
	if (!store->error)
		return true;
	fprintf(stderr, "vidmm %s: %s: %s: not all finished replays are in this file\n",
		store->verb, store->paths[0], strerror(store->error));
	return false;
}

/* ---- reading ---- */

static char *header_text(void)
{
	json_t *header = json_pack("{s:s, s:i, s:s}", "format", FORMAT, "format_version",
				   FORMAT_VERSION, "vidmm_version", vidmm_version());
	char *text = json_dumps(header, JSON_COMPACT);

	json_decref(header);
	return text;
}

static bool read_header(const struct line *line)
{
	const char *format, *version;
	int number;

	if (json_unpack(line->json, "{s:s}", "format", &format) != 0 || strcmp(format, FORMAT) != 0)
		return refuse(line, "this is no file of `vidmm what-if --state`");
	if (json_unpack(line->json, "{s:i}", "format_version", &number) != 0 ||
	    number != FORMAT_VERSION)
		return refuse(line, "the format version is not %d", FORMAT_VERSION);
	if (json_unpack(line->json, "{s:s}", "vidmm_version", &version) != 0 ||
	    strcmp(version, vidmm_version()) != 0)
		return refuse(line, "written by another version of vidmm, this one is %s",
			      vidmm_version());
	return true;
}

static bool is_environment(const json_t *cell)
{
	return json_integer_value(json_object_get(cell, "exit_code")) == REPLAY_ENVIRONMENT;
}

/* Where a cell was read, beside its line. */
static json_t *with_place(const struct line *line)
{
	return json_pack("{s:O, s:i, s:i}", "line", line->json, "file", (int)line->file, "number",
			 (int)line->number);
}

/*
 * A replay has the same outcome each time. Only what the machine did to it differs, and another
 * outcome replaces that.
 */
static bool read_cell(const struct line *line)
{
	json_error_t error;
	json_t *there, *other;
	char *key;
	bool good = true;

	if (!whatif_cell_valid(line->json, &error))
		return refuse(line, "%s", error.text);
	key = whatif_cell_key(line->json);
	there = key ? json_object_get(line->store->cells, key) : NULL;
	other = json_object_get(there, "line");
	if (!there || is_environment(other)) {
		good = key && json_object_set_new(line->store->cells, key, with_place(line)) == 0;
		if (!good)
			refuse(line, "%s", strerror(ENOMEM));
	} else if (!is_environment(line->json) && !json_equal(other, line->json)) {
		good = refuse(
			line, "this replay has another outcome in %s:%d",
			line->store->paths[json_integer_value(json_object_get(there, "file"))],
			(int)json_integer_value(json_object_get(there, "number")));
	}
	free(key);
	return good;
}

/* Keeps the last sweep of a file in *SWEEP. */
static bool read_line(const struct line *line, json_t **sweep, unsigned *sweep_line)
{
	if (line->number == 1)
		return read_header(line);
	if (json_object_get(line->json, "cell"))
		return read_cell(line);
	if (!json_object_get(line->json, "sweep"))
		return refuse(line, "neither a cell nor a sweep");
	json_decref(*sweep);
	*sweep = json_incref(line->json);
	*sweep_line = line->number;
	return true;
}

/* Takes SWEEP over. */
static bool keep_sweep(struct whatif_store *store, unsigned file, json_t *sweep, unsigned number)
{
	struct line line = {.store = store, .file = file, .number = number};

	if (!store->sweep) {
		store->sweep = sweep;
		store->sweep_file = file;
		store->sweep_line = number;
		return true;
	}
	if (sweep && !json_equal(store->sweep, sweep)) {
		json_decref(sweep);
		return refuse(&line, "not the same sweep as in %s:%u",
			      store->paths[store->sweep_file], store->sweep_line);
	}
	json_decref(sweep);
	return true;
}

/*
 * Returns whether a text without an end of line is what a run that was killed leaves. It may be any
 * text but in the first line, where a file of something else is not to be deleted.
 */
static bool is_torn(const struct line *line, const char *text, size_t length)
{
	char *header = header_text();
	bool begun = header && length <= strlen(header) && memcmp(header, text, length) == 0;

	free(header);
	return line->number > 1 || begun;
}

/* Stores in *WHOLE where the last complete line ends. */
static bool read_lines(struct whatif_store *store, unsigned file, FILE *stream, off_t *whole)
{
	struct line line = {.store = store, .file = file};
	unsigned sweep_line = 0;
	json_t *sweep = NULL;
	char *text = NULL;
	size_t size = 0;
	ssize_t length;
	bool good = true;

	*whole = 0;
	while (good && (length = getline(&text, &size, stream)) > 0) {
		json_error_t error;

		line.number++;
		if (text[length - 1] != '\n') {
			if (!is_torn(&line, text, (size_t)length))
				good = refuse(&line, "this is no file of `vidmm what-if --state`");
			break;
		}
		line.json = json_loadb(text, (size_t)length, JSON_REJECT_DUPLICATES, &error);
		/* The first line of another file need not be JSON. */
		good = line.json || line.number == 1 || refuse(&line, "%s", error.text);
		good = good && read_line(&line, &sweep, &sweep_line);
		json_decref(line.json);
		*whole += length;
	}
	free(text);
	if (good)
		return keep_sweep(store, file, sweep, sweep_line);
	json_decref(sweep);
	return false;
}

static enum replay_status read_stream(struct whatif_store *store, unsigned file, FILE *stream,
				      off_t *whole)
{
	struct stat status;

	if (fstat(fileno(stream), &status) != 0)
		return failed(store, file, strerror(errno));
	/* A device may have no end. */
	if (!S_ISREG(status.st_mode))
		return failed(store, file, "not a regular file");
	if (!read_lines(store, file, stream, whole))
		return REPLAY_BAD_INPUT;
	return ferror(stream) ? failed(store, file, strerror(errno)) : REPLAY_CLEAN;
}

enum replay_status whatif_store_read(struct whatif_store *store, unsigned file)
{
	FILE *stream = fopen(store->paths[file], "r");
	enum replay_status status;
	off_t whole;

	if (!stream)
		return failed(store, file, strerror(errno));
	status = read_stream(store, file, stream, &whole);
	fclose(stream);
	return status;
}

/* ---- writing ---- */

/* Takes LINE over; NULL: out of memory. */
static bool append(struct whatif_store *store, char *line)
{
	size_t length = line ? strlen(line) : 0;
	ssize_t written;

	if (!store->file || store->error) {
		free(line);
		return false;
	}
	if (!line) {
		store->error = ENOMEM;
		return false;
	}
	line[length] = '\n'; /* in place of the 0 */
	errno = 0;
	written = write(fileno(store->file), line, length + 1);
	if (written != (ssize_t)length + 1)
		store->error = errno ? errno : ENOSPC;
	free(line);
	return !store->error;
}

static bool append_json(struct whatif_store *store, json_t *json)
{
	char *line = json ? json_dumps(json, JSON_COMPACT) : NULL;

	json_decref(json);
	return append(store, line);
}

/*
 * The lock is one of the process, which its children do not inherit: a run that is killed leaves
 * none behind.
 */
static enum replay_status lock(const struct whatif_store *store, int descriptor)
{
	struct flock whole = {.l_type = F_WRLCK, .l_whence = SEEK_SET};

	if (fcntl(descriptor, F_SETLK, &whole) == 0)
		return REPLAY_CLEAN;
	if (errno == EACCES || errno == EAGAIN)
		return failed(store, 0, "another process writes to this file");
	return failed(store, 0, strerror(errno));
}

enum replay_status whatif_store_open(struct whatif_store *store)
{
	int descriptor = open(store->paths[0], O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
	enum replay_status status;
	off_t whole;

	store->file = descriptor < 0 ? NULL : fdopen(descriptor, "r+");
	if (!store->file) {
		status = failed(store, 0, strerror(errno));
		if (descriptor >= 0)
			close(descriptor);
		return status;
	}
	status = lock(store, descriptor);
	if (status == REPLAY_CLEAN)
		status = read_stream(store, 0, store->file, &whole);
	if (status != REPLAY_CLEAN)
		return status;
	if (ftruncate(descriptor, whole) != 0)
		return failed(store, 0, strerror(errno));
	if (whole == 0 && !append(store, header_text()))
		return REPLAY_ENVIRONMENT;
	return REPLAY_CLEAN;
}

bool whatif_store_begin(struct whatif_store *store, const struct whatif_grid *grid)
{
	json_t *sweep = whatif_sweep_json(grid->options, grid->readings);

	if (!sweep) {
		failed(store, 0,
		       "the name of a recording is not UTF-8, and cannot be in this file");
		return false;
	}
	if (store->sweep && json_equal(store->sweep, sweep)) {
		json_decref(sweep);
		return true;
	}
	return append_json(store, sweep);
}

void whatif_store_add(struct whatif_store *store, const struct whatif_cell *cell)
{
	append_json(store, whatif_cell_json(cell, true));
}

int whatif_store_take(const struct whatif_store *store, struct whatif_grid *grid, bool again)
{
	int count = 0;

	for (unsigned i = 0; i < grid->total; i++) {
		json_t *own = whatif_cell_json(&grid->cells[i], false), *line;
		char *key = whatif_cell_key(own);

		json_decref(own);
		if (!key)
			return -1;
		line = json_object_get(json_object_get(store->cells, key), "line");
		free(key);
		if (!grid->cells[i].measured || !line || (again && is_environment(line)))
			continue;
		whatif_cell_take(line, &grid->cells[i]);
		count++;
	}
	return count;
}
