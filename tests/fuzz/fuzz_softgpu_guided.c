/* SPDX-License-Identifier: MIT */
/*
 * guided_softgpu: command buffers of softgpu, guided by coverage. An input is the bytes of a buffer
 * that a client submits with four allocations. Whatever the bytes are, no byte of another process's
 * allocation changes, and the adapter goes on. A buffer that never completes ends by a timeout and
 * a reset, in which all devices are lost (TDR-07); the next input gets new ones.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <support/client.h>

#include "guided.h"

#define ALLOCATIONS   4u
#define BYTES         (16u << 10)
#define WITNESS_BYTES (64u << 10)
#define PATTERN       0x5EED0000u
/* The sixth reset in a minute would be the adapter's end. (TDR-13) */
#define MINUTE_NS     61000000000u

static struct client client;
static struct client_device witness, device;
static struct client_context context;
static D3DKMT_HANDLE seen, allocation[ALLOCATIONS];

static void open_device(void)
{
	client_open(&client, &device);
	client_context(&device, 0, &context);
	for (uint32_t i = 0; i < ALLOCATIONS; i++)
		allocation[i] =
			client_allocate(&device, BYTES, i % 2 ? SOFTGPU_ALLOCATION_CPU_VISIBLE : 0);
}

static void open_witness(void)
{
	client_open(&client, &witness);
	seen = client_allocate(&witness, WITNESS_BYTES, SOFTGPU_ALLOCATION_CPU_VISIBLE);
	client_write(&witness, seen, WITNESS_BYTES, PATTERN);
}

static void begin(void)
{
	const struct client_options options = {.kind = VIDMM_HOST_SIM, .seed = 1};

	client_start(&client, &options);
	open_witness();
	open_device();
}

static void end(void)
{
	client_close(&device);
	client_close(&witness);
	client_stop(&client);
}

/* Returns whether the device was lost. */
static bool submit(const uint8_t *data, size_t size)
{
	uint32_t bytes =
		size < context.c.CommandBufferSize ? (uint32_t)size : context.c.CommandBufferSize;
	D3DKMT_HANDLE first = allocation[1];
	void *words;

	memcpy(context.c.pCommandBuffer, data, bytes);
	context.command_bytes = bytes;
	for (uint32_t i = 0; i < ALLOCATIONS; i++)
		(void)client_use(&context, allocation[i], i < 2);
	(void)client_try_submit(&context);
	client_idle(&client);
	HRESULT result = client_try_lock(&device, &first, 0, &words);
	if (result == S_OK)
		assert_int_equal(client_unlock(&device, first), S_OK);
	return result != S_OK;
}

/* Was the adapter reset? The witness has lost its device then. */
static bool check_witness(void)
{
	void *words;

	if (client_try_lock(&witness, &seen, 0, &words) != S_OK)
		return false;
	assert_int_equal(client_unlock(&witness, seen), S_OK);
	client_expect(&witness, seen, WITNESS_BYTES, PATTERN);
	return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static uint32_t inputs;

	if (!inputs++) {
		begin();
		(void)atexit(end);
	}
	bool lost = submit(data, size);

	if (client.fatals) {
		fprintf(stderr, "not true: the adapter goes on\n");
		abort();
	}
	vidmm_adapter_check(client.adapter);
	if (!check_witness()) {
		client_close(&witness);
		open_witness();
		vidmm_sleep_until_ns(client.host, vidmm_now_ns(client.host) + MINUTE_NS);
	}
	if (lost || inputs % 64 == 0) {
		client_close(&device);
		open_device();
	}
	client_forget(&client);
	return 0;
}
