/* SPDX-License-Identifier: MIT */
/*
 * For comparison, where it is installed: vkMapMemory and vkUnmapMemory of Mesa's software Vulkan (lavapipe), through the
 * pointers of the device. They return a pointer that is there anyway and count nothing that other threads see, so this is
 * what two calls cost and not a goal. The loader is opened at run time; of its interface only what is needed is declared.
 */
#include "bench.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

typedef uint64_t memory_handle;
typedef void *(*get_proc_fn)(void *object, const char *name);

enum {
	STRUCTURE_INSTANCE = 1,
	STRUCTURE_QUEUE = 2,
	STRUCTURE_DEVICE = 3,
	STRUCTURE_ALLOCATE = 5,
	DEVICE_TYPE_CPU = 4,
	MEMORY_HOST_VISIBLE = 2,
	TYPES_MAX = 32,
	DEVICES_MAX = 8,
	SIZE_BYTES = 65536
};

struct instance_info {
	int type;
	const void *next;
	uint32_t flags;
	const void *application;
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

/* The head of VkPhysicalDeviceProperties, and more than enough room for the rest. */
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
	void (*free_memory)(void *device, memory_handle memory, const void *allocator);
	void (*destroy_device)(void *device, const void *allocator);
	void (*destroy_instance)(void *instance, const void *allocator);
};

/* dlsym and the loader give data pointers. */
#define AS_FUNCTION(target, pointer)                        \
	do {                                                \
		void *found_ = (pointer);                   \
		memcpy(&(target), &found_, sizeof(target)); \
	} while (0)

static void vulkan_destroy(void *state)
{
	struct vulkan *v = state;

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
	const struct device_info info = {
		.type = STRUCTURE_DEVICE, .queue_count = 1, .queues = &queue};
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

static bool open_vulkan(struct vulkan *v)
{
	const struct instance_info info = {.type = STRUCTURE_INSTANCE};
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
	       take_memory(v, get, get_of_device, physical);
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

BENCH(.name = "lock.of_lavapipe_map", .setup = vulkan_create, .run = run_map,
      .teardown = vulkan_destroy, .peer = "lock.pair");
