/* SPDX-License-Identifier: MIT */
/*
 * out_of_process_host SOCKET VRAM-KIB APERTURE-KIB: serves softgpu and, as second adapter, a
 * miniport of WDDM 3.0. It writes a byte to its standard output when it listens. On input "w" it
 * answers with a byte when no client is connected and no object of any client is left. On "m" it
 * waits for the same, and answers with eight bytes: how much it has from its allocator. At the end
 * of its input it ends with 0 if no client and no object is left; else it says why and ends with 1.
 */
#include <dirent.h>
#include <inttypes.h>
#include <malloc.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include <support/folder.h>
#include <support/scripted_miniport.h>
#include <vidmm/serve.h>
#include <vidmm/softgpu.h>

#include "remote.h"

static struct {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	uint64_t findings;
	char finding[256];
} seen = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* A client or an object has gone: threads that wait check again. */
static void on_event(void *context, const struct vidmm_event *event, const char *text)
{
	(void)context;
	pthread_mutex_lock(&seen.lock);
	if (event->type == VIDMM_EVENT_FINDING && getenv("REMOTE_LOG"))
		fprintf(stderr, "# host: %s\n", text ? text : "a finding");
	if (event->type == VIDMM_EVENT_FATAL) {
		seen.findings++;
		snprintf(seen.finding, sizeof(seen.finding), "%s", text ? text : "a bug check");
	}
	pthread_cond_broadcast(&seen.changed);
	pthread_mutex_unlock(&seen.lock);
}

static void on_line(void *context, const char *line)
{
	(void)context;
	if (getenv("REMOTE_LOG"))
		fprintf(stderr, "# host: %s\n", line);
	pthread_mutex_lock(&seen.lock);
	pthread_cond_broadcast(&seen.changed);
	pthread_mutex_unlock(&seen.lock);
}

/* Explains a failure to the reader of the log. */
static void show_descriptors(void)
{
	char path[300], target[128];
	struct dirent *entry;
	DIR *folder = opendir("/proc/self/fd");

	while (folder && (entry = readdir(folder))) {
		snprintf(path, sizeof(path), "/proc/self/fd/%s", entry->d_name);
		ssize_t length = readlink(path, target, sizeof(target) - 1);
		if (length > 0)
			fprintf(stderr, "# host:   %s %.*s\n", entry->d_name, (int)length, target);
	}
	if (folder)
		closedir(folder);
}

static uint64_t count_allocations(struct vidmm_adapter *adapter)
{
	struct vidmm_adapter_statistics statistics = {.struct_size = sizeof(statistics)};

	vidmm_adapter_statistics(adapter, &statistics);
	return statistics.allocations;
}

/*
 * The end of a process has events, of its allocations and others; the second is for the last of it.
 */
static void settle(struct vidmm_server *server, struct vidmm_adapter *adapter)
{
	pthread_mutex_lock(&seen.lock);
	for (;;) {
		struct timespec until;

		pthread_mutex_unlock(&seen.lock);
		bool left = vidmm_server_clients(server, NULL, 0) || count_allocations(adapter);
		pthread_mutex_lock(&seen.lock);
		if (!left)
			break;
		clock_gettime(CLOCK_REALTIME, &until);
		until.tv_sec++;
		pthread_cond_timedwait(&seen.changed, &seen.lock, &until);
	}
	pthread_mutex_unlock(&seen.lock);
}

static int listen_at(const char *path)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	snprintf(address.sun_path, sizeof(address.sun_path), "%s", path);
	if (fd < 0 || bind(fd, (struct sockaddr *)&address, sizeof(address)) || listen(fd, 64)) {
		perror(path);
		exit(2);
	}
	return fd;
}

static void must(vidmm_status status, const char *what)
{
	if (status >= 0)
		return;
	fprintf(stderr, "# host: %s: 0x%08" PRIx32 "\n", what, (uint32_t)status);
	exit(2);
}

/* A thread that has ended and was joined is still counted for a moment, at first too. */
static uint32_t count_threads(uint32_t expected)
{
	struct timespec now, begin;
	uint32_t count;

	clock_gettime(CLOCK_MONOTONIC, &begin);
	do {
		count = folder_count("/proc/self/task");
		sched_yield();
		clock_gettime(CLOCK_MONOTONIC, &now);
	} while (count > expected && now.tv_sec - begin.tv_sec < HANG_S);
	return count;
}

static int check(struct vidmm_adapter *adapter, uint32_t descriptors, uint32_t threads)
{
	uint64_t allocations = count_allocations(adapter);
	uint32_t now = folder_count("/proc/self/fd"), now_threads = count_threads(threads);

	vidmm_adapter_check(adapter);
	if (allocations)
		fprintf(stderr, "# host: %" PRIu64 " allocations are left\n", allocations);
	if (now != descriptors) {
		fprintf(stderr, "# host: %u descriptors, at first %u\n", now, descriptors);
		show_descriptors();
	}
	if (now_threads > threads)
		fprintf(stderr, "# host: %u threads, at first %u\n", now_threads, threads);
	if (seen.findings)
		fprintf(stderr, "# host: %" PRIu64 " fatal: %s\n", seen.findings, seen.finding);
	return allocations || now != descriptors || now_threads > threads || seen.findings;
}

/* Level 0: a machine that stalls threads for seconds causes no timeout. */
static const struct vidmm_tdr_options no_timeouts = {0, 2000, 5000, 60000, 5, 2};

/* The second adapter has the synchronization objects that softgpu's version lacks. */
static struct vidmm_adapter *start_second(struct vidmm_host *host, struct scripted_miniport *m)
{
	const uint64_t bar = SCRIPTED_BAR_BYTES;
	struct vidmm_adapter_options options = {.struct_size = sizeof(options),
						.initialization_data = scripted_table(m),
						.bar_sizes = &bar,
						.bar_count = 1,
						.tdr = &no_timeouts};
	struct vidmm_adapter *adapter;

	must(vidmm_adapter_start(host, &options, &adapter), "the second adapter");
	return adapter;
}

static int32_t never_called(void *umd_device, const struct D3DDDIARG_TRIMRESIDENCYSET *args)
{
	(void)umd_device;
	(void)args;
	return 0;
}

/* The adapter's thread for trim callbacks stays from the first registration on. */
static void want_trims(struct vidmm_host *host, struct vidmm_adapter *adapter)
{
	struct vidmm_process *process;
	struct vidmm_device *device;

	must(vidmm_process_open(host, "the host's own", &process), "a process");
	must(vidmm_device_create(process, adapter, &device), "a device");
	must(vidmm_device_set_trim(device, NULL, never_called), "a function for trims");
	vidmm_device_destroy(device);
	vidmm_process_close(process);
}

/* Returns the allocated bytes; memory that the allocator retains does not count. */
static void say_memory(void)
{
	uint64_t bytes = mallinfo2().uordblks;

	(void)!write(1, &bytes, sizeof(bytes));
}

static void answer(struct vidmm_server *server, struct vidmm_adapter *adapter)
{
	char command;

	(void)!write(1, ".", 1);
	while (read(0, &command, 1) == 1) {
		settle(server, adapter);
		if (command == 'm')
			say_memory();
		else
			(void)!write(1, ".", 1);
	}
}

int main(int count, char **arguments)
{
	struct vidmm_host_options host_options = {.struct_size = sizeof(host_options),
						  .kind = VIDMM_HOST_LINUX};
	struct vidmm_server_options options = {.struct_size = sizeof(options), .log = on_line};
	struct vidmm_host *host;
	struct vidmm_adapter *adapter;
	struct vidmm_server *server;

	if (count != 4)
		return 2;
	/* As `vidmm serve`: a client may have a quarter as many handles as the host descriptors. */
	struct rlimit files;
	if (!getrlimit(RLIMIT_NOFILE, &files) && files.rlim_cur / 4 < 1000000)
		options.limits.handles = (uint32_t)(files.rlim_cur / 4);
	const uint64_t bar = strtoull(arguments[2], NULL, 0) << 10;
	const struct vidmm_registry_value aperture = {"ApertureSize",
						      strtoull(arguments[3], NULL, 0) << 10};
	struct vidmm_adapter_options adapter_options = {.struct_size = sizeof(adapter_options),
							.driver_entry = softgpu_driver_entry,
							.bar_sizes = &bar,
							.bar_count = 1,
							.registry = &aperture,
							.registry_count = 1,
							.tdr = &no_timeouts};

	pthread_cond_init(&seen.changed, NULL);
	must(vidmm_host_create(&host_options, &host), "a host");
	(void)vidmm_subscribe(host,
			      (uint64_t)1 << VIDMM_EVENT_FATAL |
				      (uint64_t)1 << VIDMM_EVENT_FINDING |
				      (uint64_t)1 << VIDMM_EVENT_DESTROY,
			      on_event, NULL);
	must(vidmm_adapter_start(host, &adapter_options, &adapter), "softgpu");
	struct scripted_miniport *scripted = scripted_create();
	scripted_set_version(scripted, DXGKDDI_INTERFACE_VERSION_WDDM3_0);
	scripted->settings.caps.WDDMVersion = DXGKDDI_WDDMv2;
	scripted->settings.segment[0].flags |= (DXGK_SEGMENTFLAGS){.LocalBudgetGroup = 1}.Value;
	struct vidmm_adapter *second = start_second(host, scripted);
	want_trims(host, second);
	/* Resources that a host keeps from its first server on. */
	must(vidmm_server_create(host, &options, &server), "a server that no client connects to");
	vidmm_server_destroy(server);
	uint32_t descriptors = folder_count("/proc/self/fd"),
		 threads = folder_count("/proc/self/task");
	must(vidmm_server_create(host, &options, &server), "a server");
	must(vidmm_server_listen(server, listen_at(arguments[1])), "listening");
	answer(server, adapter);
	vidmm_server_destroy(server);
	int wrong = check(adapter, descriptors, threads);
	vidmm_adapter_stop(second);
	scripted_destroy(scripted);
	vidmm_adapter_stop(adapter);
	vidmm_host_destroy(host);
	return wrong;
}
