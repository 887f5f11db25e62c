/* SPDX-License-Identifier: MIT */
/*
 * The adapter that VIDMM_ADAPTER names: the first D3DKMT call of a program that has no other route
 * starts it in the program's process. It runs until the process ends.
 */
#include "host/kmt_route.h"
#include "program/setting.h"
#include "report/report.h"

#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The driver of softgpu: as installed, and in the build tree, relative to the library. */
static const char *const softgpu_paths[] = {"vidmm/softgpu_driver.so",
					    "../drivers/softgpu/softgpu_driver.so"};

static pthread_mutex_t start_mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t sample_mutex = PTHREAD_MUTEX_INITIALIZER;
static _Atomic bool forked; /* this process is a child of the one that started the adapter */
/* All that follow are written by the thread that holds start_mutex, before `running` is set. */
static bool tried;
static vmm_status result;
static struct vmm_program_setting setting;
static struct vidmm_host *host;
static struct vidmm_adapter *adapter;
static struct vidmm_process *process;
static struct vmm_report_writer writer;
static struct vmm_report_adapter *row;
static _Atomic bool running;

static vmm_status failed(vmm_status status, const char *format, ...) VMM_PRINTF(2, 3);
static vmm_status failed(vmm_status status, const char *format, ...)
{
	char why[VMM_REPORT_TEXT_BYTES - 16], text[VMM_REPORT_TEXT_BYTES];
	va_list args;

	va_start(args, format);
	vsnprintf(why, sizeof(why), format, args);
	va_end(args);
	snprintf(text, sizeof(text), "%s (Q-170)", why);
	vmm_kmt_route_complain(status, text);
	return status;
}

/* ---- the driver ---- */

/*
 * Stores the folder of the library. Makes its symbols global too: the program may have loaded it
 * with RTLD_LOCAL, and a driver finds the kernel services in the global scope.
 */
static bool find_library(char folder[PATH_MAX])
{
	Dl_info info;

	if (!dladdr(&softgpu_paths, &info) || !realpath(info.dli_fname, folder))
		return false;
	(void)dlopen(info.dli_fname, RTLD_NOW | RTLD_NOLOAD | RTLD_GLOBAL);
	*strrchr(folder, '/') = '\0';
	return true;
}

static bool find_softgpu(const char *folder, char path[PATH_MAX])
{
	for (size_t i = 0; i < VMM_ARRAY_LENGTH(softgpu_paths); i++) {
		int length = snprintf(path, PATH_MAX, "%s/%s", folder, softgpu_paths[i]);

		if (length < PATH_MAX && access(path, R_OK) == 0)
			return true;
	}
	return false;
}

static vmm_status load_driver(vidmm_driver_entry_fn **entry)
{
	char folder[PATH_MAX], path[PATH_MAX];

	if (!find_library(folder))
		return failed(VMM_OBJECT_NAME_NOT_FOUND, "the folder of the library is unknown");
	if (strcmp(setting.driver, "softgpu") != 0)
		snprintf(path, sizeof(path), "%s", setting.driver);
	else if (!find_softgpu(folder, path))
		return failed(VMM_OBJECT_NAME_NOT_FOUND, "%s/%s does not exist", folder,
			      softgpu_paths[0]);
	void *module = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	void *symbol = module ? dlsym(module, "DriverEntry") : NULL;

	if (!symbol)
		return failed(VMM_OBJECT_NAME_NOT_FOUND, "%s is no driver: %s", path,
			      module ? "it exports no DriverEntry" : dlerror());
	memcpy(entry, &symbol, sizeof(symbol));
	return VMM_OK;
}

/* ---- the start ---- */

static void sample(void)
{
	struct vidmm_adapter_statistics statistics = {.struct_size = sizeof(statistics)};

	if (!row || pthread_mutex_trylock(&sample_mutex))
		return;
	if (atomic_exchange(&writer.changed, 0)) {
		vidmm_adapter_statistics(adapter, &statistics);
		vmm_report_sample(row, &statistics);
	}
	pthread_mutex_unlock(&sample_mutex);
}

static void begin_report(void)
{
	writer.report = vmm_kmt_route_report();
	writer.owner = (uint32_t)getpid();
	if (writer.report)
		(void)vidmm_subscribe(host, VMM_REPORT_EVENTS, vmm_report_event, &writer);
}

static vmm_status start_adapter(void)
{
	const struct vidmm_host_options host_options = {.struct_size = sizeof(host_options),
							.kind = VIDMM_HOST_LINUX};
	struct vidmm_adapter_options options = {
		.struct_size = sizeof(options),
		.bar_sizes = setting.bars,
		.bar_count = setting.bar_count,
		.registry = setting.settings,
		.registry_count = setting.setting_count,
		.features = VIDMM_FEATURE_HWSCH,
	};
	vmm_status status = load_driver(&options.driver_entry);

	if (!vmm_ok(status))
		return status;
	status = vidmm_host_create(&host_options, &host);
	if (!vmm_ok(status))
		return failed(status, "no host can be created");
	begin_report();
	status = vidmm_adapter_start(host, &options, &adapter);
	if (!vmm_ok(status)) {
		vidmm_host_destroy(host); /* joins the threads of the driver, which have ended */
		return failed(status,
			      "the adapter on %s was refused (`vidmm caps` says why; VIDMM_DEBUG=1 "
			      "prints it here)",
			      setting.driver);
	}
	status = vidmm_process_open(host, program_invocation_short_name, &process);
	if (vmm_ok(status))
		return VMM_OK;
	vidmm_adapter_stop(adapter);
	vidmm_host_destroy(host);
	return failed(status, "no process can be opened");
}

static vmm_status start(void)
{
	const char *value = secure_getenv(VMM_PROGRAM_VARIABLE);

	if (!value || !vmm_program_parse(value, &setting))
		return failed(VMM_INVALID_PARAMETER, VMM_PROGRAM_VARIABLE "=%.128s: %s",
			      value ? value : "", setting.why);
	vmm_status status = start_adapter();

	if (!vmm_ok(status))
		return status;
	if (writer.report) {
		vmm_report_process(writer.report, writer.owner, vidmm_process_id(process),
				   program_invocation_short_name);
		row = vmm_report_adapter(writer.report, writer.owner);
		atomic_store(&writer.changed, 1);
		sample();
	}
	vidmm_d3dkmt_attach(process);
	atomic_store(&running, true);
	return VMM_OK;
}

/* ---- what the D3DKMT functions call ---- */

static vmm_status attach(void);
static void ended(void);
static const struct vmm_kmt_provider provider = {attach, ended};

/*
 * A child of fork() has none of the threads of the adapter. Its calls fail; the program that it
 * executes may start an adapter again.
 */
static void in_child(void)
{
	atomic_store(&forked, true);
	if (!atomic_exchange(&running, false))
		return;
	vidmm_d3dkmt_attach(NULL);
	vmm_kmt_route_provide(&provider);
}

static vmm_status attach(void)
{
	if (atomic_load(&forked))
		return failed(VMM_DEVICE_REMOVED,
			      "a child of fork() cannot use the adapter of its parent: it can "
			      "execute a program, or `vidmm run --serve` can serve both");
	pthread_mutex_lock(&start_mutex);
	if (!tried) {
		tried = true;
		(void)pthread_atfork(NULL, NULL, in_child);
		result = start();
	}
	pthread_mutex_unlock(&start_mutex);
	return result;
}

static void ended(void)
{
	if (atomic_load(&running) && atomic_load(&writer.changed))
		sample();
}

__attribute__((constructor)) static void read_environment(void)
{
	if (secure_getenv(VMM_PROGRAM_VARIABLE))
		vmm_kmt_route_provide(&provider);
}

/*
 * The last sample. While a call is in progress, its thread may hold the locks that a sample needs,
 * and exit() may have been called by a signal handler of that thread.
 */
__attribute__((destructor)) static void at_exit(void)
{
	if (vmm_kmt_route_idle())
		ended();
}
