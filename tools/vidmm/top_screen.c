/* SPDX-License-Identifier: MIT */
/*
 * The view in a terminal, by curses. Keys are waited for with poll, which a signal interrupts, so
 * that the terminal is restored at once.
 */
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define NCURSES_WIDECHAR 1
#define NCURSES_NOMACROS 1
#include <curses.h>
#include <term.h>

#include "top.h"

#define READ_EVENTS 100000u /* between two looks at the keyboard */
#define WAIT_MS_MAX 250
#define QUIET_S     3u /* without events, after which the view says so */
#define FILTER_MAX  64u

#define KEYS " q quit  h help  s sort  r reverse  / filter  c closed  arrows scroll"

enum color { COLOR_BAR = 1, COLOR_ALARM };

struct screen {
	struct top_feed *feed;
	struct top_grid grid;
	struct top_view view;
	char filter[FILTER_MAX * MB_LEN_MAX], footer[FILTER_MAX * MB_LEN_MAX + 64];
	bool editing; /* keys are the filter's */
	bool closed_toggled;
	uint32_t page, scroll_most;
	uint64_t last_ms, last_events; /* when the newest event was read, and its number */
	bool color, quit;
};

static volatile sig_atomic_t stopped;

static void stop(int number)
{
	(void)number;
	stopped = 1;
}

static uint64_t now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

/* ---- drawing ---- */

static chtype attributes(const struct screen *screen, uint8_t look)
{
	bool color = screen->color;

	switch (look) {
	case TOP_STRONG:
		return A_BOLD;
	case TOP_FAINT:
		return A_DIM;
	case TOP_HEADING:
		return A_REVERSE;
	case TOP_BAR:
		return color ? (chtype)COLOR_PAIR(COLOR_BAR) : A_NORMAL;
	case TOP_ALARM:
		return A_BOLD | (color ? (chtype)COLOR_PAIR(COLOR_ALARM) : A_REVERSE);
	default:
		return A_NORMAL;
	}
}

static void draw_row(const struct screen *screen, uint32_t row)
{
	const struct top_cell *cells = top_grid_row(&screen->grid, row);

	for (uint32_t i = 0; i < screen->grid.width; i++) {
		wchar_t text[2] = {cells[i].character, L'\0'};

		if (!text[0])
			continue;
		attrset((int)attributes(screen, cells[i].look));
		mvaddnwstr((int)row, (int)i, text, 1);
	}
}

static void draw(struct screen *screen)
{
	struct top_view *view = &screen->view;
	uint64_t quiet_s = (now_ms() - screen->last_ms) / 1000;
	int height, width;

	getmaxyx(stdscr, height, width);
	if (screen->grid.width != (uint32_t)width) {
		top_grid_finish(&screen->grid);
		screen->grid.width = (uint32_t)width;
	}
	screen->grid.height_most = (uint32_t)height;
	top_grid_clear(&screen->grid);
	view->quiet_s = quiet_s >= QUIET_S ? quiet_s : 0;
	view->closed = top_view_all(view) != screen->closed_toggled;
	if (screen->editing)
		snprintf(screen->footer, sizeof(screen->footer), " /%s_   Enter: done   Esc: all",
			 screen->filter);
	view->footer = screen->editing ? screen->footer : KEYS;
	screen->page = (uint32_t)height / 3 + 1;
	screen->scroll_most = top_view_draw(view, &screen->grid);
	if (view->scroll > screen->scroll_most)
		view->scroll = screen->scroll_most;
	erase();
	for (uint32_t row = 0; row < screen->grid.height; row++)
		draw_row(screen, row);
	move(height - 1, width - 1);
	refresh();
}

/* ---- keys ---- */

static void remove_character(char *text)
{
	size_t length = strlen(text);

	while (length && ((unsigned char)text[length - 1] & 0xc0) == 0x80)
		length--;
	text[length ? length - 1 : 0] = '\0';
}

static void append_character(struct screen *screen, wint_t key)
{
	char bytes[MB_LEN_MAX + 1] = "";
	mbstate_t state = {0};
	size_t count = wcwidth((wchar_t)key) > 0 ? wcrtomb(bytes, (wchar_t)key, &state) : 0;

	if (count && count != (size_t)-1 &&
	    strlen(screen->filter) + count < sizeof(screen->filter)) {
		bytes[count] = '\0';
		strcat(screen->filter, bytes);
	}
}

static void edit_filter(struct screen *screen, wint_t key, bool function)
{
	if (key == 27 && !function)
		screen->filter[0] = '\0';
	if ((!function && (key == 27 || key == '\n' || key == '\r')) ||
	    (function && key == KEY_ENTER))
		screen->editing = false;
	else if ((function && key == KEY_BACKSPACE) || (!function && (key == 127 || key == 8)))
		remove_character(screen->filter);
	else if (!function)
		append_character(screen, key);
	screen->view.scroll = 0;
}

static void scroll_to(struct screen *screen, int64_t at)
{
	int64_t most = screen->scroll_most;

	screen->view.scroll = (uint32_t)(at < 0 ? 0 : at > most ? most : at);
}

/* Moves to the next column that is shown, or backwards. */
static void change_sort(struct screen *screen, uint32_t step)
{
	uint32_t sort = screen->view.sort;

	for (uint32_t i = 0; i < TOP_COLUMNS; i++) {
		sort = (sort + step) % TOP_COLUMNS;
		if (top_table_shows(sort, screen->grid.width))
			break;
	}
	screen->view.sort = sort;
}

static void function_key(struct screen *screen, wint_t key)
{
	int64_t at = screen->view.scroll;

	switch (key) {
	case KEY_UP:
		scroll_to(screen, at - 1);
		break;
	case KEY_DOWN:
		scroll_to(screen, at + 1);
		break;
	case KEY_PPAGE:
		scroll_to(screen, at - screen->page);
		break;
	case KEY_NPAGE:
		scroll_to(screen, at + screen->page);
		break;
	case KEY_HOME:
		scroll_to(screen, 0);
		break;
	case KEY_END:
		scroll_to(screen, INT64_MAX);
		break;
	case KEY_F(6):
		change_sort(screen, 1);
		break;
	default:
		break;
	}
}

static void letter_key(struct screen *screen, wint_t key)
{
	switch (key) {
	case 'q':
		screen->quit = true;
		break;
	case 'h':
	case '?':
		screen->view.help = true;
		break;
	case 's':
		change_sort(screen, 1);
		break;
	case 'S':
		change_sort(screen, TOP_COLUMNS - 1);
		break;
	case 'r':
		screen->view.reverse = !screen->view.reverse;
		break;
	case 'c':
		screen->closed_toggled = !screen->closed_toggled;
		break;
	case '/':
		screen->editing = true;
		break;
	case 27:
		screen->filter[0] = '\0';
		break;
	default:
		break;
	}
}

static void take_key(struct screen *screen, wint_t key, bool function)
{
	if (function && key == KEY_RESIZE)
		return;
	if (!function && key == 3) /* Ctrl-C, where the terminal makes no signal of it */
		screen->quit = true;
	else if (screen->editing)
		edit_filter(screen, key, function);
	else if (screen->view.help && (function || key != 'q'))
		screen->view.help = false;
	else if (function)
		function_key(screen, key);
	else
		letter_key(screen, key);
}

static void take_keys(struct screen *screen)
{
	wint_t key;
	int kind;

	while (!screen->quit && (kind = get_wch(&key)) != ERR)
		take_key(screen, key, kind == KEY_CODE_YES);
}

/* ---- the loop ---- */

/* Reads events, up to the end of the file or for a moment. */
static void read_events(struct screen *screen)
{
	struct top_feed *feed = screen->feed;

	screen->view.reading = top_feed_read(feed, READ_EVENTS);
	screen->view.status = feed->status;
	if (feed->state.events != screen->last_events) {
		screen->last_events = feed->state.events;
		screen->last_ms = now_ms();
	}
}

/* Waits for a key, a signal, or the time. Without a terminal there are no more keys. */
static void wait_for_key(struct screen *screen, uint64_t until_ms)
{
	struct pollfd keys = {.fd = STDIN_FILENO, .events = POLLIN};
	uint64_t now = now_ms(), left = until_ms > now ? until_ms - now : 0;

	if (screen->view.reading)
		left = 0;
	if (poll(&keys, 1, left < WAIT_MS_MAX ? (int)left : WAIT_MS_MAX) > 0 &&
	    (keys.revents & (POLLHUP | POLLERR | POLLNVAL)))
		screen->quit = true;
}

static void show(struct screen *screen, uint32_t delay_ms)
{
	screen->last_ms = now_ms();
	while (!screen->quit && !stopped) {
		uint64_t until_ms = now_ms() + delay_ms;

		read_events(screen);
		do {
			draw(screen);
			wait_for_key(screen, until_ms);
			take_keys(screen);
		} while (!screen->quit && !stopped && !screen->view.reading && now_ms() < until_ms);
	}
}

static void start_colors(struct screen *screen)
{
	const char *none = getenv("NO_COLOR");

	screen->color = (!none || !none[0]) && has_colors() && start_color() == OK &&
			use_default_colors() == OK && init_pair(COLOR_BAR, COLOR_CYAN, -1) == OK &&
			init_pair(COLOR_ALARM, COLOR_RED, -1) == OK;
}

static void catch_signals(void)
{
	struct sigaction action = {.sa_handler = stop};

	sigemptyset(&action.sa_mask);
	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
}

/*
 * Returns whether the terminal is known and can move its cursor. newterm accepts terminals that
 * cannot, and leaks memory for those that are not known.
 */
static bool is_usable(void)
{
	bool usable;
	int found;

	if (setupterm(NULL, STDOUT_FILENO, &found) != OK)
		return false;
	usable = cursor_address != NULL;
	del_curterm(cur_term);
	return usable;
}

enum replay_status top_screen(struct top_feed *feed, uint32_t delay_ms)
{
	struct screen screen = {
		.feed = feed,
		.view = {.state = &feed->state, .path = feed->path, .sort = TOP_RESIDENT}};
	SCREEN *terminal;

	screen.view.filter = screen.filter;
	catch_signals();
	terminal = is_usable() ? newterm(NULL, stdout, stdin) : NULL;
	if (!terminal) {
		const char *name = getenv("TERM");

		fprintf(stderr,
			"vidmm top: terminal \"%s\" is not known or cannot move its cursor\n",
			name ? name : "");
		return REPLAY_ENVIRONMENT;
	}
	set_escdelay(100);
	cbreak();
	noecho();
	keypad(stdscr, TRUE);
	nodelay(stdscr, TRUE);
	curs_set(0);
	start_colors(&screen);
	show(&screen, delay_ms);
	/* The shell's prompt comes there, if the terminal has no alternate screen. */
	move(LINES - 1, 0);
	clrtoeol();
	refresh();
	endwin();
	delscreen(terminal);
	if (screen.grid.failed)
		fprintf(stderr, "vidmm top: out of memory\n");
	top_grid_finish(&screen.grid);
	return screen.grid.failed ? REPLAY_ENVIRONMENT : REPLAY_CLEAN;
}
