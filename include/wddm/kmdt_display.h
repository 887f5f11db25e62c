/* SPDX-License-Identifier: MIT */
/*
 * Back light, monitor links, display ownership, palettes. Part of d3dkmdt.h.
 * Source: the DXGK_BRIGHTNESS_*, DXGK_MONITORLINKINFO_*, DXGK_DISPLAY_INFORMATION and
 * DXGKARG_SETPALETTE pages; values in tests/abi/data.
 */
#ifndef WDDM_KMDT_DISPLAY_H
#define WDDM_KMDT_DISPLAY_H

#include "kmdt_vidpn.h"

#ifdef __cplusplus
extern "C" {
#endif

#define DXGK_BRIGHTNESS_MAXIMUM_NIT_RANGE_COUNT 16

typedef struct _DXGKARG_SETPALETTE {
	D3DDDI_VIDEO_PRESENT_SOURCE_ID VidPnSourceId;
	UINT FirstEntry;
	UINT NumEntries;
	D3DKMDT_PALETTEDATA *pLookupTable;
} DXGKARG_SETPALETTE;

#pragma pack(push, 1)
typedef struct _DXGK_BACKLIGHT_INFO {
	USHORT BacklightUsersetting;
	USHORT BacklightEffective;
	D3DDDI_GAMMA_RAMP_RGB256x3x16 GammaRamp;
} DXGK_BACKLIGHT_INFO;
#pragma pack(pop)

#pragma pack(push, 1)
typedef struct _DXGK_BRIGHTNESS_CAPS {
	union {
		struct {
			UINT SmoothBrightness : 1;   /* 0x00000001 */
			UINT AdaptiveBrightness : 1; /* 0x00000002 */
			UINT NitsBrightness : 1;     /* 0x00000004 */
			UINT Reserved : 29;          /* 0xFFFFFFF8 */
		};
		UINT Value;
	};
} DXGK_BRIGHTNESS_CAPS;
#pragma pack(pop)

#pragma pack(push, 1)
typedef struct _DXGK_BRIGHTNESS_NIT_RANGE {
	UINT32 MinimumLevelMillinit;
	UINT32 MaximumLevelMillinit;
	UINT32 StepSizeMillinit;
} DXGK_BRIGHTNESS_NIT_RANGE;
#pragma pack(pop)

#pragma pack(push, 1)
typedef struct _DXGK_BRIGHTNESS_GET_NIT_RANGES_OUT {
	UINT32 NormalRangeCount;
	UINT32 RangeCount;
	UINT32 PreferredMaximumBrightness;
	DXGK_BRIGHTNESS_NIT_RANGE SupportedRanges[16];
} DXGK_BRIGHTNESS_GET_NIT_RANGES_OUT;
#pragma pack(pop)

#pragma pack(push, 1)
typedef struct _DXGK_BRIGHTNESS_GET_OUT {
	UINT32 CurrentBrightnessMillinits;
	UINT32 TargetBrightnessMillinits;
} DXGK_BRIGHTNESS_GET_OUT;
#pragma pack(pop)

#pragma pack(push, 1)
typedef struct _DXGK_BRIGHTNESS_SENSOR_DATA_CHROMATICITY {
	FLOAT ChromaticityX;
	FLOAT ChromaticityY;
} DXGK_BRIGHTNESS_SENSOR_DATA_CHROMATICITY;
#pragma pack(pop)

#pragma pack(push, 1)
typedef struct _DXGK_BRIGHTNESS_SENSOR_DATA {
	UINT32 Size;
	union {
		struct {
			UINT AlsReadingValid : 1;       /* 0x00000001 */
			UINT ChromaticityValid : 1;     /* 0x00000002 */
			UINT ColorTemperatureValid : 1; /* 0x00000004 */
			UINT Reserved : 29;             /* 0xFFFFFFF8 */
		} Flags;
		UINT ValidSensorValues;
	};
	FLOAT AlsReading;
	DXGK_BRIGHTNESS_SENSOR_DATA_CHROMATICITY Chromaticity;
	FLOAT ColorTemperature;
} DXGK_BRIGHTNESS_SENSOR_DATA;
#pragma pack(pop)

#pragma pack(push, 1)
typedef struct _DXGK_BRIGHTNESS_SET_IN {
	UINT32 BrightnessMillinits;
	UINT32 TransitionTimeMs;
	DXGK_BRIGHTNESS_SENSOR_DATA SensorReadings;
} DXGK_BRIGHTNESS_SET_IN;
#pragma pack(pop)

#pragma pack(push, 1)
typedef struct _DXGK_BRIGHTNESS_STATE {
	union {
		struct {
			UINT SmoothBrightness : 1; /* 0x00000001 */
			UINT Reserved : 31;        /* 0xFFFFFFFE */
		};
		UINT Value;
	};
} DXGK_BRIGHTNESS_STATE;
#pragma pack(pop)

typedef struct _DXGK_DISPLAY_INFORMATION {
	UINT Width;
	UINT Height;
	UINT Pitch;
	D3DDDIFORMAT ColorFormat;
	LARGE_INTEGER PhysicAddress;
	D3DDDI_VIDEO_PRESENT_TARGET_ID TargetId;
	ULONG AcpiId;
} DXGK_DISPLAY_INFORMATION;

#pragma pack(push, 1)
typedef union _DXGK_MONITORLINKINFO_CAPABILITIES {
	struct {
		UINT Stereo : 1;                     /* 0x00000001 */
		UINT WideColorSpace : 1;             /* 0x00000002 */
		UINT HighColorSpace : 1;             /* 0x00000004 */
		UINT DynamicColorSpace : 1;          /* 0x00000008 */
		UINT DynamicBitsPerColorChannel : 1; /* 0x00000010 */
		UINT DynamicColorEncodingFormat : 1; /* 0x00000020 */
		UINT DedicatedTimingGeneration : 1;  /* 0x00000040 */
		UINT TargetIndependentPrimary : 1;   /* 0x00000080 */
		UINT SyncLockIdentical : 1;          /* 0x00000100 */
		UINT Hdr10Plus : 1;                  /* 0x00000200 */
		UINT DolbyVisionLowLatency : 1;      /* 0x00000400 */
		UINT VariableRefresh : 1;            /* 0x00000800 */
		UINT Reserved : 20;                  /* 0xFFFFF000 */
	};
	UINT Value;
} DXGK_MONITORLINKINFO_CAPABILITIES;
#pragma pack(pop)

#pragma pack(push, 1)
typedef union _DXGK_MONITORLINKINFO_USAGEHINTS {
	struct {
		UINT Hidden : 1;    /* 0x00000001 */
		UINT Reserved : 31; /* 0xFFFFFFFE */
	};
	UINT Value;
} DXGK_MONITORLINKINFO_USAGEHINTS;
#pragma pack(pop)

#ifdef __cplusplus
}
#endif

#endif
