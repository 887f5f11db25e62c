/* SPDX-License-Identifier: MIT */
/*
 * fuzz_wire [SECONDS [SEED]]: encodes random arguments of every D3DKMT function, device callback
 * and call of the runtime, and decodes them as host and client do. The host gets the client's
 * argument, and the host's results arrive where the client's pointers point. Then bytes of the
 * request are changed, cut or added: the host refuses it, or every remaining pointer has its bytes
 * inside the request. A changed answer writes nothing outside of the client's memory. Blocks have
 * their exact size, so a sanitizer detects each byte beyond.
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "draw.h"

#define FIXED_ROUNDS 60u /* of all functions */
#define MUTANTS      40u

struct fuzz {
	struct draw draw;
	uint64_t refused, taken;
	uint8_t *argument;
	const char *wrong;
};

static void check(struct fuzz *f, bool condition, const char *what)
{
	if (!condition && !f->wrong)
		f->wrong = what;
}

/* ---- the host's argument ---- */

struct host {
	struct fuzz *f;
	const struct vmm_wire_call *call;
	bool write; /* results that a function might write */
	uint64_t sum;
};

static void look_at_record(struct host *h, const struct vmm_wire_record *record, uint8_t *memory);

static void look_at_array(struct host *h, const struct vmm_wire_member *member, uint8_t *record)
{
	uint8_t *memory = (uint8_t *)(uintptr_t)draw_get(record, member->at, 8);
	uint64_t count = draw_elements(member, record), bytes = count * member->unit;
	const uint8_t *begin = h->call->request.data, *end = begin + h->call->request.length;

	/* A list longer than any function reads is still encoded. */
	if (!memory || (member->non_null && count > member->limit))
		return;
	bool inside = count <= member->limit && memory >= begin && memory <= end &&
		      bytes <= (uint64_t)(end - memory);
	check(h->f, inside, "a pointer has its bytes in the request");
	if (!inside)
		return;
	for (uint64_t i = 0; member->record && i < count; i++)
		look_at_record(h, member->record, memory + i * member->unit);
	for (uint64_t i = 0; i < bytes && !member->record; i++) {
		h->sum += memory[i];
		if (h->write && member->returned)
			memory[i] ^= 0x5A;
	}
}

static void look_at_record(struct host *h, const struct vmm_wire_record *record, uint8_t *memory)
{
	for (uint32_t i = 0; i < record->count; i++)
		if (record->members[i].kind == VMM_WIRE_ARRAY &&
		    draw_applies(&record->members[i], memory))
			look_at_array(h, &record->members[i], memory);
}

static vmm_status receive(struct fuzz *f, struct vmm_wire_call *host,
			  const struct vmm_wire_call *client, const uint8_t *data, uint32_t length)
{
	struct vmm_wire_bytes bytes = {
		.data = malloc(length ? length : 1), .length = length, .capacity = length};

	if (!bytes.data)
		abort();
	memcpy(bytes.data, data, length);
	memcpy(host->descriptors, client->descriptors, sizeof(host->descriptors));
	host->descriptor_count = client->descriptor_count;
	vmm_status status = vmm_wire_read_request(host, client->operation, &bytes);
	check(f, !bytes.data, "the bytes are the call's");
	return status;
}

/* ---- mutants ---- */

static void mutate(struct fuzz *f, uint8_t *data, uint32_t *length, uint32_t room)
{
	for (uint32_t i = draw_below(&f->draw, 4); i < 4; i++) {
		uint32_t at = draw_below(&f->draw, *length);

		switch (draw_below(&f->draw, 6)) {
		case 0:
			data[at] ^= (uint8_t)(1u << draw_below(&f->draw, 8));
			break;
		case 1: /* a slot, a count, a condition */
			draw_set(data, (at & ~7u), draw_below(&f->draw, 4), 4);
			break;
		case 2:
			draw_set(data, (at & ~7u), UINT64_MAX >> draw_below(&f->draw, 64),
				 *length - (at & ~7u) < 8 ? 1 : 8);
			break;
		case 3:
			*length = at ? at : 1;
			break;
		case 4:
			*length = *length + draw_below(&f->draw, room - *length + 1);
			break;
		default:
			data[at] = (uint8_t)draw_below(&f->draw, 256);
			break;
		}
	}
}

static void bad_requests(struct fuzz *f, const struct vmm_wire_call *client)
{
	uint32_t room = client->request.length + 64;
	uint8_t *data = malloc(room);

	if (!data)
		abort();
	for (uint32_t i = 0; i < MUTANTS && !f->wrong; i++) {
		struct vmm_wire_call host = {.values = draw_values_of};
		struct host h = {.f = f, .call = &host};
		uint32_t length = client->request.length;

		memset(data, 0, room);
		memcpy(data, client->request.data, length);
		mutate(f, data, &length, room);
		if (vmm_ok(receive(f, &host, client, data, length))) {
			look_at_record(&h, client->operation->argument, host.request.data);
			f->taken++;
		} else {
			f->refused++;
		}
		vmm_wire_finish(&host);
	}
	free(data);
}

static void bad_answers(struct fuzz *f, struct vmm_wire_call *client,
			const struct vmm_wire_bytes *answer)
{
	uint32_t room = answer->length + 64;
	uint8_t *data = calloc(1, room);

	if (!data)
		abort();
	for (uint32_t i = 0; i < 4; i++) {
		uint32_t length = answer->length + !answer->length;

		if (answer->length)
			memcpy(data, answer->data, answer->length);
		mutate(f, data, &length, room);
		uint8_t *exact = malloc(length);
		if (!exact)
			abort();
		memcpy(exact, data, length);
		/*
		 * Whether the answer is accepted or not, only memory of the client is written; a
		 * sanitizer detects anything else.
		 */
		vmm_status status = vmm_wire_read_answer(client, exact, length, f->argument);
		f->refused += !vmm_ok(status);
		free(exact);
	}
	free(data);
}

/* ---- one round ---- */

/* Compares arrays of bytes only: records contain pointers, which differ on the two sides. */
static bool is_plain(const struct vmm_wire_call *call, const struct vmm_wire_span *span)
{
	const struct vmm_wire_record *argument = call->operation->argument;

	for (uint32_t i = 0; i < argument->count; i++)
		if (argument->members[i].at == span->slot && argument->members[i].record)
			return false;
	for (uint32_t i = 0; i < call->count; i++)
		if (call->spans[i].slot - span->at < span->bytes)
			return false;
	return true;
}

static void same_on_both_sides(struct fuzz *f, const struct vmm_wire_call *client,
			       const struct vmm_wire_call *host)
{
	check(f, client->count == host->count, "both know the same pointers");
	for (uint32_t i = 0; i < client->count && !f->wrong; i++) {
		const struct vmm_wire_span *ours = &client->spans[i], *theirs = &host->spans[i];

		if (is_plain(client, ours))
			check(f,
			      ours->bytes == theirs->bytes &&
				      !memcmp(ours->memory, host->request.data + theirs->at,
					      ours->bytes),
			      "what the host has in the end, the client has");
	}
}

static void trip(struct fuzz *f, struct vmm_wire_call *client)
{
	struct vmm_wire_call host = {.values = draw_values_of};
	struct vmm_wire_bytes answer = {0};
	struct host h = {.f = f, .call = &host, .write = true};
	uint32_t bytes = vmm_wire_argument_bytes(client->operation);
	uint8_t *before = malloc(bytes);

	if (!before)
		abort();
	memcpy(before, f->argument, bytes);
	check(f, vmm_ok(receive(f, &host, client, client->request.data, client->request.length)),
	      "a request is taken");
	if (!f->wrong) {
		look_at_record(&h, client->operation->argument, vmm_wire_argument(&host));
		check(f, vmm_ok(vmm_wire_make_answer(&host, &answer)), "there is an answer");
		memcpy(client->descriptors, host.descriptors, sizeof(host.descriptors));
		client->descriptor_count = host.descriptor_count;
		check(f,
		      vmm_ok(vmm_wire_read_answer(client, answer.data, answer.length, f->argument)),
		      "the answer is taken");
		check(f, !memcmp(before, f->argument, bytes),
		      "members that no thread wrote are unchanged, pointers first of all");
		same_on_both_sides(f, client, &host);
		bad_answers(f, client, &answer);
	}
	free(before);
	vmm_free(answer.data);
	vmm_wire_finish(&host);
}

static void round_of(struct fuzz *f, const struct vmm_wire_operation *operation)
{
	struct vmm_wire_call client = {.values = draw_values_of};
	uint32_t bytes = vmm_wire_argument_bytes(operation);

	if (!bytes)
		return; /* the argument has no part that is sent */
	f->argument = draw_block(&f->draw, bytes);
	draw_record(&f->draw, operation->argument, f->argument);
	check(f, vmm_ok(vmm_wire_make_request(&client, operation, f->argument)),
	      "a request can be made");
	if (!f->wrong)
		bad_requests(f, &client);
	if (!f->wrong)
		trip(f, &client);
	if (f->wrong)
		printf("# %s: not true: %s\n", operation->name, f->wrong);
	vmm_wire_finish(&client);
	draw_forget(&f->draw);
}

int main(int count, char **arguments)
{
	time_t end = count > 1 ? time(NULL) + strtol(arguments[1], NULL, 0) : 0;
	struct fuzz f = {.draw.seed = count > 2 ? strtoull(arguments[2], NULL, 0) : 1};
	uint64_t rounds = 0;

	printf("1..1\n");
	for (; !f.wrong && (count > 1 ? time(NULL) < end : rounds < FIXED_ROUNDS); rounds++)
		for (uint32_t i = 0; i < vmm_wire_operation_count && !f.wrong; i++)
			round_of(&f, &vmm_wire_operations[i]);
	printf("%s 1 - %llu rounds of %u functions, %llu bad ones refused, "
	       "%llu taken for what they say\n",
	       f.wrong ? "not ok" : "ok", (unsigned long long)rounds, vmm_wire_operation_count,
	       (unsigned long long)f.refused, (unsigned long long)f.taken);
	return f.wrong ? 1 : 0;
}
