/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "client.h"

void remote_end(int code)
{
	fflush(NULL);
	/* ThreadSanitizer would have every thread joined first. */
	syscall(SYS_exit_group, code);
	abort();
}

void remote_failed(const char *what, HRESULT status)
{
	if (status == D3DDDIERR_DEVICEREMOVED || status == (HRESULT)STATUS_DEVICE_REMOVED)
		remote_end(REMOTE_REMOVED);
	fprintf(stderr, "# client %d: %s: 0x%08" PRIx32 "\n", (int)getpid(), what,
		(uint32_t)status);
	remote_end(1);
}

void remote_open(struct remote_device *d, const char *socket, const char *name, uint32_t adapter)
{
	vidmm_status status = vidmm_connect(socket, name, &d->connection);

	if (status == (vidmm_status)STATUS_INSUFFICIENT_RESOURCES)
		remote_end(REMOTE_REFUSED);
	if (status >= 0)
		status = vidmm_remote_device_create(d->connection, adapter, &d->remote);
	if (status < 0)
		remote_failed("a device", status);
	d->client.kind = VIDMM_HOST_LINUX;
	d->client.racing = true;
	d->device = (struct client_device){.client = &d->client,
					   .cb = vidmm_remote_device_callbacks(d->remote),
					   .handle = vidmm_remote_device_handle(d->remote)};
}

void remote_close(struct remote_device *d)
{
	vidmm_remote_device_destroy(d->remote);
	vidmm_disconnect(d->connection);
}

void remote_say(void)
{
	/* The output may have no reader. */
	if (write(1, ".", 1) != 1 && errno != EAGAIN)
		remote_end(REMOTE_DONE);
}

bool remote_told_to_end(void)
{
	struct pollfd in = {.fd = 0, .events = POLLIN};

	return poll(&in, 1, 0) == 1;
}

void remote_wait_for_end(void)
{
	struct pollfd in = {.fd = 0, .events = POLLIN};

	while (poll(&in, 1, -1) != 1)
		;
}

int main(int count, char **arguments)
{
	static const struct {
		const char *name;
		int (*run)(const char *socket, const char *argument);
	} modes[] = {{"load", remote_load},
		     {"hoard", remote_hoard},
		     {"exhaust", remote_exhaust},
		     {"hold", remote_hold},
		     {"protected", remote_protected},
		     {"fences", remote_fences},
		     {"wait", remote_wait_fence},
		     {"cycle", remote_cycle},
		     {"relatives", remote_relatives},
		     {"inherit", remote_inherit},
		     {"asleep", remote_asleep},
		     {"heir", remote_heir},
		     {"grab-shared", remote_grab_shared},
		     {"grab-existing", remote_grab_existing},
		     {"grab-sockets", remote_grab_sockets},
		     {"grab-threads", remote_grab_threads}};

	for (size_t i = 0; count == 4 && i < sizeof(modes) / sizeof(modes[0]); i++)
		if (!strcmp(modes[i].name, arguments[1]))
			return modes[i].run(arguments[2], arguments[3]);
	fprintf(stderr, "usage: out_of_process_client MODE SOCKET ARGUMENT\n");
	return 2;
}
