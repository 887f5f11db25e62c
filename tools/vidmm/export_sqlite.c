/* SPDX-License-Identifier: MIT */
/* An SQLite database with the tables. Its integers are signed: 2^63 and more are negative. */
#include <errno.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "export.h"

struct database {
	struct export_sink sink;
	char *path;
	sqlite3 *db;
	sqlite3_stmt *insert;
	unsigned columns;
	bool failed; /* a message was printed */
};

static bool fail(struct database *d)
{
	if (!d->failed)
		fprintf(stderr, "vidmm: %s: %s\n", d->path,
			d->db ? sqlite3_errmsg(d->db) : "out of memory");
	d->failed = true;
	return false;
}

static bool execute(struct database *d, const char *sql)
{
	return sqlite3_exec(d->db, sql, NULL, NULL, NULL) == SQLITE_OK || fail(d);
}

/* The names of tables and columns are constants of this program. */
static bool begin_table(struct export_sink *sink, const char *name, const char *const *columns)
{
	struct database *d = (struct database *)sink;
	char create[1024], insert[256];
	size_t used = (size_t)snprintf(create, sizeof(create), "CREATE TABLE %s (", name);
	size_t marks = (size_t)snprintf(insert, sizeof(insert), "INSERT INTO %s VALUES (", name);

	for (d->columns = 0; columns[d->columns]; d->columns++) {
		used += (size_t)snprintf(create + used, sizeof(create) - used, "%s%s",
					 d->columns ? ", " : "", columns[d->columns]);
		marks += (size_t)snprintf(insert + marks, sizeof(insert) - marks, "%s?",
					  d->columns ? ", " : "");
	}
	snprintf(create + used, sizeof(create) - used, ")");
	snprintf(insert + marks, sizeof(insert) - marks, ")");
	sqlite3_finalize(d->insert);
	d->insert = NULL;
	return execute(d, create) &&
	       (sqlite3_prepare_v2(d->db, insert, -1, &d->insert, NULL) == SQLITE_OK || fail(d));
}

static bool add_row(struct export_sink *sink, const struct export_value *values)
{
	struct database *d = (struct database *)sink;
	int result = SQLITE_OK;

	for (unsigned i = 0; i < d->columns && result == SQLITE_OK; i++) {
		int at = (int)i + 1;

		if (values[i].kind == EXPORT_NUMBER)
			result = sqlite3_bind_int64(d->insert, at, (sqlite3_int64)values[i].number);
		else if (values[i].kind == EXPORT_TEXT)
			result = sqlite3_bind_text(d->insert, at, values[i].text, -1,
						   SQLITE_TRANSIENT);
		else
			result = sqlite3_bind_null(d->insert, at);
	}
	if (result != SQLITE_OK || sqlite3_step(d->insert) != SQLITE_DONE)
		return fail(d);
	return sqlite3_reset(d->insert) == SQLITE_OK || fail(d);
}

struct export_sink *export_sqlite_open(const char *path)
{
	struct database *d = calloc(1, sizeof(*d));

	if (!d || !(d->path = strdup(path))) {
		fprintf(stderr, "vidmm: %s: out of memory\n", path);
		free(d);
		return NULL;
	}
	d->sink = (struct export_sink){.table = begin_table, .row = add_row};
	if (unlink(path) != 0 && errno != ENOENT) {
		fprintf(stderr, "vidmm: %s: %s\n", path, strerror(errno));
		d->failed = true;
	} else if (sqlite3_open(path, &d->db) != SQLITE_OK) {
		fail(d);
	} else {
		/* A new file: after a failure it is of no use anyway. */
		(void)(execute(d, "PRAGMA journal_mode = OFF") &&
		       execute(d, "PRAGMA synchronous = OFF") && execute(d, "BEGIN"));
	}
	if (!d->failed)
		return &d->sink;
	export_sqlite_close(&d->sink);
	return NULL;
}

bool export_sqlite_close(struct export_sink *sink)
{
	struct database *d = (struct database *)sink;

	if (!d)
		return true;
	sqlite3_finalize(d->insert);
	if (!d->failed)
		(void)execute(d, "COMMIT");
	bool good = !d->failed;

	sqlite3_close(d->db);
	free(d->path);
	free(d);
	return good;
}
