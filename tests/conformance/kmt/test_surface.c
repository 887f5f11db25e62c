/* SPDX-License-Identifier: MIT */
/*
 * Every D3DKMT function, called with each class of bad arguments: the statuses are those of
 * surface.tsv for an adapter of WDDM 1.x, and of surface-wddm2.tsv for one of 2.x. After a
 * deliberate change, from the root of the tree:
 *
 *     build/gcc/tests/conformance/kmt/test_kmt_surface --write tests/conformance/kmt/surface.tsv
 *
 * which writes the other table beside it.
 *
 * Each failed call says why, by a finding or a reason, and has one door event with its status.
 *
 * An argument lies at the end of its block, so that the address sanitizer sees an access beyond.
 */
#include "kmt_world.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define HANDLES_MAX 8u
#define LINE_BYTES  256u

enum class { NO_ARGUMENT, ZEROS, UNKNOWN_HANDLES, STALE_HANDLES, ADAPTER_HANDLES, CLASSES };
static const char *const class_names[CLASSES] = {"null", "zeros", "unknown handles",
						 "stale handles", "adapter handles"};

struct function {
	const char *name;
	NTSTATUS (*call)(void *args);
	size_t bytes;
	uint32_t handles;
	uint32_t offset[HANDLES_MAX]; /* of the handles */
};

#define FUNCTION(name, argument, ...)           \
	static NTSTATUS call_##name(void *args) \
	{                                       \
		return name((argument *)args);  \
	}
#include "surface_rows.h"
#undef FUNCTION

static const struct function functions[] = {
#define FUNCTION(name, argument, count, ...) \
	{#name, call_##name, sizeof(argument), count, {__VA_ARGS__}},
#include "surface_rows.h"
#undef FUNCTION
};

/* An adapter, and the table of what the functions return for it. */
struct variant {
	uint32_t kind; /* VIDMM_HOST_* */
	uint64_t model;
	const char *suffix; /* of the name of the table */
};
static struct variant wddm1_sim = {VIDMM_HOST_SIM, SOFTGPU_MODEL_WDDM1, ""},
		      wddm1_linux = {VIDMM_HOST_LINUX, SOFTGPU_MODEL_WDDM1, ""},
		      wddm2_sim = {VIDMM_HOST_SIM, SOFTGPU_MODEL_WDDM2, "-wddm2"},
		      wddm2_linux = {VIDMM_HOST_LINUX, SOFTGPU_MODEL_WDDM2, "-wddm2"};

struct surface {
	struct kmt_world w;
	D3DKMT_HANDLE stale;
	uint32_t doors; /* door events since the call began, and the status of the last */
	NTSTATUS door_status;
};

/* Only the thread of the test makes calls. */
static void on_door(void *context, const struct vidmm_event *event, const char *text)
{
	struct surface *s = context;

	(void)text;
	s->doors++;
	s->door_status = (NTSTATUS)event->arg[0];
}

static void start(struct surface *s, const struct variant *variant)
{
	const struct vidmm_registry_value registry[] = {
		{"Model", variant->model},
		{"HardwareQueues", variant->model == SOFTGPU_MODEL_WDDM2}};
	const struct client_options options = {.kind = variant->kind,
					       .vram_bytes = 4 * MIB,
					       .registry = registry,
					       .registry_count = 2,
					       .features = VIDMM_FEATURE_HWSCH};

	kmt_start_with(&s->w, &options);
	assert_int_not_equal(
		vidmm_subscribe(s->w.client.host, 1ull << VIDMM_EVENT_DOOR, on_door, s), 0);
	/* The device is gone: the functions could change an object that is there. */
	s->stale = kmt_allocate(&s->w, 4096);
	D3DKMT_DESTROYDEVICE destroy = {.hDevice = s->w.device};
	assert_int_equal(D3DKMTDestroyDevice(&destroy), STATUS_SUCCESS);
}

static NTSTATUS call(const struct surface *s, const struct function *function, enum class class)
{
	const D3DKMT_HANDLE handles[CLASSES] = {
		[UNKNOWN_HANDLES] = 0x40FFFFC0,
		[STALE_HANDLES] = s->stale,
		[ADAPTER_HANDLES] = s->w.adapter,
	};
	unsigned char *args = NULL;

	if (class == NO_ARGUMENT)
		return function->call(NULL);
	args = calloc(1, function->bytes);
	assert_non_null(args);
	for (uint32_t i = 0; i < function->handles; i++)
		memcpy(args + function->offset[i], &handles[class], sizeof(handles[class]));
	NTSTATUS status = function->call(args);
	free(args);
	return status;
}

/* Of the classes that give an argument, ADAPTER_HANDLES alone may name what a function needs. */
static bool is_good(const struct function *function, enum class class)
{
	/* They need no object: their handles are outputs. */
	static const char *const without_an_object[] = {
		"D3DKMTEnumAdapters",     "D3DKMTEnumAdapters2",     "D3DKMTEnumAdapters3",
		"D3DKMTCreateKeyedMutex", "D3DKMTCreateKeyedMutex2",
	};

	for (size_t i = 0; i < sizeof(without_an_object) / sizeof(without_an_object[0]); i++)
		if (class != NO_ARGUMENT && !strcmp(function->name, without_an_object[i]))
			return true;
	return class == ADAPTER_HANDLES;
}

static bool is_adapter_alive(const struct surface *s)
{
	D3DKMT_CREATEDEVICE args = {.hAdapter = s->w.adapter};

	if (D3DKMTCreateDevice(&args) != STATUS_SUCCESS)
		return false;
	D3DKMT_DESTROYDEVICE destroy = {.hDevice = args.hDevice};
	return D3DKMTDestroyDevice(&destroy) == STATUS_SUCCESS;
}

/* Calls the function and formats its row. The adapter's handle stays open, whatever is closed. */
static void row_of(struct surface *s, const struct function *function, enum class class,
		   char line[LINE_BYTES])
{
	s->w.client.reasons = 0;
	s->doors = 0;
	NTSTATUS status = call(s, function, class);

	if (!NT_SUCCESS(status) && (s->doors != 1 || s->door_status != status))
		fail_msg("%s fails with %s: %u door events, the last with 0x%08x", function->name,
			 class_names[class], s->doors, (uint32_t)s->door_status);
	if (!NT_SUCCESS(status) && !s->w.client.reasons && !s->w.client.findings)
		fail_msg("%s fails with %s and says no reason", function->name, class_names[class]);
	if (NT_SUCCESS(status) && !is_good(function, class))
		fail_msg("%s succeeds with %s", function->name, class_names[class]);
	if (!is_adapter_alive(s)) {
		assert_string_equal(function->name, "D3DKMTCloseAdapter");
		s->w.adapter = kmt_open_adapter(&s->w);
		assert_true(is_adapter_alive(s));
	}
	client_forget(&s->w.client);
	snprintf(line, LINE_BYTES, "%s\t%s\t0x%08" PRIx32 "\n", function->name, class_names[class],
		 (uint32_t)status);
}

static FILE *open_table(const struct variant *variant)
{
	const char *root = getenv("VIDMM_SOURCE_ROOT");
	char path[1024], line[LINE_BYTES];

	snprintf(path, sizeof(path), "%s/tests/conformance/kmt/surface%s.tsv", root ? root : ".",
		 variant->suffix);
	FILE *file = fopen(path, "r");
	if (!file)
		fail_msg("cannot read %s", path);
	long row = 0;
	while (fgets(line, sizeof(line), file) && line[0] == '#')
		row = ftell(file);
	assert_int_equal(fseek(file, row, SEEK_SET), 0);
	return file;
}

static void each_function_refuses_each_class_of_bad_arguments(void **state)
{
	const struct variant *variant = *state;
	FILE *table = open_table(variant);
	struct surface s;
	uint32_t wrong = 0;

	start(&s, variant);
	for (size_t i = 0; i < sizeof(functions) / sizeof(functions[0]); i++)
		for (uint32_t class = 0; class < CLASSES; class ++) {
			char line[LINE_BYTES], expected[LINE_BYTES] = "";

			if (class > ZEROS && !functions[i].handles)
				continue;
			row_of(&s, &functions[i], class, line);
			(void)!fgets(expected, sizeof(expected), table);
			if (strcmp(line, expected)) {
				print_error("is        %sexpected  %s\n", line, expected);
				wrong++;
			}
		}
	assert_int_equal(wrong, 0);
	fclose(table);
	kmt_stop(&s.w);
}

/* For --write: the path of the table of WDDM 1.x. */
static const char *path;

static void write_table(void **state)
{
	const struct variant *variant = *state;
	char name[1024];
	struct surface s;

	snprintf(name, sizeof(name), "%.*s%s.tsv", (int)(strlen(path) - strlen(".tsv")), path,
		 variant->suffix);
	FILE *table = fopen(name, "w");
	if (!table)
		fail_msg("cannot write %s", name);
	fprintf(table,
		"# SPDX-License-Identifier: MIT\n"
		"# What each D3DKMT function returns for bad arguments on an adapter of WDDM %u.x\n"
		"# (test_surface.c, --write).\n"
		"# function\targument\tstatus\n",
		(unsigned)variant->model);
	start(&s, variant);
	for (size_t i = 0; i < sizeof(functions) / sizeof(functions[0]); i++)
		for (uint32_t class = 0; class < CLASSES; class ++) {
			char line[LINE_BYTES];

			if (class > ZEROS && !functions[i].handles)
				continue;
			row_of(&s, &functions[i], class, line);
			fputs(line, table);
		}
	assert_int_equal(fclose(table), 0);
	kmt_stop(&s.w);
}

#define TEST(prefix, variant)                                                                     \
	{                                                                                         \
		prefix "each_function_refuses_each_class_of_bad_arguments",                       \
			each_function_refuses_each_class_of_bad_arguments, NULL, NULL, &(variant) \
	}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		TEST("sim, WDDM 1: ", wddm1_sim),
		TEST("linux, WDDM 1: ", wddm1_linux),
		TEST("sim, WDDM 2: ", wddm2_sim),
		TEST("linux, WDDM 2: ", wddm2_linux),
	};
	const struct CMUnitTest writer[] = {
		{"write, WDDM 1", write_table, NULL, NULL, &wddm1_sim},
		{"write, WDDM 2", write_table, NULL, NULL, &wddm2_sim},
	};

	if (argc == 3 && !strcmp(argv[1], "--write") && strlen(argv[2]) > strlen(".tsv")) {
		path = argv[2];
		return cmocka_run_group_tests(writer, NULL, NULL);
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
