/* SPDX-License-Identifier: MIT */
/*
 * For comparison, if it is installed: Mesa's software Vulkan (lavapipe), through the function
 * pointers of the device. vkMapMemory and vkUnmapMemory only return an existing pointer and update
 * nothing that other threads see: this is the cost of two calls and not a goal. Timeline
 * semaphores: a signal without waiters, a satisfied wait, and two threads that wake each other. The
 * loader is opened at run time, and only the needed part of its interface is declared.
 */
#include "bench.h"

#include <dlfcn.h>
#include <linux/futex.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

typedef uint64_t memory_handle;
typedef void *(*get_proc_fn)(void *object, const char *name);

enum {
	STRUCTURE_INSTANCE = 1,
	STRUCTURE_QUEUE = 2,
	STRUCTURE_DEVICE = 3,
	STRUCTURE_ALLOCATE = 5,
	STRUCTURE_SEMAPHORE = 9,
	STRUCTURE_TIMELINE_FEATURES = 1000207000,
	STRUCTURE_SEMAPHORE_TYPE = 1000207002,
	STRUCTURE_WAIT = 1000207004,
	STRUCTURE_SIGNAL = 1000207005,
	TIMELINE = 1,
	API_1_2 = 1 << 22 | 2 << 12,
	DEVICE_TYPE_CPU = 4,
	MEMORY_HOST_VISIBLE = 2,
	TYPES_MAX = 32,
	DEVICES_MAX = 8,
	SIZE_BYTES = 65536,
	ROUNDS_A_STEP = 16
};
enum { MINE, PARTNERS, SIDES };
enum { THE_END = UINT32_MAX };

struct application_info {
	int type;
	const void *next;
	const char *name;
	uint32_t version;
	const char *engine;
	uint32_t engine_version, api_version;
};

struct instance_info {
	int type;
	const void *next;
	uint32_t flags;
	const struct application_info *application;
	uint32_t layer_count;
	const char *const *layers;
	uint32_t extension_count;
	const char *const *extensions;
};

struct queue_info {
	int type;
	const void *next;
	uint32_t flags, family, count;
	const float *priorities;
};

struct device_info {
	int type;
	const void *next;
	uint32_t flags, queue_count;
	const struct queue_info *queues;
	uint32_t layer_count;
	const char *const *layers;
	uint32_t extension_count;
	const char *const *extensions;
	const void *features;
};

/* The beginning of VkPhysicalDeviceProperties, and more space than the rest needs. */
struct device_properties {
	uint32_t api_version, driver_version, vendor, device;
	int type;
	char rest[4096];
};

struct memory_properties {
	uint32_t type_count;
	struct {
		uint32_t flags, heap;
	} types[TYPES_MAX];
	char rest[1024];
};

struct timeline_features {
	int type;
	const void *next;
	uint32_t timeline;
};

struct semaphore_type_info {
	int type;
	const void *next;
	int kind;
	uint64_t value;
};

struct semaphore_info {
	int type;
	const void *next;
	uint32_t flags;
};

struct signal_info {
	int type;
	const void *next;
	uint64_t semaphore, value;
};

struct wait_info {
	int type;
	const void *next;
	uint32_t flags, count;
	const uint64_t *semaphores, *values;
};

struct allocate_info {
	int type;
	const void *next;
	uint64_t size_bytes;
	uint32_t memory_type;
};

struct vulkan {
	void *library, *instance, *device;
	memory_handle memory;
	int (*map)(void *device, memory_handle memory, uint64_t offset, uint64_t size_bytes,
		   uint32_t flags, void **data);
	void (*unmap)(void *device, memory_handle memory);
	int (*signal)(void *device, const struct signal_info *info);
	int (*wait)(void *device, const struct wait_info *info, uint64_t timeout_ns);
	void (*free_memory)(void *device, memory_handle memory, const void *allocator);
	void (*destroy_semaphore)(void *device, uint64_t semaphore, const void *allocator);
	void (*destroy_device)(void *device, const void *allocator);
	void (*destroy_instance)(void *instance, const void *allocator);
	uint64_t semaphore[SIDES], value;
	pthread_t partner;
	bool has_partner;
	/* total rounds requested of the partner, which sleeps on this word between runs */
	_Atomic uint32_t goal;
};

/* dlsym and the loader return data pointers, which ISO C cannot cast to function pointers. */
#define AS_FUNCTION(target, pointer)                        \
	do {                                                \
		void *found_ = (pointer);                   \
		memcpy(&(target), &found_, sizeof(target)); \
	} while (0)

static void set_goal(struct vulkan *v, uint32_t goal)
{
	atomic_store(&v->goal, goal);
	syscall(SYS_futex, &v->goal, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

static void vulkan_destroy(void *state)
{
	struct vulkan *v = state;

	if (v->has_partner) {
		set_goal(v, THE_END);
		pthread_join(v->partner, NULL);
	}
	for (unsigned i = 0; i < SIDES; i++)
		if (v->semaphore[i])
			v->destroy_semaphore(v->device, v->semaphore[i], NULL);
	if (v->memory && v->free_memory)
		v->free_memory(v->device, v->memory, NULL);
	if (v->device && v->destroy_device)
		v->destroy_device(v->device, NULL);
	if (v->instance && v->destroy_instance)
		v->destroy_instance(v->instance, NULL);
	if (v->library)
		dlclose(v->library);
	free(v);
}

static void *software_device(struct vulkan *v, get_proc_fn get)
{
	int (*enumerate)(void *instance, uint32_t *count, void **devices);
	void (*describe)(void *device, struct device_properties *properties);
	void *devices[DEVICES_MAX];
	uint32_t count = DEVICES_MAX;

	AS_FUNCTION(enumerate, get(v->instance, "vkEnumeratePhysicalDevices"));
	AS_FUNCTION(describe, get(v->instance, "vkGetPhysicalDeviceProperties"));
	if (!enumerate || !describe || enumerate(v->instance, &count, devices) < 0)
		return NULL;
	for (uint32_t i = 0; i < count; i++) {
		struct device_properties properties;

		describe(devices[i], &properties);
		if (properties.type == DEVICE_TYPE_CPU)
			return devices[i];
	}
	return NULL;
}

static bool create_device(struct vulkan *v, get_proc_fn get, void *physical)
{
	static const float priority = 1;
	const struct queue_info queue = {
		.type = STRUCTURE_QUEUE, .count = 1, .priorities = &priority};
	const struct timeline_features timelines = {.type = STRUCTURE_TIMELINE_FEATURES,
						    .timeline = 1};
	const struct device_info info = {
		.type = STRUCTURE_DEVICE, .next = &timelines, .queue_count = 1, .queues = &queue};
	int (*create)(void *physical, const struct device_info *info, const void *allocator,
		      void **device);

	AS_FUNCTION(create, get(v->instance, "vkCreateDevice"));
	return create && create(physical, &info, NULL, &v->device) == 0;
}

static bool take_memory(struct vulkan *v, get_proc_fn get, get_proc_fn get_of_device,
			void *physical)
{
	struct memory_properties memory;
	struct allocate_info info = {.type = STRUCTURE_ALLOCATE, .size_bytes = SIZE_BYTES};
	void (*describe)(void *physical, struct memory_properties *memory);
	int (*allocate)(void *device, const struct allocate_info *info, const void *allocator,
			memory_handle *memory);

	AS_FUNCTION(describe, get(v->instance, "vkGetPhysicalDeviceMemoryProperties"));
	AS_FUNCTION(allocate, get_of_device(v->device, "vkAllocateMemory"));
	AS_FUNCTION(v->map, get_of_device(v->device, "vkMapMemory"));
	AS_FUNCTION(v->unmap, get_of_device(v->device, "vkUnmapMemory"));
	AS_FUNCTION(v->free_memory, get_of_device(v->device, "vkFreeMemory"));
	AS_FUNCTION(v->destroy_device, get_of_device(v->device, "vkDestroyDevice"));
	if (!describe || !allocate || !v->map || !v->unmap)
		return false;
	describe(physical, &memory);
	while (info.memory_type < memory.type_count &&
	       !(memory.types[info.memory_type].flags & MEMORY_HOST_VISIBLE))
		info.memory_type++;
	return info.memory_type < memory.type_count &&
	       allocate(v->device, &info, NULL, &v->memory) == 0;
}

static bool make_semaphores(struct vulkan *v, get_proc_fn get_of_device)
{
	const struct semaphore_type_info kind = {.type = STRUCTURE_SEMAPHORE_TYPE,
						 .kind = TIMELINE};
	const struct semaphore_info info = {.type = STRUCTURE_SEMAPHORE, .next = &kind};
	int (*create)(void *device, const struct semaphore_info *info, const void *allocator,
		      uint64_t *semaphore);

	AS_FUNCTION(create, get_of_device(v->device, "vkCreateSemaphore"));
	AS_FUNCTION(v->destroy_semaphore, get_of_device(v->device, "vkDestroySemaphore"));
	AS_FUNCTION(v->signal, get_of_device(v->device, "vkSignalSemaphore"));
	AS_FUNCTION(v->wait, get_of_device(v->device, "vkWaitSemaphores"));
	if (!create || !v->destroy_semaphore || !v->signal || !v->wait)
		return false;
	for (unsigned i = 0; i < SIDES; i++)
		if (create(v->device, &info, NULL, &v->semaphore[i]) != 0)
			return false;
	return true;
}

static bool open_vulkan(struct vulkan *v)
{
	const struct application_info application = {.api_version = API_1_2};
	const struct instance_info info = {.type = STRUCTURE_INSTANCE, .application = &application};
	int (*create)(const struct instance_info *info, const void *allocator, void **instance);
	get_proc_fn get, get_of_device;

	v->library = dlopen("libvulkan.so.1", RTLD_NOW | RTLD_LOCAL);
	if (!v->library)
		return false;
	AS_FUNCTION(get, dlsym(v->library, "vkGetInstanceProcAddr"));
	AS_FUNCTION(create, get ? get(NULL, "vkCreateInstance") : NULL);
	if (!create || create(&info, NULL, &v->instance) != 0)
		return false;
	AS_FUNCTION(v->destroy_instance, get(v->instance, "vkDestroyInstance"));
	AS_FUNCTION(get_of_device, get(v->instance, "vkGetDeviceProcAddr"));
	void *physical = software_device(v, get);
	return physical && get_of_device && create_device(v, get, physical) &&
	       take_memory(v, get, get_of_device, physical) && make_semaphores(v, get_of_device);
}

static void *vulkan_create(const struct bench_case *self)
{
	struct vulkan *v = calloc(1, sizeof(*v));

	(void)self;
	if (!v || open_vulkan(v))
		return v;
	vulkan_destroy(v);
	return NULL;
}

static void run_map(void *state, uint64_t steps)
{
	struct vulkan *v = state;

	while (steps--) {
		void *data = NULL;

		if (v->map(v->device, v->memory, 0, SIZE_BYTES, 0, &data) != 0)
			abort();
		bench_use(data);
		v->unmap(v->device, v->memory);
	}
}

static void signal(const struct vulkan *v, unsigned side, uint64_t value)
{
	const struct signal_info info = {
		.type = STRUCTURE_SIGNAL, .semaphore = v->semaphore[side], .value = value};

	if (v->signal(v->device, &info) != 0)
		abort();
}

static void wait_for(const struct vulkan *v, unsigned side, uint64_t value)
{
	const struct wait_info info = {.type = STRUCTURE_WAIT,
				       .count = 1,
				       .semaphores = &v->semaphore[side],
				       .values = &value};

	if (v->wait(v->device, &info, UINT64_MAX) != 0)
		abort();
}

static void run_signal(void *state, uint64_t steps)
{
	struct vulkan *v = state;

	while (steps--)
		signal(v, MINE, ++v->value);
}

static void run_wait(void *state, uint64_t steps)
{
	while (steps--)
		wait_for(state, MINE, 0);
}

static void *partner_main(void *context)
{
	struct vulkan *v = context;

	bench_pin(1);
	for (uint32_t round = 1;; round++) {
		uint32_t goal;

		while ((goal = atomic_load(&v->goal)) < round)
			syscall(SYS_futex, &v->goal, FUTEX_WAIT_PRIVATE, goal, NULL, NULL, 0);
		if (goal == THE_END)
			return NULL;
		wait_for(v, MINE, round);
		signal(v, PARTNERS, round);
	}
}

static void *hand_off_create(const struct bench_case *self)
{
	struct vulkan *v = vulkan_create(self);

	if (!v)
		return NULL;
	v->has_partner = pthread_create(&v->partner, NULL, partner_main, v) == 0;
	if (v->has_partner)
		return v;
	vulkan_destroy(v);
	return NULL;
}

static void run_hand_off(void *state, uint64_t steps)
{
	struct vulkan *v = state;

	set_goal(v, (uint32_t)(v->value + steps * ROUNDS_A_STEP));
	for (uint64_t i = 0; i < steps * ROUNDS_A_STEP; i++) {
		signal(v, MINE, ++v->value);
		wait_for(v, PARTNERS, v->value);
	}
}

BENCH(.name = "sync.of_lavapipe_signal", .setup = vulkan_create, .run = run_signal,
      .teardown = vulkan_destroy, .peer = "sync.door_signal");
BENCH(.name = "sync.of_lavapipe_wait", .setup = vulkan_create, .run = run_wait,
      .teardown = vulkan_destroy, .peer = "sync.door_wait_satisfied");
BENCH(.name = "sync.of_lavapipe_wake", .threads = 2, .per_run = 2 * ROUNDS_A_STEP,
      .setup = hand_off_create, .run = run_hand_off, .teardown = vulkan_destroy,
      .peer = "sync.wake_asleep");
BENCH(.name = "lock.of_lavapipe_map", .setup = vulkan_create, .run = run_map,
      .teardown = vulkan_destroy, .peer = "lock.pair");
