package web

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// pill is a state as a word, an icon and a tone.
type pill struct{ Word, Icon, Tone string }

// pillOf returns the pill of a state, of a message, a lane, a check or an outcome.
func pillOf(word string) pill {
	switch word {
	case "pending", "waiting", "gathering", "open":
		return pill{word, "clock", "blue"}
	case "claimed", "sending":
		return pill{"sending", "send", "violet"}
	case "running":
		return pill{word, "play", "violet"}
	case "retrying", "transient", "unreachable", "degraded", "down", "deferred", "back-off", "waits", "partial", "skipped":
		return pill{word, "warn", "amber"}
	case "delivered", "ok", "up", "online", "accepted", "reached", "done":
		return pill{word, "check", "green"}
	case "parked", "permanent", "failing", "held", "lane_fault", "stuck", "refused", "lost":
		return pill{strings.ReplaceAll(word, "_", " "), "stop", "red"}
	case "cancelled", "disabled", "off":
		return pill{word, "stop", "grey"}
	case "paused":
		return pill{word, "pause", "amber"}
	case "expired":
		return pill{word, "clock", "grey"}
	case "discarded", "discarding":
		return pill{word, "trash", "grey"}
	}
	return pill{strings.ReplaceAll(word, "_", " "), "dot", "grey"}
}

// grouped writes a number with thin spaces between its thousands.
func grouped(n int64) string {
	text := strconv.FormatInt(n, 10)
	for i := len(text) - 3; i > 0 && text[i-1] != '-'; i -= 3 {
		text = text[:i] + "\u2009" + text[i:]
	}
	return text
}

// countOf writes a number of any size, for templates.
func countOf(n any) string {
	switch n := n.(type) {
	case int:
		return grouped(int64(n))
	case int64:
		return grouped(n)
	}
	return fmt.Sprint(n)
}

// sizeOf writes a number of bytes.
func sizeOf(n int) string {
	switch {
	case n < 1<<10:
		return fmt.Sprintf("%d B", n)
	case n < 1<<20:
		return fmt.Sprintf("%.1f KiB", float64(n)/(1<<10))
	}
	return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20))
}

// inSeconds writes a duration that is given in seconds.
func inSeconds(s float64) string {
	if s <= 0 {
		return "none"
	}
	return inWords(time.Duration(s * float64(time.Second)))
}

// upper returns a word with a capital at its beginning. It is for words of ours, which are ASCII.
func upper(word string) string {
	if word == "" {
		return ""
	}
	return strings.ToUpper(word[:1]) + word[1:]
}

// shellQuote writes an argument for a POSIX shell.
func shellQuote(s string) string {
	safe := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-_./:@%+=,", r)
	}
	if s != "" && strings.IndexFunc(s, func(r rune) bool { return !safe(r) }) < 0 && s[0] != '-' {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

// laneKind returns the command that is about a lane, and its name there.
func laneKind(lane string) (command, name string) {
	for _, kind := range []string{"channel", "subscription"} {
		if name, ok := strings.CutPrefix(lane, kind+":"); ok {
			return kind + "s", name
		}
	}
	return "destinations", lane
}
