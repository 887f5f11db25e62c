/* SPDX-License-Identifier: MIT */
/*
 * Creation of a resource as the runtime asks a user-mode driver for it. Part of d3dumddi.h.
 * Source: the pages D3DDDIARG_CREATERESOURCE and D3DDDIARG_CREATERESOURCE2.
 */
#ifndef WDDM_UMDDI_RESOURCE_H
#define WDDM_UMDDI_RESOURCE_H

#include "d3dukmdt.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct _D3DDDIARG_CREATERESOURCE {
	D3DDDIFORMAT Format;
	D3DDDI_POOL Pool;
	D3DDDIMULTISAMPLE_TYPE MultisampleType;
	UINT MultisampleQuality;
	const D3DDDI_SURFACEINFO *pSurfList;
	UINT SurfCount;
	UINT MipLevels;
	UINT Fvf;
	D3DDDI_VIDEO_PRESENT_SOURCE_ID VidPnSourceId;
	D3DDDI_RATIONAL RefreshRate;
	HANDLE hResource;
	D3DDDI_RESOURCEFLAGS Flags;
	D3DDDI_ROTATION Rotation;
} D3DDDIARG_CREATERESOURCE;

typedef struct _D3DDDIARG_CREATERESOURCE2 {
	D3DDDIFORMAT Format;
	D3DDDI_POOL Pool;
	D3DDDIMULTISAMPLE_TYPE MultisampleType;
	UINT MultisampleQuality;
	const D3DDDI_SURFACEINFO *pSurfList;
	UINT SurfCount;
	UINT MipLevels;
	UINT Fvf;
	D3DDDI_VIDEO_PRESENT_SOURCE_ID VidPnSourceId;
	D3DDDI_RATIONAL RefreshRate;
	HANDLE hResource;
	D3DDDI_RESOURCEFLAGS Flags;
	D3DDDI_ROTATION Rotation;
	D3DDDI_RESOURCEFLAGS2 Flags2;
} D3DDDIARG_CREATERESOURCE2;

#ifdef __cplusplus
}
#endif

#endif
