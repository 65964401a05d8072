// The rest of this package is how programs log. Every line has a message for people. As JSON it also has an event: a name that stays
// the same when the message changes, by which alarms and searches find the line. The list of events is in events.go.

package measures

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync"
)

// Logging are the flags of a command that runs until it is told to stop.
type Logging struct {
	Log      string `enum:"text,json" default:"text" help:"How lines on stderr read: text for people, or json, one object a line with a stable event (default ${default})."`
	LogLevel string `enum:"debug,info,warn,error" default:"info" help:"Which lines are logged: this level and above (default ${default})."`
}

// Open returns the logger of a command whose lines go to stderr, and the writer of its other output there: as
// JSON, each such line is a line of the log too.
func (f Logging) Open(stderr io.Writer) (*slog.Logger, io.Writer) {
	var level slog.Level
	if err := level.UnmarshalText([]byte(f.LogLevel)); err != nil {
		level = slog.LevelInfo // of no flag, in tests
	}
	if f.Log != "json" {
		return slog.New(slog.NewTextHandler(stderr, &slog.HandlerOptions{Level: level})), stderr
	}
	log := JSON(stderr, level)
	return log, &lines{log: log}
}

// JSON returns a logger that writes one object a line, each with its event. Names of attributes have no spaces.
func JSON(w io.Writer, level slog.Leveler) *slog.Logger {
	return slog.New(named{slog.NewJSONHandler(w, &slog.HandlerOptions{Level: level, ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		a.Key = strings.ReplaceAll(a.Key, " ", "_")
		if d, ok := a.Value.Any().(fmt.Stringer); ok && a.Key != slog.LevelKey && a.Key != slog.TimeKey {
			a.Value = slog.StringValue(d.String())
		}
		return a
	}})})
}

// named is a handler that adds the event of a line. A line that has none in the list has the event "other".
type named struct{ slog.Handler }

// Handle adds the event of the line, and the trace of an error that has one.
func (h named) Handle(ctx context.Context, r slog.Record) error {
	r.AddAttrs(slog.String("event", Of(r.Level, r.Message)))
	if trace := traceOf(r); trace != "" {
		r.AddAttrs(slog.String(TraceID, trace))
	}
	return h.Handler.Handle(ctx, r)
}

// TraceID is the attribute with the id of the trace that a line belongs to.
const TraceID = "trace_id"

// Traced is an error of work whose trace is kept.
type Traced struct {
	Err   error
	Trace string // the id
}

func (t *Traced) Error() string { return t.Err.Error() }
func (t *Traced) Unwrap() error { return t.Err }

// traceOf returns the trace of the first error among the attributes of a line that has one, "" for none.
func traceOf(r slog.Record) (trace string) {
	r.Attrs(func(a slog.Attr) bool {
		err, is := a.Value.Any().(error)
		var t *Traced
		if is && errors.As(err, &t) {
			trace = t.Trace
		}
		return trace == ""
	})
	return trace
}

func (h named) WithAttrs(attrs []slog.Attr) slog.Handler { return named{h.Handler.WithAttrs(attrs)} }
func (h named) WithGroup(name string) slog.Handler       { return named{h.Handler.WithGroup(name)} }

// lines makes each line that a command prints a line of the log. It may be used concurrently.
type lines struct {
	log  *slog.Logger
	mu   sync.Mutex
	rest []byte
}

// Write logs each whole line, without the space around it, and keeps the text after the last line
// end for the next call. Empty lines are dropped. It never returns an error.
func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.rest = append(l.rest, p...)
	for {
		line, rest, whole := bytes.Cut(l.rest, []byte("\n"))
		if !whole {
			return len(p), nil
		}
		l.rest = bytes.Clone(rest)
		if text := strings.TrimSpace(string(line)); text != "" {
			l.log.Info("progress", "says", text)
		}
	}
}
