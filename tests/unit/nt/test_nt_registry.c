/* SPDX-License-Identifier: MIT */
/* Registry keys that exist without values, every information class, access rights, devices. */
#include "nt_world.h"

#define SERVICES "\\Registry\\Machine\\System\\CurrentControlSet\\Services"
#define SERVICE  SERVICES "\\tiny"

static const WCHAR service_path[] =
	L"\\Registry\\Machine\\System\\CurrentControlSet\\Services\\tiny";

static OBJECT_ATTRIBUTES attributes_of(HANDLE root, PUNICODE_STRING name, PCWSTR text)
{
	OBJECT_ATTRIBUTES attributes;

	RtlInitUnicodeString(name, text);
	InitializeObjectAttributes(&attributes, name, OBJ_KERNEL_HANDLE | OBJ_CASE_INSENSITIVE,
				   root, NULL);
	return attributes;
}

static NTSTATUS open(HANDLE root, PCWSTR text, ACCESS_MASK access, PHANDLE key)
{
	UNICODE_STRING name;
	OBJECT_ATTRIBUTES attributes = attributes_of(root, &name, text);

	return ZwOpenKey(key, access, &attributes);
}

static NTSTATUS create(HANDLE root, PCWSTR text, ACCESS_MASK access, PHANDLE key, PULONG how)
{
	UNICODE_STRING name;
	OBJECT_ATTRIBUTES attributes = attributes_of(root, &name, text);

	return ZwCreateKey(key, access, &attributes, 0, NULL, REG_OPTION_NON_VOLATILE, how);
}

static NTSTATUS set_number(HANDLE key, PCWSTR text, ULONG number)
{
	UNICODE_STRING name;

	RtlInitUnicodeString(&name, text);
	return ZwSetValueKey(key, &name, 0, REG_DWORD, &number, sizeof(number));
}

static HANDLE open_service(struct world *world, ACCESS_MASK access)
{
	HANDLE key = NULL;

	assert_int_equal(vmm_nt_registry_add_key(world->nt, SERVICE), VMM_OK);
	assert_int_equal(open(NULL, service_path, access, &key), STATUS_SUCCESS);
	return key;
}

static void keys_exist_without_values(void **state)
{
	struct world *world = *state;
	HANDLE key = open_service(world, KEY_READ), above = NULL, none = NULL;

	assert_int_equal(open(NULL, L"\\REGISTRY\\Machine\\System\\CurrentControlSet\\Services\\",
			      KEY_READ, &above),
			 STATUS_SUCCESS);
	assert_int_equal(open(above, L"tiny\\Parameters", KEY_READ, &none),
			 STATUS_OBJECT_NAME_NOT_FOUND);
	assert_int_equal(open(NULL, L"Registry\\Machine", KEY_READ, &none),
			 STATUS_OBJECT_PATH_SYNTAX_BAD);
	assert_int_equal(open(key, L"\\Parameters", KEY_READ, &none),
			 STATUS_OBJECT_PATH_SYNTAX_BAD);
	assert_int_equal(ZwFlushKey(key), STATUS_SUCCESS);
	assert_int_equal(ZwClose(key), STATUS_SUCCESS);
	assert_int_equal(ZwClose(above), STATUS_SUCCESS);
}

static void keys_are_created_below_existing_ones_and_deleted(void **state)
{
	HANDLE key = open_service(*state, KEY_ALL_ACCESS), sub = NULL, again = NULL;
	ULONG how = 0;

	assert_int_equal(create(key, L"A\\B", KEY_READ, &sub, &how), STATUS_OBJECT_NAME_NOT_FOUND);
	assert_int_equal(create(key, L"A", KEY_ALL_ACCESS, &sub, &how), STATUS_SUCCESS);
	assert_int_equal(how, REG_CREATED_NEW_KEY);
	assert_int_equal(create(key, L"a", KEY_READ, &again, &how), STATUS_SUCCESS);
	assert_int_equal(how, REG_OPENED_EXISTING_KEY);
	assert_int_equal(ZwDeleteKey(key), STATUS_CANNOT_DELETE);
	assert_int_equal(ZwDeleteKey(again), STATUS_ACCESS_DENIED);
	assert_int_equal(ZwDeleteKey(sub), STATUS_SUCCESS);
	assert_int_equal(ZwDeleteKey(sub), STATUS_KEY_DELETED);
	assert_int_equal(set_number(sub, L"n", 1), STATUS_KEY_DELETED);
	assert_int_equal(ZwClose(again), STATUS_SUCCESS);
	assert_int_equal(open(key, L"A", KEY_READ, &again), STATUS_OBJECT_NAME_NOT_FOUND);
	assert_int_equal(ZwClose(sub), STATUS_SUCCESS);
	assert_int_equal(ZwClose(key), STATUS_SUCCESS);
}

static void values_are_set_and_read_in_every_class(void **state)
{
	HANDLE key = open_service(*state, KEY_ALL_ACCESS);
	_Alignas(8) unsigned char buffer[64];
	PKEY_VALUE_BASIC_INFORMATION basic = (PVOID)buffer;
	PKEY_VALUE_FULL_INFORMATION full = (PVOID)buffer;
	PKEY_VALUE_PARTIAL_INFORMATION_ALIGN64 aligned = (PVOID)buffer;
	UNICODE_STRING name;
	ULONG size = 0;

	RtlInitUnicodeString(&name, L"Mode");
	assert_int_equal(set_number(key, L"Mode", 7), STATUS_SUCCESS);
	assert_int_equal(set_number(key, L"MODE", 9), STATUS_SUCCESS);
	assert_int_equal(ZwQueryValueKey(key, &name, KeyValueBasicInformation, buffer, 64, &size),
			 STATUS_SUCCESS);
	assert_int_equal(basic->NameLength, 8);
	assert_int_equal(size, 12 + 8);
	assert_int_equal(ZwQueryValueKey(key, &name, KeyValueFullInformation, buffer, 64, &size),
			 STATUS_SUCCESS);
	assert_int_equal(full->DataOffset, 28);
	assert_int_equal(size, 32);
	assert_int_equal(*(ULONG *)(void *)(buffer + full->DataOffset), 9);
	assert_int_equal(
		ZwQueryValueKey(key, &name, KeyValueFullInformationAlign64, buffer, 64, &size),
		STATUS_SUCCESS);
	assert_int_equal(full->DataOffset, 32);
	assert_int_equal(
		ZwQueryValueKey(key, &name, KeyValuePartialInformationAlign64, buffer, 64, &size),
		STATUS_SUCCESS);
	assert_int_equal(*(ULONG *)(void *)aligned->Data, 9);
	assert_int_equal(size, 12);
	assert_int_equal(ZwEnumerateValueKey(key, 0, KeyValueFullInformation, buffer, 30, &size),
			 STATUS_BUFFER_OVERFLOW);
	assert_int_equal(ZwEnumerateValueKey(key, 0, KeyValueFullInformation, buffer, 19, &size),
			 STATUS_BUFFER_TOO_SMALL);
	assert_int_equal(size, 32);
	assert_int_equal(ZwEnumerateValueKey(key, 1, KeyValueFullInformation, buffer, 64, &size),
			 STATUS_NO_MORE_ENTRIES);
	assert_int_equal(ZwDeleteValueKey(key, &name), STATUS_SUCCESS);
	assert_int_equal(ZwDeleteValueKey(key, &name), STATUS_OBJECT_NAME_NOT_FOUND);
	assert_int_equal(ZwClose(key), STATUS_SUCCESS);
}

static void keys_are_described_and_enumerated(void **state)
{
	HANDLE key = open_service(*state, KEY_ALL_ACCESS), sub = NULL;
	_Alignas(8) unsigned char buffer[256];
	PKEY_BASIC_INFORMATION basic = (PVOID)buffer;
	PKEY_FULL_INFORMATION full = (PVOID)buffer;
	PKEY_NAME_INFORMATION name = (PVOID)buffer;
	ULONG size = 0;

	assert_int_equal(create(key, L"Engines", KEY_READ, &sub, NULL), STATUS_SUCCESS);
	assert_int_equal(ZwClose(sub), STATUS_SUCCESS);
	assert_int_equal(create(key, L"Pll", KEY_READ, &sub, NULL), STATUS_SUCCESS);
	assert_int_equal(set_number(key, L"Mode", 7), STATUS_SUCCESS);
	assert_int_equal(ZwQueryKey(key, KeyFullInformation, buffer, 256, &size), STATUS_SUCCESS);
	assert_int_equal(full->SubKeys, 2);
	assert_int_equal(full->Values, 1);
	assert_int_equal(full->MaxNameLen, 14);
	assert_int_equal(full->MaxValueNameLen, 8);
	assert_int_equal(full->MaxValueDataLen, 4);
	assert_int_equal(ZwEnumerateKey(key, 1, KeyBasicInformation, buffer, 256, &size),
			 STATUS_SUCCESS);
	assert_int_equal(basic->NameLength, 6);
	assert_memory_equal(basic->Name, L"Pll", 6);
	assert_int_equal(ZwEnumerateKey(key, 2, KeyBasicInformation, buffer, 256, &size),
			 STATUS_NO_MORE_ENTRIES);
	assert_int_equal(ZwEnumerateKey(key, 0, KeyNameInformation, buffer, 256, &size),
			 STATUS_INVALID_PARAMETER);
	assert_int_equal(ZwQueryKey(key, KeyNameInformation, buffer, 256, &size), STATUS_SUCCESS);
	assert_int_equal(name->NameLength, sizeof(service_path) - 2);
	assert_memory_equal(name->Name, service_path, name->NameLength);
	assert_int_equal(ZwClose(sub), STATUS_SUCCESS);
	assert_int_equal(ZwClose(key), STATUS_SUCCESS);
}

static void handles_allow_only_what_they_were_opened_for(void **state)
{
	struct world *world = *state;
	HANDLE reader = open_service(world, KEY_READ), writer = open_service(world, GENERIC_WRITE);
	UNICODE_STRING name;
	ULONG size = 0;
	HANDLE sub;

	RtlInitUnicodeString(&name, L"Mode");
	assert_int_equal(set_number(reader, L"Mode", 1), STATUS_ACCESS_DENIED);
	assert_int_equal(create(reader, L"New", KEY_READ, &sub, NULL), STATUS_ACCESS_DENIED);
	assert_int_equal(set_number(writer, L"Mode", 1), STATUS_SUCCESS);
	assert_int_equal(ZwQueryValueKey(writer, &name, KeyValuePartialInformation, NULL, 0, &size),
			 STATUS_ACCESS_DENIED);
	assert_int_equal(ZwEnumerateKey(writer, 0, KeyBasicInformation, NULL, 0, &size),
			 STATUS_ACCESS_DENIED);
	assert_int_equal(ZwClose(reader), STATUS_SUCCESS);
	assert_int_equal(ZwClose(writer), STATUS_SUCCESS);
}

static void nt_11_names_that_are_not_ascii_are_not_supported(void **state)
{
	struct world *world = *state;
	HANDLE key = open_service(world, KEY_ALL_ACCESS);

	assert_int_equal(set_number(key, L"\x00E9", 1), STATUS_NOT_SUPPORTED);
	expect_violation(world, "NT-11", "ZwSetValueKey", "not ASCII");
	assert_int_equal(ZwClose(key), STATUS_SUCCESS);
}

static void values_are_written_by_path(void **state)
{
	static WCHAR path[] = L"tiny\\Parameters", none[] = L"none";
	struct world *world = *state;
	HANDLE key = open_service(world, KEY_READ);
	ULONG number = 3;

	assert_int_equal(RtlCheckRegistryKey(RTL_REGISTRY_SERVICES, path),
			 STATUS_OBJECT_NAME_NOT_FOUND);
	assert_int_equal(RtlWriteRegistryValue(RTL_REGISTRY_SERVICES, path, L"n", REG_DWORD,
					       &number, sizeof(number)),
			 STATUS_SUCCESS);
	assert_int_equal(RtlCheckRegistryKey(RTL_REGISTRY_SERVICES, path), STATUS_SUCCESS);
	assert_int_equal(RtlDeleteRegistryValue(RTL_REGISTRY_SERVICES, path, L"n"), STATUS_SUCCESS);
	assert_int_equal(RtlDeleteRegistryValue(RTL_REGISTRY_SERVICES, path, L"n"),
			 STATUS_OBJECT_NAME_NOT_FOUND);
	assert_int_equal(RtlCreateRegistryKey(RTL_REGISTRY_CONTROL, none), STATUS_SUCCESS);
	assert_int_equal(RtlCheckRegistryKey(RTL_REGISTRY_CONTROL, none), STATUS_SUCCESS);
	assert_int_equal(RtlCheckRegistryKey(9, none), STATUS_INVALID_PARAMETER);
	assert_int_equal(ZwClose(key), STATUS_SUCCESS);
}

static void devices_have_keys_and_properties(void **state)
{
	struct world *world = *state;
	DEVICE_OBJECT device = {.Type = 3}, other = {.Type = 3};
	uint32_t bus = PCIBus, answer = 0;
	ULONG size = 0;
	HANDLE key;

	assert_int_equal(vmm_nt_device_add(world->nt, &device, SERVICES "\\hw", SERVICES "\\sw"),
			 VMM_OK);
	assert_int_equal(vmm_nt_device_set(world->nt, &device, DevicePropertyLegacyBusType, &bus,
					   sizeof(bus)),
			 VMM_OK);
	assert_int_equal(
		vmm_nt_device_set_text(world->nt, &device, DevicePropertyClassName, "Display", 7),
		VMM_OK);
	assert_int_equal(
		IoOpenDeviceRegistryKey(&device, PLUGPLAY_REGKEY_DRIVER, KEY_ALL_ACCESS, &key),
		STATUS_SUCCESS);
	assert_int_equal(set_number(key, L"n", 1), STATUS_SUCCESS);
	assert_int_equal(ZwClose(key), STATUS_SUCCESS);
	assert_int_equal(IoOpenDeviceRegistryKey(&device, PLUGPLAY_REGKEY_DEVICE, KEY_READ, &key),
			 STATUS_SUCCESS);
	assert_int_equal(ZwClose(key), STATUS_SUCCESS);
	assert_int_equal(IoOpenDeviceRegistryKey(&device, 3, KEY_READ, &key),
			 STATUS_INVALID_PARAMETER);
	assert_int_equal(IoOpenDeviceRegistryKey(&other, PLUGPLAY_REGKEY_DRIVER, KEY_READ, &key),
			 STATUS_INVALID_PARAMETER);
	assert_int_equal(
		IoGetDeviceProperty(&device, DevicePropertyLegacyBusType, 4, &answer, &size),
		STATUS_SUCCESS);
	assert_int_equal(answer, PCIBus);
	assert_int_equal(IoGetDeviceProperty(&device, DevicePropertyClassName, 4, &answer, &size),
			 STATUS_BUFFER_TOO_SMALL);
	assert_int_equal(size, 16);
	assert_int_equal(IoGetDeviceProperty(&device, DevicePropertyUINumber, 4, &answer, &size),
			 STATUS_OBJECT_NAME_NOT_FOUND);
	assert_int_equal(IoGetDeviceProperty(&device, 99, 4, &answer, &size),
			 STATUS_INVALID_PARAMETER_2);
	assert_int_equal(IoGetDeviceProperty(&other, DevicePropertyUINumber, 4, &answer, &size),
			 STATUS_INVALID_DEVICE_REQUEST);
	vmm_nt_device_remove(world->nt, &device);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ON_SIM(keys_exist_without_values),
		ON_SIM(keys_are_created_below_existing_ones_and_deleted),
		ON_SIM(values_are_set_and_read_in_every_class),
		ON_SIM(keys_are_described_and_enumerated),
		ON_SIM(handles_allow_only_what_they_were_opened_for),
		ON_SIM(nt_11_names_that_are_not_ascii_are_not_supported),
		ON_SIM(values_are_written_by_path),
		ON_SIM(devices_have_keys_and_properties),
	};

	return cmocka_run_group_tests_name("nt_registry", tests, NULL, NULL);
}
