/* SPDX-License-Identifier: MIT */
/*
 * Evaluation of ACPI methods: the buffers of DxgkCbEvalAcpiMethod. Source: the acpiioct.h pages.
 */
#ifndef WDDM_ACPIIOCT_H
#define WDDM_ACPIIOCT_H

#include <wddm_kernel.h>

#define ACPI_EVAL_INPUT_BUFFER_SIGNATURE                0x42696541u /* 'BieA' */
#define ACPI_EVAL_INPUT_BUFFER_SIMPLE_INTEGER_SIGNATURE 0x49696541u /* 'IieA' */
#define ACPI_EVAL_INPUT_BUFFER_SIMPLE_STRING_SIGNATURE  0x53696541u /* 'SieA' */
#define ACPI_EVAL_INPUT_BUFFER_COMPLEX_SIGNATURE        0x43696541u /* 'CieA' */
#define ACPI_EVAL_OUTPUT_BUFFER_SIGNATURE               0x426F6541u /* 'BoeA' */

#define ACPI_METHOD_ARGUMENT_INTEGER    0
#define ACPI_METHOD_ARGUMENT_STRING     1
#define ACPI_METHOD_ARGUMENT_BUFFER     2
#define ACPI_METHOD_ARGUMENT_PACKAGE    3
#define ACPI_METHOD_ARGUMENT_PACKAGE_EX 4

typedef struct _ACPI_METHOD_ARGUMENT {
	USHORT Type;
	USHORT DataLength; /* bytes of Data */
	union {
		ULONG Argument;
		UCHAR Data[1];
	};
} ACPI_METHOD_ARGUMENT, *PACPI_METHOD_ARGUMENT;

typedef struct _ACPI_EVAL_INPUT_BUFFER {
	ULONG Signature;
	union {
		UCHAR MethodName[4];
		ULONG MethodNameAsUlong;
	};
} ACPI_EVAL_INPUT_BUFFER, *PACPI_EVAL_INPUT_BUFFER;

typedef struct _ACPI_EVAL_INPUT_BUFFER_COMPLEX {
	ULONG Signature;
	union {
		UCHAR MethodName[4];
		ULONG MethodNameAsUlong;
	};
	ULONG Size; /* bytes of the arguments */
	ULONG ArgumentCount;
	ACPI_METHOD_ARGUMENT Argument[1];
} ACPI_EVAL_INPUT_BUFFER_COMPLEX;

typedef struct _ACPI_EVAL_OUTPUT_BUFFER {
	ULONG Signature;
	ULONG Length; /* bytes of the whole buffer */
	ULONG Count;
	ACPI_METHOD_ARGUMENT Argument[1];
} ACPI_EVAL_OUTPUT_BUFFER;

#define ACPI_METHOD_ARGUMENT_LENGTH(length)         \
	(FIELD_OFFSET(ACPI_METHOD_ARGUMENT, Data) + \
	 ((length) > sizeof(ULONG) ? (length) : sizeof(ULONG)))
#define ACPI_METHOD_ARGUMENT_LENGTH_FROM_ARGUMENT(argument) \
	ACPI_METHOD_ARGUMENT_LENGTH(((PACPI_METHOD_ARGUMENT)(argument))->DataLength)
#define ACPI_METHOD_NEXT_ARGUMENT(argument)           \
	((PACPI_METHOD_ARGUMENT)((PUCHAR)(argument) + \
				 ACPI_METHOD_ARGUMENT_LENGTH_FROM_ARGUMENT(argument)))

#endif
