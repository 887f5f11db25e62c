/* SPDX-License-Identifier: MIT */
/*
 * `vidmm run`: runs a program that finds libvidmm.so as libdxcore.so, with an adapter in its
 * process or in a host beside it, and reports what the program did (docs/run.md).
 */
#ifndef VIDMM_TOOLS_RUN_H
#define VIDMM_TOOLS_RUN_H

#include <limits.h>
#include <stdbool.h>
#include <stdio.h>

#include "caps.h"
#include "report/report.h"

/* Exit codes for a program that cannot be executed, as those of shells. */
enum { RUN_NOT_EXECUTABLE = 126, RUN_NOT_FOUND = 127, RUN_SIGNAL = 128 };

struct run_options {
	struct caps_options adapter;
	char **program; /* its name and arguments, terminated by NULL; part of argv */
	char *report;   /* file of the page; NULL: the standard error stream */
	char *record;   /* with serve: file for a recording of all events; NULL: none */
	bool serve;     /* in a host beside the program */
	const struct vidmm_policy *policy; /* from a file, with serve; NULL: none */
	bool no_namespace;
};
/* Parses argv[1..] of `vidmm run`; returns as options_parse does (options.h). */
bool run_options_parse(int argc, const char **argv, struct run_options *options, int *exit_code);
void run_options_finish(struct run_options *options);

/* ---- run_folder.c: the private folder of a run ---- */
struct run_folder {
	char library[PATH_MAX]; /* libvidmm.so */
	char path[PATH_MAX];    /* the folder; empty: none */
	char *adapter;          /* value of VIDMM_ADAPTER; NULL with --serve */
	char *socket, *report;  /* paths in the folder */
};
/* The path under which some programs open libdxcore.so. */
#define RUN_WSL_PATH "/usr/lib/wsl/lib/libdxcore.so"
/*
 * Finds the library and makes the folder with links to it. Returns false after a message.
 * run_folder_remove follows in any case.
 */
bool run_folder_make(const struct run_options *options, struct run_folder *folder);
void run_folder_remove(struct run_folder *folder);

/* ---- run_namespace.c ---- */
/*
 * Prepares a mount namespace in which RUN_WSL_PATH names the library, and tries it in another
 * process. Returns the folder that it covers. Returns NULL if no namespace is needed, or if none is
 * possible; the report then has the step that failed and its errno.
 */
const char *run_namespace_prepare(const struct run_folder *folder, struct vmm_report *report);
/* Enters it, with the calling process and those that it starts. */
void run_namespace_enter(const struct run_folder *folder, const char *base,
			 struct vmm_report *report);
/* Returns what the step does, for a message. */
const char *run_namespace_step(uint32_t step);

/* ---- run_child.c ---- */
struct run_end {
	int exec_error;  /* errno of the exec; 0: the program was started */
	int status;      /* of waitpid */
	int host_status; /* the same of the host of --serve; 0 if there is none */
};
/*
 * Starts the program, passes signals on to it, and waits for its end. Returns false after a message
 * if the system has no process for it.
 */
bool run_child(const struct run_options *options, const struct run_folder *folder,
	       struct vmm_report *report, struct run_end *end);
/* Returns the exit code of `vidmm run`. */
int run_exit_code(const struct run_end *end);

/* ---- run_host.c ---- */
/*
 * Starts a host in a child process, which serves at folder->socket. Returns REPLAY_CLEAN when
 * programs can connect; else what `vidmm serve` returned.
 */
enum replay_status run_host_start(const struct run_options *options,
				  const struct run_folder *folder, struct vmm_report *report,
				  int *process);
/* Ends the host and waits for it. Returns its status, as waitpid does. */
int run_host_stop(int process);

/* ---- run_page.c ---- */
void run_page_print(FILE *file, const struct run_options *options, const struct vmm_report *report,
		    const struct run_end *end);

int run_main(int argc, const char **argv);

#endif
