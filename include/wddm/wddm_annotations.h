/* SPDX-License-Identifier: MIT */
/*
 * Macros of the DDI's declarations that expand to nothing here: calling conventions, direction
 * markers, source annotations. Each one is guarded, because a driver's build, ntddk.h or
 * wsl/winadapter.h may have defined it before.
 *
 * The annotations of the first generation (__in, __out, __in_ecount(n) ...) are defined only with
 * WDDM_SAL1_ANNOTATIONS. The C++ library uses __in and __out as names of parameters, so a source
 * that defines it includes C and C++ library headers before ours.
 */
#ifndef WDDM_ANNOTATIONS_H
#define WDDM_ANNOTATIONS_H

#ifndef CONST
#define CONST const
#endif
#ifndef IN
#define IN
#endif
#ifndef OUT
#define OUT
#endif
#ifndef OPTIONAL
#define OPTIONAL
#endif
#ifndef APIENTRY
#define APIENTRY
#endif
#ifndef CALLBACK
#define CALLBACK
#endif
#ifndef WINAPI
#define WINAPI
#endif
#ifndef NTAPI
#define NTAPI
#endif
#ifndef DUMMYSTRUCTNAME
#define DUMMYSTRUCTNAME
#endif
#ifndef DUMMYUNIONNAME
#define DUMMYUNIONNAME
#endif
#ifndef EXTERN_C
#ifdef __cplusplus
#define EXTERN_C extern "C"
#else
#define EXTERN_C extern
#endif
#endif

#ifndef _In_
#define _In_
#endif
#ifndef _In_opt_
#define _In_opt_
#endif
#ifndef _In_z_
#define _In_z_
#endif
#ifndef _In_opt_z_
#define _In_opt_z_
#endif
#ifndef _Out_
#define _Out_
#endif
#ifndef _Out_opt_
#define _Out_opt_
#endif
#ifndef _Inout_
#define _Inout_
#endif
#ifndef _Inout_opt_
#define _Inout_opt_
#endif
#ifndef _Outptr_
#define _Outptr_
#endif
#ifndef _Outptr_opt_
#define _Outptr_opt_
#endif
#ifndef _Outptr_result_maybenull_
#define _Outptr_result_maybenull_
#endif
#ifndef _Check_return_
#define _Check_return_
#endif
#ifndef _Must_inspect_result_
#define _Must_inspect_result_
#endif
#ifndef _Field_z_
#define _Field_z_
#endif
#ifndef _Null_terminated_
#define _Null_terminated_
#endif
#ifndef _Maybenull_
#define _Maybenull_
#endif
#ifndef _Notnull_
#define _Notnull_
#endif
#ifndef _Use_decl_annotations_
#define _Use_decl_annotations_
#endif
#ifndef _IRQL_requires_same_
#define _IRQL_requires_same_
#endif
#ifndef _In_reads_
#define _In_reads_(a)
#endif
#ifndef _In_reads_opt_
#define _In_reads_opt_(a)
#endif
#ifndef _In_reads_bytes_
#define _In_reads_bytes_(a)
#endif
#ifndef _In_reads_bytes_opt_
#define _In_reads_bytes_opt_(a)
#endif
#ifndef _Out_writes_
#define _Out_writes_(a)
#endif
#ifndef _Out_writes_opt_
#define _Out_writes_opt_(a)
#endif
#ifndef _Out_writes_bytes_
#define _Out_writes_bytes_(a)
#endif
#ifndef _Out_writes_bytes_opt_
#define _Out_writes_bytes_opt_(a)
#endif
#ifndef _Inout_updates_
#define _Inout_updates_(a)
#endif
#ifndef _Inout_updates_opt_
#define _Inout_updates_opt_(a)
#endif
#ifndef _Inout_updates_bytes_
#define _Inout_updates_bytes_(a)
#endif
#ifndef _Inout_updates_bytes_opt_
#define _Inout_updates_bytes_opt_(a)
#endif
#ifndef _Out_writes_all_
#define _Out_writes_all_(a)
#endif
#ifndef _Field_size_
#define _Field_size_(a)
#endif
#ifndef _Field_size_opt_
#define _Field_size_opt_(a)
#endif
#ifndef _Field_size_bytes_
#define _Field_size_bytes_(a)
#endif
#ifndef _Field_size_bytes_opt_
#define _Field_size_bytes_opt_(a)
#endif
#ifndef _Field_size_full_
#define _Field_size_full_(a)
#endif
#ifndef _Field_size_bytes_full_
#define _Field_size_bytes_full_(a)
#endif
#ifndef _Success_
#define _Success_(a)
#endif
#ifndef _Function_class_
#define _Function_class_(a)
#endif
#ifndef _Function_class_DXGK_
#define _Function_class_DXGK_(a)
#endif
#ifndef _IRQL_requires_
#define _IRQL_requires_(a)
#endif
#ifndef _IRQL_requires_min_
#define _IRQL_requires_min_(a)
#endif
#ifndef _IRQL_requires_max_
#define _IRQL_requires_max_(a)
#endif
#ifndef _IRQL_requires_DXGK_
#define _IRQL_requires_DXGK_(a)
#endif
#ifndef _IRQL_raises_
#define _IRQL_raises_(a)
#endif
#ifndef _Return_type_success_
#define _Return_type_success_(a)
#endif
#ifndef _When_
#define _When_(a, b)
#endif
#ifndef _At_
#define _At_(a, b)
#endif
#ifndef _In_range_
#define _In_range_(a, b)
#endif
#ifndef _Out_range_
#define _Out_range_(a, b)
#endif
#ifndef _Field_range_
#define _Field_range_(a, b)
#endif
#ifndef _Out_writes_to_
#define _Out_writes_to_(a, b)
#endif
#ifndef _Out_writes_to_opt_
#define _Out_writes_to_opt_(a, b)
#endif
#ifndef _Out_writes_bytes_to_
#define _Out_writes_bytes_to_(a, b)
#endif
#ifndef _Inout_updates_to_
#define _Inout_updates_to_(a, b)
#endif
#ifndef _Field_size_part_
#define _Field_size_part_(a, b)
#endif
#ifndef _Field_size_bytes_part_
#define _Field_size_bytes_part_(a, b)
#endif
#ifndef _Field_size_bytes_part_opt_
#define _Field_size_bytes_part_opt_(a, b)
#endif

#ifdef WDDM_SAL1_ANNOTATIONS
#ifndef __in
#define __in
#endif
#ifndef __out
#define __out
#endif
#ifndef __inout
#define __inout
#endif
#ifndef __in_opt
#define __in_opt
#endif
#ifndef __out_opt
#define __out_opt
#endif
#ifndef __inout_opt
#define __inout_opt
#endif
#ifndef __in_ecount
#define __in_ecount(a)
#endif
#ifndef __in_ecount_opt
#define __in_ecount_opt(a)
#endif
#ifndef __out_ecount
#define __out_ecount(a)
#endif
#ifndef __out_ecount_opt
#define __out_ecount_opt(a)
#endif
#ifndef __inout_ecount
#define __inout_ecount(a)
#endif
#ifndef __in_bcount
#define __in_bcount(a)
#endif
#ifndef __in_bcount_opt
#define __in_bcount_opt(a)
#endif
#ifndef __out_bcount
#define __out_bcount(a)
#endif
#ifndef __out_bcount_opt
#define __out_bcount_opt(a)
#endif
#ifndef __inout_bcount
#define __inout_bcount(a)
#endif
#ifndef __field_ecount
#define __field_ecount(a)
#endif
#ifndef __field_ecount_opt
#define __field_ecount_opt(a)
#endif
#ifndef __field_bcount
#define __field_bcount(a)
#endif
#ifndef __field_bcount_opt
#define __field_bcount_opt(a)
#endif
#ifndef __field_ecount_full
#define __field_ecount_full(a)
#endif
#ifndef __field_bcount_full
#define __field_bcount_full(a)
#endif
#ifndef __drv_functionClass
#define __drv_functionClass(a)
#endif
#ifndef __drv_requiresIRQL
#define __drv_requiresIRQL(a)
#endif
#ifndef __drv_maxIRQL
#define __drv_maxIRQL(a)
#endif
#ifndef __drv_minIRQL
#define __drv_minIRQL(a)
#endif
#endif

#endif
