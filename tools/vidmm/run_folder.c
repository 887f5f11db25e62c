/* SPDX-License-Identifier: MIT */
/*
 * The private folder of a run: links to the library under the names that programs load, the file of
 * the report, and the socket of a host.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "run.h"

#define TEXT_(x) #x
#define TEXT(x)  TEXT_(x)

#define SONAME "libvidmm.so." TEXT(VIDMM_VERSION_MAJOR) "." TEXT(VIDMM_VERSION_MINOR)
static const char soname[] = SONAME;
/* Where no headers are installed the library has no other name. */
static const char installed[] = VIDMM_LIBRARY_FROM_PROGRAM "/" SONAME;

/* Where the library is, from the folder of this program: the build tree, the installed layout. */
static const char *const libraries[] = {"../../lib/libvidmm.so", installed};
static const char *const links[] = {"libdxcore.so", "libdxg.so", "libdxg.so.1", "libvidmm.so",
				    soname};
/* Everything that the folder may contain, each before its folder. */
static const char *const contents[] = {
	"libdxcore.so",
	"libdxg.so",
	"libdxg.so.1",
	"libvidmm.so",
	soname,
	"socket",
	"socket.lock",
	"report",
	"over/wsl/lib/libdxcore.so",
	"over/lib/libdxcore.so",
	"over/libdxcore.so",
	"over/wsl/lib",
	"over/wsl",
	"over/lib",
	"over",
	"",
};

static bool failed(const char *what, const char *why)
{
	fprintf(stderr, "vidmm run: %s: %s\n", what, why);
	return false;
}

/* Returns a formatted text, to be freed; NULL when out of memory. */
static char *formatted(const char *format, ...) __attribute__((format(printf, 1, 2)));
static char *formatted(const char *format, ...)
{
	char *text = NULL;
	va_list args;

	va_start(args, format);
	if (vasprintf(&text, format, args) < 0)
		text = NULL;
	va_end(args);
	return text;
}

static bool find_library(struct run_folder *folder)
{
	char program[PATH_MAX] = "", path[2 * PATH_MAX];
	ssize_t length = readlink("/proc/self/exe", program, sizeof(program) - 1);
	char *slash = length > 0 ? strrchr(program, '/') : NULL;

	if (!slash)
		return failed("/proc/self/exe", strerror(errno));
	*slash = '\0';
	for (size_t i = 0; i < sizeof(libraries) / sizeof(libraries[0]); i++) {
		snprintf(path, sizeof(path), "%s/%s", program, libraries[i]);
		if (realpath(path, folder->library))
			return true;
	}
	return failed(path, "the library is not there: is vidmm built and installed completely?");
}

/* Makes VIDMM_ADAPTER: the driver's absolute path and the settings. */
static bool describe_adapter(const struct caps_options *adapter, struct run_folder *folder)
{
	char path[PATH_MAX];
	const char *driver = adapter->driver ? path : "softgpu";
	char *text;

	if (adapter->driver && !realpath(adapter->driver, path))
		return failed(adapter->driver, strerror(errno));
	if (strchr(driver, ','))
		return failed(driver, "the path of a driver must not contain a comma");
	text = formatted("%s", driver);
	for (unsigned i = 0; i < adapter->bar_count && text; i++) {
		char *before = text;

		text = formatted("%s,bar=%llu", before, (unsigned long long)adapter->bars[i]);
		free(before);
	}
	for (unsigned i = 0; i < adapter->setting_count && text; i++) {
		char *before = text;

		text = formatted("%s,%s=%llu", before, adapter->settings[i].name,
				 (unsigned long long)adapter->settings[i].value);
		free(before);
	}
	folder->adapter = text;
	return text || failed("the adapter", strerror(ENOMEM));
}

static bool make_links(const struct run_folder *folder)
{
	char path[PATH_MAX + 32];

	for (size_t i = 0; i < sizeof(links) / sizeof(links[0]); i++) {
		snprintf(path, sizeof(path), "%s/%s", folder->path, links[i]);
		if (symlink(folder->library, path))
			return failed(path, strerror(errno));
	}
	return true;
}

bool run_folder_make(const struct run_options *options, struct run_folder *folder)
{
	const char *parent = secure_getenv("TMPDIR");
	char path[PATH_MAX];

	*folder = (struct run_folder){0};
	if (!find_library(folder))
		return false;
	if (!options->serve && !describe_adapter(&options->adapter, folder))
		return false;
	if (!parent || parent[0] != '/' || strlen(parent) > sizeof(path) / 2)
		parent = "/tmp";
	snprintf(path, sizeof(path), "%s/vidmm-run-XXXXXX", parent);
	if (!mkdtemp(path))
		return failed(path, strerror(errno));
	strcpy(folder->path, path);
	folder->socket = formatted("%s/socket", path);
	folder->report = formatted("%s/report", path);
	if (!folder->socket || !folder->report)
		return failed(path, strerror(ENOMEM));
	return make_links(folder);
}

void run_folder_remove(struct run_folder *folder)
{
	char path[PATH_MAX + 32];

	for (size_t i = 0; folder->path[0] && i < sizeof(contents) / sizeof(contents[0]); i++) {
		snprintf(path, sizeof(path), "%s/%s", folder->path, contents[i]);
		(void)remove(path);
	}
	free(folder->adapter);
	free(folder->socket);
	free(folder->report);
}
