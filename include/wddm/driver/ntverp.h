/* SPDX-License-Identifier: MIT */
/* The version of the build, for version resources of drivers. Fixed numbers of Windows 10. */
#ifndef WDDM_NTVERP_H
#define WDDM_NTVERP_H

#define VER_PRODUCTMAJORVERSION 10
#define VER_PRODUCTMINORVERSION 0
#define VER_PRODUCTBUILD        19041
#define VER_PRODUCTBUILD_QFE    1
#define VER_PRODUCTVERSION_W    (0x0A00)

#endif
