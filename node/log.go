package node

import (
	"io"
	"log/slog"
	"time"

	"github.com/holdfast-mq/holdfast/config"
	"github.com/holdfast-mq/holdfast/internal/logs"
)

// logging is the node's log. Nobody waits for a line to be written.
type logging struct {
	*slog.Logger
	told  *slog.Logger // ignores the level: for answers that somebody asked for
	level slog.LevelVar
	lines *logs.Writer // nil: no log
	own   bool         // lines is closed by this node
}

// lastLines is how long the end of a node waits until its last lines are written.
const lastLines = 300 * time.Millisecond

func newLogging(c config.Log, to io.Writer) *logging {
	l := &logging{}
	if to == nil {
		l.Logger = slog.New(slog.DiscardHandler)
		l.told = l.Logger
		return l
	}
	if l.lines, _ = to.(*logs.Writer); l.lines == nil {
		l.lines, l.own = logs.New(to), true
	}
	l.setLevel(c.Level)
	form := func(o *slog.HandlerOptions) slog.Handler { return slog.NewTextHandler(l.lines, o) }
	if c.Format == config.LogJSON {
		form = func(o *slog.HandlerOptions) slog.Handler { return slog.NewJSONHandler(l.lines, o) }
	}
	l.Logger, l.told = slog.New(form(&slog.HandlerOptions{Level: &l.level})), slog.New(form(nil))
	return l
}

func (l *logging) setLevel(to config.LogLevel) {
	var level slog.Level
	if err := level.UnmarshalText([]byte(to)); err == nil { // it was checked; on error the level stays Info
		l.level.Set(level)
	}
}

func (l *logging) close() {
	if l.own {
		l.lines.Close(lastLines)
	}
}

// dropped returns how many lines could not be written.
func (l *logging) dropped() int64 {
	lines, _ := l.lost()
	return lines
}

// lost returns how many lines could not be written, and when the last of them was lost.
func (l *logging) lost() (lines int64, last time.Time) {
	if l.lines == nil {
		return 0, time.Time{}
	}
	return l.lines.Lost()
}
