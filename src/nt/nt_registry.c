/* SPDX-License-Identifier: MIT */
/*
 * The store of the registry: keys by full path, each with its values. Names are ASCII and compared
 * case-insensitively. A key exists from its creation to its deletion, with or without values.
 * Guarded by the registry lock; values are copied out. There are few keys, so they are a list.
 */
#include "nt/nt_registry.h"

#include <string.h>

struct nt_registry_key {
	struct vmm_list link;
	struct vmm_list values;
	uint64_t written;
	char path[NT_KEY_BYTES];
};

/* Keys that every Windows has, so that drivers can make keys below them. */
static const char *const permanent[] = {
	"\\Registry\\Machine\\Hardware\\DeviceMap",
	"\\Registry\\Machine\\Software\\Microsoft\\Windows NT\\CurrentVersion",
	"\\Registry\\Machine\\System\\CurrentControlSet\\Control",
	"\\Registry\\Machine\\System\\CurrentControlSet\\Enum",
	"\\Registry\\Machine\\System\\CurrentControlSet\\Services",
	"\\Registry\\User\\.Default",
};

vmm_status nt_registry_init(struct vmm_nt *nt)
{
	vmm_status status = VMM_OK;

	vmm_os_mutex_init(&nt->registry, nt->os, VMM_NT_RANK, "kernel registry");
	vmm_list_init(&nt->keys);
	vmm_list_init(&nt->devices);
	for (size_t i = 0; i < VMM_ARRAY_LENGTH(permanent) && vmm_ok(status); i++)
		status = vmm_nt_registry_add_key(nt, permanent[i]);
	if (!vmm_ok(status))
		nt_registry_finish(nt);
	return status;
}

static void free_key(struct nt_registry_key *key)
{
	while (!vmm_list_empty(&key->values)) {
		struct nt_value *value = vmm_container_of(key->values.next, struct nt_value, link);

		vmm_list_remove(&value->link);
		vmm_free(value);
	}
	vmm_free(key);
}

void nt_registry_finish(struct vmm_nt *nt)
{
	while (!vmm_list_empty(&nt->keys)) {
		struct nt_registry_key *key =
			vmm_container_of(nt->keys.next, struct nt_registry_key, link);

		vmm_list_remove(&key->link);
		free_key(key);
	}
	vmm_os_mutex_finish(&nt->registry);
}

/* ---- names ---- */

static char fold(char c)
{
	return c >= 'A' && c <= 'Z' ? (char)(c + ('a' - 'A')) : c;
}

/* Returns whether NAME begins with FIRST, and then the character of NAME behind it. */
static bool begins_with(const char *name, const char *first, char *next)
{
	while (*first && fold(*name) == fold(*first))
		name++, first++;
	*next = *name;
	return !*first;
}

static bool same_name(const char *a, const char *b)
{
	char next;

	return begins_with(a, b, &next) && !next;
}

const char *nt_key_name(const char *path)
{
	const char *last = strrchr(path, '\\');

	return last ? last + 1 : path;
}

void nt_key_trim(char *path)
{
	size_t length = strlen(path);

	while (length && path[length - 1] == '\\')
		path[--length] = 0;
}

/* Returns whether PATH names a direct subkey of the key of path ABOVE. */
static bool is_subkey(const char *path, const char *above)
{
	char next;

	return begins_with(path, above, &next) && next == '\\' &&
	       !strchr(path + strlen(above) + 1, '\\');
}

bool nt_narrow(char *text, size_t size, const WCHAR *wide, size_t length)
{
	size_t used = strlen(text);

	if (length >= size - used)
		return false;
	for (size_t i = 0; i < length; i++) {
		if (!wide[i] || wide[i] > 0x7E)
			return false;
		text[used + i] = (char)wide[i];
	}
	text[used + length] = 0;
	return true;
}

size_t nt_wide_length(const WCHAR *text)
{
	size_t length = 0;

	while (text[length])
		length++;
	return length;
}

/* ---- keys and values; caller holds the registry lock ---- */

static struct nt_registry_key *find_locked(struct vmm_nt *nt, const char *path)
	VMM_REQUIRES(nt_registry_class)
{
	struct vmm_list *pos;

	vmm_assert_held(&nt->registry);
	vmm_list_for_each (pos, &nt->keys) {
		struct nt_registry_key *key = vmm_container_of(pos, struct nt_registry_key, link);

		if (same_name(key->path, path))
			return key;
	}
	return NULL;
}

/* The subkey of this index; NULL if there are fewer. */
static struct nt_registry_key *subkey_locked(struct vmm_nt *nt, const char *path, uint32_t index)
	VMM_REQUIRES(nt_registry_class)
{
	struct vmm_list *pos;

	vmm_assert_held(&nt->registry);
	vmm_list_for_each (pos, &nt->keys) {
		struct nt_registry_key *key = vmm_container_of(pos, struct nt_registry_key, link);

		if (is_subkey(key->path, path) && !index--)
			return key;
	}
	return NULL;
}

static struct nt_value *value_of(struct nt_registry_key *key, const char *name)
{
	struct vmm_list *pos;

	vmm_list_for_each (pos, &key->values) {
		struct nt_value *value = vmm_container_of(pos, struct nt_value, link);

		if (same_name(value->name, name))
			return value;
	}
	return NULL;
}

static struct nt_value *value_at(struct nt_registry_key *key, uint32_t index)
{
	struct vmm_list *pos;

	vmm_list_for_each (pos, &key->values) {
		if (!index--)
			return vmm_container_of(pos, struct nt_value, link);
	}
	return NULL;
}

static void touch(struct vmm_nt *nt, struct nt_registry_key *key)
{
	key->written = nt->config.system_time_base + vmm_os_now_ns(nt->os) / 100;
}

static bool add_locked(struct vmm_nt *nt, const char *path) VMM_REQUIRES(nt_registry_class)
{
	struct nt_registry_key *key;

	vmm_assert_held(&nt->registry);
	key = vmm_calloc(1, sizeof(*key));
	if (!key)
		return false;
	strcpy(key->path, path);
	vmm_list_init(&key->values);
	touch(nt, key);
	vmm_list_push_back(&nt->keys, &key->link);
	return true;
}

static NTSTATUS put_locked(struct vmm_nt *nt, const char *path, struct nt_value *value)
	VMM_REQUIRES(nt_registry_class)
{
	struct nt_registry_key *key;
	struct nt_value *before;

	vmm_assert_held(&nt->registry);
	key = find_locked(nt, path);
	if (!key)
		return STATUS_KEY_DELETED;
	before = value_of(key, value->name);
	if (before) {
		vmm_list_insert_after(&before->link, &value->link);
		vmm_list_remove(&before->link);
		vmm_free(before);
	} else {
		vmm_list_push_back(&key->values, &value->link);
	}
	touch(nt, key);
	return STATUS_SUCCESS;
}

/* ---- for the services ---- */

bool nt_registry_has_key(struct vmm_nt *nt, const char *path)
{
	bool found;

	nt_registry_lock(nt);
	found = find_locked(nt, path);
	nt_registry_unlock(nt);
	return found;
}

NTSTATUS nt_registry_create(struct vmm_nt *nt, const char *path, bool *created)
{
	NTSTATUS status = STATUS_SUCCESS;
	char above[NT_KEY_BYTES];
	bool exists;

	strcpy(above, path);
	above[nt_key_name(path) - path] = 0;
	nt_key_trim(above);
	nt_registry_lock(nt);
	exists = find_locked(nt, path);
	if (!exists && !find_locked(nt, above))
		status = STATUS_OBJECT_NAME_NOT_FOUND;
	else if (!exists && !add_locked(nt, path))
		status = STATUS_INSUFFICIENT_RESOURCES;
	nt_registry_unlock(nt);
	if (created)
		*created = !exists;
	return status;
}

NTSTATUS nt_registry_delete(struct vmm_nt *nt, const char *path)
{
	NTSTATUS status = STATUS_SUCCESS;
	struct nt_registry_key *key;

	nt_registry_lock(nt);
	key = find_locked(nt, path);
	if (!key)
		status = STATUS_KEY_DELETED;
	else if (subkey_locked(nt, path, 0))
		status = STATUS_CANNOT_DELETE;
	else
		vmm_list_remove(&key->link);
	nt_registry_unlock(nt);
	if (status == STATUS_SUCCESS)
		free_key(key);
	return status;
}

NTSTATUS nt_registry_describe(struct vmm_nt *nt, const char *path,
			      struct nt_key_description *description)
{
	struct nt_registry_key *key, *below;
	struct vmm_list *pos;

	*description = (struct nt_key_description){0};
	nt_registry_lock(nt);
	key = find_locked(nt, path);
	while (key && (below = subkey_locked(nt, path, description->subkeys))) {
		uint64_t length = strlen(nt_key_name(below->path));

		description->subkeys++;
		if (length > description->longest_subkey)
			description->longest_subkey = (uint32_t)length;
	}
	if (key) {
		description->written = key->written;
		vmm_list_for_each (pos, &key->values) {
			struct nt_value *value = vmm_container_of(pos, struct nt_value, link);
			uint32_t length = (uint32_t)strlen(value->name);

			description->values++;
			if (length > description->longest_value_name)
				description->longest_value_name = length;
			if (value->size_bytes > description->largest_data)
				description->largest_data = value->size_bytes;
		}
	}
	nt_registry_unlock(nt);
	return key ? STATUS_SUCCESS : STATUS_KEY_DELETED;
}

NTSTATUS nt_registry_subkey(struct vmm_nt *nt, const char *path, uint32_t index,
			    char subkey[NT_KEY_BYTES])
{
	NTSTATUS status = STATUS_NO_MORE_ENTRIES;
	struct nt_registry_key *found = NULL;

	nt_registry_lock(nt);
	if (!find_locked(nt, path))
		status = STATUS_KEY_DELETED;
	else
		found = subkey_locked(nt, path, index);
	if (found) {
		strcpy(subkey, found->path);
		status = STATUS_SUCCESS;
	}
	nt_registry_unlock(nt);
	return status;
}

NTSTATUS nt_registry_set(struct vmm_nt *nt, const char *path, const char *name, uint32_t type,
			 const void *data, uint32_t size_bytes)
{
	struct nt_value *value = vmm_calloc(1, sizeof(*value) + size_bytes);
	NTSTATUS status;

	if (!value)
		return STATUS_INSUFFICIENT_RESOURCES;
	strcpy(value->name, name);
	value->type = type;
	value->size_bytes = size_bytes;
	if (size_bytes)
		memcpy(value->data, data, size_bytes);
	nt_registry_lock(nt);
	status = put_locked(nt, path, value);
	nt_registry_unlock(nt);
	if (!NT_SUCCESS(status))
		vmm_free(value);
	return status;
}

NTSTATUS nt_registry_unset(struct vmm_nt *nt, const char *path, const char *name)
{
	struct nt_registry_key *key;
	struct nt_value *value = NULL;

	nt_registry_lock(nt);
	key = find_locked(nt, path);
	if (key)
		value = value_of(key, name);
	if (value) {
		vmm_list_remove(&value->link);
		touch(nt, key);
	}
	nt_registry_unlock(nt);
	vmm_free(value);
	if (!key)
		return STATUS_KEY_DELETED;
	return value ? STATUS_SUCCESS : STATUS_OBJECT_NAME_NOT_FOUND;
}

/* NAME is NULL: value INDEX of the key. */
static NTSTATUS copy(struct vmm_nt *nt, const char *path, const char *name, uint32_t index,
		     struct nt_value **result)
{
	NTSTATUS status = name ? STATUS_OBJECT_NAME_NOT_FOUND : STATUS_NO_MORE_ENTRIES;
	struct nt_registry_key *key;
	struct nt_value *value = NULL;

	nt_registry_lock(nt);
	key = find_locked(nt, path);
	if (!key)
		status = STATUS_KEY_DELETED;
	else
		value = name ? value_of(key, name) : value_at(key, index);
	if (value) {
		*result = vmm_calloc(1, sizeof(**result) + value->size_bytes);
		status = *result ? STATUS_SUCCESS : STATUS_INSUFFICIENT_RESOURCES;
		if (*result)
			memcpy(*result, value, sizeof(*value) + value->size_bytes);
	}
	nt_registry_unlock(nt);
	return status;
}

NTSTATUS nt_registry_copy(struct vmm_nt *nt, const char *path, const char *name,
			  struct nt_value **result)
{
	return copy(nt, path, name, 0, result);
}

NTSTATUS nt_registry_copy_at(struct vmm_nt *nt, const char *path, uint32_t index,
			     struct nt_value **result)
{
	return copy(nt, path, NULL, index, result);
}

/* ---- for the modules above ---- */

vmm_status vmm_nt_registry_add_key(struct vmm_nt *nt, const char *key)
{
	char path[NT_KEY_BYTES];
	bool done = true;

	if (strlen(key) >= NT_KEY_BYTES || key[0] != '\\')
		return VMM_INVALID_PARAMETER;
	nt_registry_lock(nt);
	/* Every key above it first: \A, \A\B, \A\B\C. */
	for (size_t length = 1; done && key[length - 1]; length++) {
		if (key[length] && key[length] != '\\')
			continue;
		memcpy(path, key, length);
		path[length] = 0;
		done = find_locked(nt, path) || add_locked(nt, path);
	}
	nt_registry_unlock(nt);
	return done ? VMM_OK : VMM_NO_MEMORY;
}

vmm_status vmm_nt_registry_set(struct vmm_nt *nt, const char *key, const char *name, uint32_t type,
			       const void *data, uint32_t size_bytes)
{
	vmm_status status;

	if (strlen(name) >= NT_VALUE_NAME_BYTES)
		return VMM_INVALID_PARAMETER;
	status = vmm_nt_registry_add_key(nt, key);
	if (!vmm_ok(status))
		return status;
	return NT_SUCCESS(nt_registry_set(nt, key, name, type, data, size_bytes)) ? VMM_OK
										  : VMM_NO_MEMORY;
}

vmm_status vmm_nt_registry_set_number(struct vmm_nt *nt, const char *key, const char *name,
				      uint64_t value)
{
	uint32_t low = (uint32_t)value;

	if (value > UINT32_MAX)
		return vmm_nt_registry_set(nt, key, name, REG_QWORD, &value, sizeof(value));
	return vmm_nt_registry_set(nt, key, name, REG_DWORD, &low, sizeof(low));
}

vmm_status vmm_nt_registry_set_string(struct vmm_nt *nt, const char *key, const char *name,
				      const char *value)
{
	size_t length = strlen(value);
	WCHAR *wide = vmm_calloc(length + 1, sizeof(*wide));
	vmm_status status;

	if (!wide)
		return VMM_NO_MEMORY;
	for (size_t i = 0; i < length; i++)
		wide[i] = (WCHAR)(unsigned char)value[i];
	status = vmm_nt_registry_set(nt, key, name, REG_SZ, wide,
				     (uint32_t)((length + 1) * sizeof(*wide)));
	vmm_free(wide);
	return status;
}

void vmm_nt_registry_remove_key(struct vmm_nt *nt, const char *key)
{
	struct vmm_list *pos, *next;
	char behind;

	nt_registry_lock(nt);
	for (pos = nt->keys.next; pos != &nt->keys; pos = next) {
		struct nt_registry_key *here = vmm_container_of(pos, struct nt_registry_key, link);

		next = pos->next;
		if (!begins_with(here->path, key, &behind) || (behind && behind != '\\'))
			continue;
		vmm_list_remove(pos);
		free_key(here);
	}
	nt_registry_unlock(nt);
}
