/* SPDX-License-Identifier: MIT */
/*
 * Hostile clients whose single messages are well-formed: memory that changes between two reads of
 * the host, and operations that block when the host closes, writes or waits. No other client is
 * affected.
 */
#include "raw_client.h"

#include <netinet/in.h>
#include <sched.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* ---- two channels of one client ---- */

static D3DKMT_HANDLE device_on(struct raw *raw, uint32_t which)
{
	D3DKMT_ADAPTERINFO info[2] = {0};
	D3DKMT_ENUMADAPTERS2 all = {.NumAdapters = 2, .pAdapters = info};

	assert_int_equal(raw_call(raw, "D3DKMTEnumAdapters2", &all), STATUS_SUCCESS);
	assert_int_equal(all.NumAdapters, 2);
	D3DKMT_CREATEDEVICE args = {.hAdapter = info[which].hAdapter};
	assert_int_equal(raw_call(raw, "D3DKMTCreateDevice", &args), STATUS_SUCCESS);
	return args.hDevice;
}

static NTSTATUS make_fence(struct raw *raw, int channel, D3DKMT_HANDLE device, D3DKMT_HANDLE *fence)
{
	D3DKMT_CREATESYNCHRONIZATIONOBJECT2 create = {.hDevice = device,
						      .Info = {.Type = D3DDDI_FENCE}};
	NTSTATUS status = raw_call_on(raw, channel, "D3DKMTCreateSynchronizationObject2", &create);

	*fence = create.hSyncObject;
	return status;
}

static void set_power(struct vidmm_adapter *adapter, uint32_t state)
{
	assert_int_equal(vidmm_adapter_set_power(adapter, state, VIDMM_SLEEP_STANDBY), 0);
}

/*
 * The type of the first object decides how the union of a call is read. While the call waits for
 * power, another channel creates an object with that handle. The number in the union must not
 * become an address. (SYN-32)
 */
static void syn_32_a_union_keeps_the_meaning_it_had_when_it_was_decoded(void **state)
{
	struct vidmm_adapter *second;
	struct client_context c;
	struct served served;
	struct raw raw;
	D3DKMT_HANDLE fence, later;
	int32_t status;

	(void)state;
	served_start(&served, NULL, 0);
	const uint64_t bar = 4 * MIB;
	const struct vidmm_registry_value aperture = {"ApertureSize", 4 * MIB};
	const struct vidmm_adapter_options options = {.struct_size = sizeof(options),
						      .driver_entry = softgpu_driver_entry,
						      .bar_sizes = &bar,
						      .bar_count = 1,
						      .registry = &aperture,
						      .registry_count = 1,
						      .tdr = &client_no_tdr};
	assert_int_equal(vidmm_adapter_start(served.client.host, &options, &second), 0);
	raw_open(&raw, &served, "quick");
	int channel = raw_join(&raw, &status);
	raw_context(&raw, device_on(&raw, 0), &c);
	D3DKMT_HANDLE device = device_on(&raw, 1);
	assert_int_equal(make_fence(&raw, channel, device, &fence), STATUS_SUCCESS);

	set_power(served.client.adapter, VIDMM_POWER_D3);
	later = fence + 0x40; /* the handle that the next object gets (HND-03) */
	D3DKMT_SIGNALSYNCHRONIZATIONOBJECTFROMGPU signal = {
		.hContext = (D3DKMT_HANDLE)(uintptr_t)c.c.hContext,
		.ObjectCount = 1,
		.ObjectHandleArray = &later,
		.MonitoredFenceValueArray = (const UINT64 *)(uintptr_t)0xDEAD0000BEEF0000};
	raw_ask(&raw, raw.channel, "D3DKMTSignalSynchronizationObjectFromGpu", &signal);
	served_await_inside(&served, 1);
	assert_int_equal(make_fence(&raw, channel, device, &fence), STATUS_SUCCESS);
	assert_int_equal(fence, later);
	set_power(served.client.adapter, VIDMM_POWER_D0);
	assert_int_equal(raw_await(raw.channel),
			 STATUS_SUCCESS); /* the union was read as a number */
	raw_disconnect(&raw);
	close(channel);
	served_await_clients(&served, 0);
	vidmm_adapter_stop(second);
	served_stop(&served);
}

/* ---- descriptors whose close blocks ---- */

/*
 * Returns a connection whose last close blocks until the peer has read everything or has
 * disconnected. Returns -1 if there is no network.
 */
static int lingering(int *peer)
{
	const struct linger hour = {.l_onoff = 1, .l_linger = 3600};
	struct sockaddr_in here = {.sin_family = AF_INET,
				   .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t length = sizeof(here);
	static const char bytes[65536];
	int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (bind(listener, (struct sockaddr *)&here, sizeof(here)) || listen(listener, 1) ||
	    getsockname(listener, (struct sockaddr *)&here, &length) ||
	    connect(fd, (struct sockaddr *)&here, sizeof(here))) {
		close(listener);
		close(fd);
		return -1;
	}
	*peer = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
	close(listener);
	assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_LINGER, &hour, sizeof(hour)), 0);
	while (send(fd, bytes, sizeof(bytes), MSG_DONTWAIT) > 0)
		;
	return fd;
}

/*
 * More such connections than threads that close descriptors: in messages that are refused, and in
 * messages that are never read.
 */
static void descriptors_whose_close_blocks_delay_no_other_client(void **state)
{
	enum { STRANGERS = 6 };
	const uint32_t nonsense[4] = {1, 2, 3, 4};
	int peers[STRANGERS], ends[STRANGERS][2];
	struct served served;
	struct raw witness, other;

	(void)state;
	served_start(&served, NULL, 0);
	raw_open(&witness, &served, "witness");
	D3DKMT_HANDLE device = raw_device(&witness);
	uint32_t lines = served.lines;
	for (uint32_t i = 0; i < STRANGERS; i++) {
		int fd = lingering(&peers[i]);

		if (fd < 0) {
			print_message("there is no network to linger in\n");
			skip();
		}
		assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends[i]), 0);
		for (uint32_t k = 0; k < 1 + i % 2; k++)
			assert_true(
				raw_send(ends[i][0], nonsense, sizeof(nonsense), NULL, 0, &fd, 1));
		close(fd); /* the host has the last reference */
		assert_int_equal(vidmm_server_connect(served.server, ends[i][1]), 0);
		served_await_lines(&served, lines + i + 1); /* the message is refused */
	}
	(void)raw_allocate(&witness, device, 64 * KIB);
	raw_open(&other, &served, "other");
	(void)raw_device(&other);
	raw_disconnect(&other);
	raw_disconnect(&witness);
	served_await_clients(&served, 0);
	for (uint32_t i = 0; i < STRANGERS; i++) {
		close(peers[i]); /* the blocked close ends because its peer has disconnected */
		close(ends[i][0]);
	}
	served_stop(&served);
}

/* ---- descriptors that are never read ---- */

/*
 * Unread descriptors would count against the limit of descriptors in flight of the host's user,
 * which all clients share.
 */
static void a_client_that_never_reads_descriptors_is_disconnected(void **state)
{
	struct served served;
	struct raw raw, other;

	(void)state;
	served_start(&served, NULL, 0);
	raw_open(&other, &served, "other");
	raw_open(&raw, &served, "hoards");
	D3DKMT_HANDLE device = raw_device(&raw);
	D3DKMT_CREATESYNCHRONIZATIONOBJECT2 create = {
		.hDevice = device,
		.Info = {.Type = D3DDDI_FENCE, .Flags = {.Shared = 1, .NtSecuritySharing = 1}}};
	assert_int_equal(raw_call(&raw, "D3DKMTCreateSynchronizationObject2", &create),
			 STATUS_SUCCESS);
	HANDLE handle = NULL;
	const D3DKMT_SHAREOBJECTS share = {.ObjectCount = 1,
					   .DesiredAccess = 0x20000,
					   .ObjectHandleArray = &create.hSyncObject,
					   .pSharedNtHandle = &handle};
	raw_ask(&raw, raw.channel, "D3DKMTShareObjects", &share);
	raw_ask(&raw, raw.channel, "D3DKMTShareObjects", &share);
	served_await(&served, "is cut off: it sent a request before it had read the last answer");
	served_await_clients(&served, 1);
	(void)raw_device(&other);
	raw_close(&raw);
	raw_disconnect(&other);
	served_stop(&served);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(syn_32_a_union_keeps_the_meaning_it_had_when_it_was_decoded),
		cmocka_unit_test(descriptors_whose_close_blocks_delay_no_other_client),
		cmocka_unit_test(a_client_that_never_reads_descriptors_is_disconnected),
	};

	return cmocka_run_group_tests_name("serve: hostile", tests, NULL, NULL);
}
