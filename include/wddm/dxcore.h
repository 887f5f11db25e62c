/* SPDX-License-Identifier: MIT */
/*
 * DXCore, the enumeration of adapters for clients: DXCoreCreateAdapterFactory and its interfaces.
 *
 * An interface is a pointer to a structure whose only member is the pointer to its table of
 * functions (COM). The first argument of each function is the interface. On x86-64 Linux the
 * functions have the C calling convention, so the header serves C and C++. C++ clients of
 * dxcore_interface.h (directx-headers) use the same objects; if that header was included before,
 * this one defines nothing.
 *
 * Threading: any thread may call. Errors are HRESULTs; each function's are in docs/rules/dxcore.tsv
 * (`vidmm rules DXC-05`). Sizes are bytes. An interface that a function returns has one more
 * reference, which the caller releases. After a failure the pointer to an interface is NULL.
 * Source: the pages of dxcore_interface.h and the public header of that name.
 */
#ifndef WDDM_DXCORE_H
#define WDDM_DXCORE_H

#ifndef __dxcore_interface_h__

#include <stdbool.h>

#include "wddm_base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- errors ---- */
#ifndef DXGI_ERROR_INVALID_CALL
/* A value that this version does not know. */
#define DXGI_ERROR_INVALID_CALL ((HRESULT)0x887A0001)
#endif
#ifndef DXGI_ERROR_UNSUPPORTED
/* A known value that the adapter does not support. */
#define DXGI_ERROR_UNSUPPORTED ((HRESULT)0x887A0004)
#endif
#ifndef DXGI_ERROR_DEVICE_REMOVED
/* The adapter was removed, or has stopped. */
#define DXGI_ERROR_DEVICE_REMOVED ((HRESULT)0x887A0005)
#endif

/* ---- values ---- */
/* Comments: the type of the value. */
typedef enum DXCoreAdapterProperty {
	DXCoreAdapterProperty_InstanceLuid = 0,                  /* LUID */
	DXCoreAdapterProperty_DriverVersion = 1,                 /* uint64_t, four words */
	DXCoreAdapterProperty_DriverDescription = 2,             /* UTF-8 text with its NUL */
	DXCoreAdapterProperty_HardwareID = 3,                    /* DXCoreHardwareID */
	DXCoreAdapterProperty_KmdModelVersion = 4,               /* D3DKMT_DRIVERVERSION */
	DXCoreAdapterProperty_ComputePreemptionGranularity = 5,  /* uint16_t */
	DXCoreAdapterProperty_GraphicsPreemptionGranularity = 6, /* uint16_t */
	DXCoreAdapterProperty_DedicatedAdapterMemory = 7,        /* uint64_t, bytes */
	DXCoreAdapterProperty_DedicatedSystemMemory = 8,         /* uint64_t, bytes */
	DXCoreAdapterProperty_SharedSystemMemory = 9,            /* uint64_t, bytes */
	DXCoreAdapterProperty_AcgCompatible = 10,                /* bool */
	DXCoreAdapterProperty_IsHardware = 11,                   /* bool */
	DXCoreAdapterProperty_IsIntegrated = 12,                 /* bool */
	DXCoreAdapterProperty_IsDetachable = 13,                 /* bool */
	DXCoreAdapterProperty_HardwareIDParts = 14,              /* DXCoreHardwareIDParts */
	DXCoreAdapterProperty_PhysicalAdapterCount = 15,         /* uint32_t */
	DXCoreAdapterProperty_AdapterEngineCount = 16,           /* uint32_t */
	DXCoreAdapterProperty_AdapterEngineName = 17             /* DXCoreEngineNameProperty... */
} DXCoreAdapterProperty;

/* Comments: the type of the input, if there is one, and of the output. */
typedef enum DXCoreAdapterState {
	DXCoreAdapterState_IsDriverUpdateInProgress = 0, /* uint8_t */
	/* DXCoreAdapterMemoryBudgetNodeSegmentGroup, DXCoreAdapterMemoryBudget */
	DXCoreAdapterState_AdapterMemoryBudget = 1,
	/* DXCoreMemoryQueryInput, DXCoreMemoryUsage */
	DXCoreAdapterState_AdapterMemoryUsageBytes = 2,
	/* DXCoreProcessMemoryQueryInput, DXCoreProcessMemoryQueryOutput */
	DXCoreAdapterState_AdapterMemoryUsageByProcessBytes = 3,
	/* DXCoreEngineQueryInput, DXCoreEngineQueryOutput */
	DXCoreAdapterState_AdapterEngineRunningTimeMicroseconds = 4,
	DXCoreAdapterState_AdapterEngineRunningTimeByProcessMicroseconds = 5,
	DXCoreAdapterState_AdapterTemperatureCelsius = 6,
	DXCoreAdapterState_AdapterInUseProcessCount = 7,
	/* DXCoreAdapterProcessSetQueryInput, DXCoreAdapterProcessSetQueryOutput */
	DXCoreAdapterState_AdapterInUseProcessSet = 8,
	DXCoreAdapterState_AdapterEngineFrequencyHertz = 9, /* output DXCoreFrequencyQueryOutput */
	DXCoreAdapterState_AdapterMemoryFrequencyHertz = 10 /* output DXCoreFrequencyQueryOutput */
} DXCoreAdapterState;

typedef enum DXCoreSegmentGroup {
	DXCoreSegmentGroup_Local = 0,
	DXCoreSegmentGroup_NonLocal = 1
} DXCoreSegmentGroup;

typedef enum DXCoreNotificationType {
	DXCoreNotificationType_AdapterListStale = 0,     /* of a list */
	DXCoreNotificationType_AdapterNoLongerValid = 1, /* of an adapter, like those that follow */
	DXCoreNotificationType_AdapterBudgetChange = 2,
	DXCoreNotificationType_AdapterHardwareContentProtectionTeardown = 3
} DXCoreNotificationType;

typedef enum DXCoreAdapterPreference {
	DXCoreAdapterPreference_Hardware = 0,
	DXCoreAdapterPreference_MinimumPower = 1,
	DXCoreAdapterPreference_HighPerformance = 2
} DXCoreAdapterPreference;

typedef enum DXCoreWorkload {
	DXCoreWorkload_Graphics = 0,
	DXCoreWorkload_Compute = 1,
	DXCoreWorkload_Media = 2,
	DXCoreWorkload_MachineLearning = 3
} DXCoreWorkload;

typedef enum DXCoreRuntimeFilterFlags {
	DXCoreRuntimeFilterFlags_None = 0x0,
	DXCoreRuntimeFilterFlags_D3D11 = 0x1,
	DXCoreRuntimeFilterFlags_D3D12 = 0x2
} DXCoreRuntimeFilterFlags;

typedef enum DXCoreHardwareTypeFilterFlags {
	DXCoreHardwareTypeFilterFlags_None = 0x0,
	DXCoreHardwareTypeFilterFlags_GPU = 0x1,
	DXCoreHardwareTypeFilterFlags_ComputeAccelerator = 0x2,
	DXCoreHardwareTypeFilterFlags_NPU = 0x4,
	DXCoreHardwareTypeFilterFlags_MediaAccelerator = 0x8
} DXCoreHardwareTypeFilterFlags;

typedef enum DXCoreMemoryType {
	DXCoreMemoryType_Dedicated = 0,
	DXCoreMemoryType_Shared = 1
} DXCoreMemoryType;

/* PCI ids. subSysID: the subsystem in the upper half, its vendor in the lower one. */
typedef struct DXCoreHardwareID {
	uint32_t vendorID;
	uint32_t deviceID;
	uint32_t subSysID;
	uint32_t revision;
} DXCoreHardwareID;

typedef struct DXCoreHardwareIDParts {
	uint32_t vendorID;
	uint32_t deviceID;
	uint32_t subSystemID;
	uint32_t subVendorID;
	uint32_t revisionID;
} DXCoreHardwareIDParts;

/* nodeIndex: index of the physical adapter. */
typedef struct DXCoreAdapterMemoryBudgetNodeSegmentGroup {
	uint32_t nodeIndex;
	DXCoreSegmentGroup segmentGroup;
} DXCoreAdapterMemoryBudgetNodeSegmentGroup;

/* Bytes, of the calling process. */
typedef struct DXCoreAdapterMemoryBudget {
	uint64_t budget;
	uint64_t currentUsage;
	uint64_t availableForReservation;
	uint64_t currentReservation;
} DXCoreAdapterMemoryBudget;

typedef struct DXCoreAdapterEngineIndex {
	uint32_t physicalAdapterIndex;
	uint32_t engineIndex;
} DXCoreAdapterEngineIndex;

typedef struct DXCoreEngineQueryInput {
	DXCoreAdapterEngineIndex adapterEngineIndex;
	uint32_t processId;
} DXCoreEngineQueryInput;

typedef struct DXCoreEngineQueryOutput {
	uint64_t runningTime; /* microseconds */
	bool processQuerySucceeded;
} DXCoreEngineQueryOutput;

typedef struct DXCoreMemoryUsage {
	uint64_t committed;
	uint64_t resident;
} DXCoreMemoryUsage;

typedef struct DXCoreMemoryQueryInput {
	uint32_t physicalAdapterIndex;
	DXCoreMemoryType memoryType;
} DXCoreMemoryQueryInput;

typedef struct DXCoreProcessMemoryQueryInput {
	uint32_t physicalAdapterIndex;
	DXCoreMemoryType memoryType;
	uint32_t processId;
} DXCoreProcessMemoryQueryInput;

typedef struct DXCoreProcessMemoryQueryOutput {
	DXCoreMemoryUsage memoryUsage;
	bool processQuerySucceeded;
} DXCoreProcessMemoryQueryOutput;

typedef struct DXCoreAdapterProcessSetQueryInput {
	uint32_t arraySize; /* elements of processIds */
	uint32_t *processIds;
} DXCoreAdapterProcessSetQueryInput;

typedef struct DXCoreAdapterProcessSetQueryOutput {
	uint32_t processesWritten;
	uint32_t processesTotal;
} DXCoreAdapterProcessSetQueryOutput;

typedef struct DXCoreEngineNamePropertyInput {
	DXCoreAdapterEngineIndex adapterEngineIndex;
	uint32_t engineNameLength; /* characters */
	wchar_t *engineName;
} DXCoreEngineNamePropertyInput;

typedef struct DXCoreEngineNamePropertyOutput {
	uint32_t engineNameLength; /* characters */
} DXCoreEngineNamePropertyOutput;

typedef struct DXCoreFrequencyQueryOutput {
	uint64_t frequency; /* hertz, as the members below */
	uint64_t maxFrequency;
	uint64_t maxOverclockedFrequency;
} DXCoreFrequencyQueryOutput;

/* ---- identifiers ---- */
/* X(name, value): GUID_VALUE is the GUID's initializer. */
#define DXCORE_GUID_VALUE(a, b, c, d0, d1, d2, d3, d4, d5, d6, d7) \
	{                                                          \
		a, b, c,                                           \
		{                                                  \
			d0, d1, d2, d3, d4, d5, d6, d7             \
		}                                                  \
	}
#define DXCORE_IID_IUNKNOWN DXCORE_GUID_VALUE(0x00000000, 0, 0, 0xC0, 0, 0, 0, 0, 0, 0, 0x46)
#define DXCORE_IID_ADAPTER_FACTORY                                                              \
	DXCORE_GUID_VALUE(0x78EE5945, 0xC36E, 0x4B13, 0xA6, 0x69, 0x00, 0x5D, 0xD1, 0x1C, 0x0F, \
			  0x06)
#define DXCORE_IID_ADAPTER_FACTORY1                                                             \
	DXCORE_GUID_VALUE(0xD5682E19, 0x6D21, 0x401C, 0x82, 0x7A, 0x9A, 0x51, 0xA4, 0xEA, 0x35, \
			  0xD7)
#define DXCORE_IID_ADAPTER_LIST                                                                 \
	DXCORE_GUID_VALUE(0x526C7776, 0x40E9, 0x459B, 0xB7, 0x11, 0xF3, 0x2A, 0xD7, 0x6D, 0xFC, \
			  0x28)
#define DXCORE_IID_ADAPTER                                                                      \
	DXCORE_GUID_VALUE(0xF0DB4C7F, 0xFE5A, 0x42A2, 0xBD, 0x62, 0xF2, 0xA6, 0xCF, 0x6F, 0xC8, \
			  0x3E)
#define DXCORE_IID_ADAPTER1                                                                     \
	DXCORE_GUID_VALUE(0xA0783366, 0xCFA3, 0x43BE, 0x9D, 0x79, 0x55, 0xB2, 0xDA, 0x97, 0xC6, \
			  0x3C)
/* Attributes of adapters: runtimes and uses that an adapter supports. (DXC-20) */
#define DXCORE_D3D11_GRAPHICS                                                                   \
	DXCORE_GUID_VALUE(0x8C47866B, 0x7583, 0x450D, 0xF0, 0xF0, 0x6B, 0xAD, 0xA8, 0x95, 0xAF, \
			  0x4B)
#define DXCORE_D3D12_GRAPHICS                                                                   \
	DXCORE_GUID_VALUE(0x0C9ECE4D, 0x2F6E, 0x4F01, 0x8C, 0x96, 0xE8, 0x9E, 0x33, 0x1B, 0x47, \
			  0xB1)
#define DXCORE_D3D12_CORE_COMPUTE                                                               \
	DXCORE_GUID_VALUE(0x248E2800, 0xA793, 0x4724, 0xAB, 0xAA, 0x23, 0xA6, 0xDE, 0x1B, 0xE0, \
			  0x90)
#define DXCORE_D3D12_GENERIC_ML                                                                 \
	DXCORE_GUID_VALUE(0xB71B0D41, 0x1088, 0x422F, 0xA2, 0x7C, 0x02, 0x50, 0xB7, 0xD3, 0xA9, \
			  0x88)
#define DXCORE_D3D12_GENERIC_MEDIA                                                              \
	DXCORE_GUID_VALUE(0x8EB2C848, 0x82F6, 0x4B49, 0xAA, 0x87, 0xAE, 0xCF, 0xCF, 0x01, 0x74, \
			  0xC6)
/* Types of hardware: an adapter has exactly one. (DXC-21) */
#define DXCORE_HARDWARE_TYPE_GPU                                                                \
	DXCORE_GUID_VALUE(0xB69EB219, 0x3DED, 0x4464, 0x97, 0x9F, 0xA0, 0x0B, 0xD4, 0x68, 0x70, \
			  0x06)
#define DXCORE_HARDWARE_TYPE_COMPUTE_ACCELERATOR                                                \
	DXCORE_GUID_VALUE(0xE0B195DA, 0x58EF, 0x4A22, 0x90, 0xF1, 0x1F, 0x28, 0x16, 0x9C, 0xAB, \
			  0x8D)
#define DXCORE_HARDWARE_TYPE_NPU                                                                \
	DXCORE_GUID_VALUE(0xD46140C4, 0xADD7, 0x451B, 0x9E, 0x56, 0x06, 0xFE, 0x8C, 0x3B, 0x58, \
			  0xED)
#define DXCORE_HARDWARE_TYPE_MEDIA_ACCELERATOR                                                  \
	DXCORE_GUID_VALUE(0x66BDB96A, 0x050B, 0x44C7, 0xA4, 0xFD, 0xD1, 0x44, 0xCE, 0x0A, 0xB4, \
			  0x43)

/* ---- interfaces ---- */
struct IUnknown;
typedef struct IDXCoreAdapterFactory1 IDXCoreAdapterFactory1;
typedef struct IDXCoreAdapterList IDXCoreAdapterList;
typedef struct IDXCoreAdapter1 IDXCoreAdapter1;
/* The older interfaces are the first functions of the newer ones. */
typedef IDXCoreAdapterFactory1 IDXCoreAdapterFactory;
typedef IDXCoreAdapter1 IDXCoreAdapter;

/* `object` is the list or adapter that was registered. Called on any thread. */
typedef void (*PFN_DXCORE_NOTIFICATION_CALLBACK)(DXCoreNotificationType type,
						 struct IUnknown *object, void *context);

typedef struct IDXCoreAdapter1Vtbl {
	HRESULT (*QueryInterface)(IDXCoreAdapter1 *self, const GUID *riid, void **object);
	ULONG (*AddRef)(IDXCoreAdapter1 *self);
	ULONG (*Release)(IDXCoreAdapter1 *self);
	bool (*IsValid)(IDXCoreAdapter1 *self);
	bool (*IsAttributeSupported)(IDXCoreAdapter1 *self, const GUID *attribute);
	bool (*IsPropertySupported)(IDXCoreAdapter1 *self, DXCoreAdapterProperty property);
	HRESULT(*GetProperty)
	(IDXCoreAdapter1 *self, DXCoreAdapterProperty property, size_t size, void *data);
	HRESULT(*GetPropertySize)
	(IDXCoreAdapter1 *self, DXCoreAdapterProperty property, size_t *size);
	bool (*IsQueryStateSupported)(IDXCoreAdapter1 *self, DXCoreAdapterState state);
	HRESULT(*QueryState)
	(IDXCoreAdapter1 *self, DXCoreAdapterState state, size_t input_size, const void *input,
	 size_t output_size, void *output);
	bool (*IsSetStateSupported)(IDXCoreAdapter1 *self, DXCoreAdapterState state);
	HRESULT(*SetState)
	(IDXCoreAdapter1 *self, DXCoreAdapterState state, size_t details_size, const void *details,
	 size_t data_size, const void *data);
	HRESULT (*GetFactory)(IDXCoreAdapter1 *self, const GUID *riid, void **factory);
	/* IDXCoreAdapter1 */
	HRESULT(*GetPropertyWithInput)
	(IDXCoreAdapter1 *self, DXCoreAdapterProperty property, size_t input_size,
	 const void *input, size_t output_size, void *output);
} IDXCoreAdapter1Vtbl;
struct IDXCoreAdapter1 {
	const IDXCoreAdapter1Vtbl *lpVtbl;
};

typedef struct IDXCoreAdapterListVtbl {
	HRESULT (*QueryInterface)(IDXCoreAdapterList *self, const GUID *riid, void **object);
	ULONG (*AddRef)(IDXCoreAdapterList *self);
	ULONG (*Release)(IDXCoreAdapterList *self);
	HRESULT(*GetAdapter)
	(IDXCoreAdapterList *self, uint32_t index, const GUID *riid, void **adapter);
	uint32_t (*GetAdapterCount)(IDXCoreAdapterList *self);
	bool (*IsStale)(IDXCoreAdapterList *self);
	HRESULT (*GetFactory)(IDXCoreAdapterList *self, const GUID *riid, void **factory);
	HRESULT(*Sort)
	(IDXCoreAdapterList *self, uint32_t count, const DXCoreAdapterPreference *preferences);
	bool (*IsAdapterPreferenceSupported)(IDXCoreAdapterList *self,
					     DXCoreAdapterPreference preference);
} IDXCoreAdapterListVtbl;
struct IDXCoreAdapterList {
	const IDXCoreAdapterListVtbl *lpVtbl;
};

typedef struct IDXCoreAdapterFactory1Vtbl {
	HRESULT (*QueryInterface)(IDXCoreAdapterFactory1 *self, const GUID *riid, void **object);
	ULONG (*AddRef)(IDXCoreAdapterFactory1 *self);
	ULONG (*Release)(IDXCoreAdapterFactory1 *self);
	HRESULT(*CreateAdapterList)
	(IDXCoreAdapterFactory1 *self, uint32_t count, const GUID *attributes, const GUID *riid,
	 void **list);
	HRESULT(*GetAdapterByLuid)
	(IDXCoreAdapterFactory1 *self, const LUID *luid, const GUID *riid, void **adapter);
	bool (*IsNotificationTypeSupported)(IDXCoreAdapterFactory1 *self,
					    DXCoreNotificationType type);
	HRESULT(*RegisterEventNotification)
	(IDXCoreAdapterFactory1 *self, struct IUnknown *object, DXCoreNotificationType type,
	 PFN_DXCORE_NOTIFICATION_CALLBACK function, void *context, uint32_t *cookie);
	HRESULT (*UnregisterEventNotification)(IDXCoreAdapterFactory1 *self, uint32_t cookie);
	/* IDXCoreAdapterFactory1 */
	HRESULT(*CreateAdapterListByWorkload)
	(IDXCoreAdapterFactory1 *self, DXCoreWorkload workload, DXCoreRuntimeFilterFlags runtimes,
	 DXCoreHardwareTypeFilterFlags hardware, const GUID *riid, void **list);
} IDXCoreAdapterFactory1Vtbl;
struct IDXCoreAdapterFactory1 {
	const IDXCoreAdapterFactory1Vtbl *lpVtbl;
};

/*
 * Returns the factory, the same in every call of the program. riid: of IUnknown or of a factory.
 * E_POINTER: an argument is NULL. E_NOINTERFACE: riid is another one. (DXC-01, DXC-02)
 */
HRESULT APIENTRY DXCoreCreateAdapterFactory(const GUID *riid, void **factory);

#ifdef __cplusplus
}
#endif

#endif
#endif
