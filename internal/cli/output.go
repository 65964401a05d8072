package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"sync"
	"syscall"
)

// Output is a program's stdout, without characters that a terminal misreads. The first write that fails is remembered and ends the
// context of the command, so that no command has to look at each line it prints, and
// none ends well whose results were not written.
type Output struct {
	name   string
	to     readable
	cancel context.CancelCauseFunc

	mu  sync.Mutex
	err error
}

// outputError is the cause of a context that an Output ended.
type outputError struct{ error }

// Unwrap gives the error of the write, such as a full disk.
func (e *outputError) Unwrap() error { return e.error }

// Results makes the Output of a program over its stdout, and the context for its
// command. The reader of a pipe may end first: then writing fails, and kills nothing.
func (p *Program) Results(ctx context.Context, stdout io.Writer) (context.Context, *Output) {
	signal.Ignore(syscall.SIGPIPE)
	ctx, cancel := context.WithCancelCause(ctx)
	return ctx, &Output{name: p.Name, to: readable{to: stdout}, cancel: cancel}
}

// Write passes b on until a write fails, and then returns that error for ever. Several
// goroutines may call it; each call stays whole.
func (o *Output) Write(b []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.err != nil {
		return 0, o.err
	}
	n, err := o.to.Write(b)
	o.failed(err)
	return n, o.err
}

// Columns returns how many characters a line has on the terminal that an Output writes to, 0 if it writes elsewhere.
func Columns(to io.Writer) int {
	if o, ok := to.(*Output); ok {
		f, _ := o.to.to.(*os.File)
		return columns(f)
	}
	return 0
}

// failed remembers the first error and ends the command. mu is held.
func (o *Output) failed(err error) {
	if err != nil {
		o.err = &outputError{fmt.Errorf("the results cannot be written: %w", err)}
		o.cancel(o.err)
	}
}

// Messages is a program's stderr, from which a terminal misreads nothing either.
// Several may write to it at a time.
func Messages(stderr io.Writer) io.Writer { return &messages{readable: readable{to: stderr}} }

// messages makes writes of several goroutines whole.
type messages struct {
	mu sync.Mutex
	readable
}

// Write may be called from many goroutines: the lines of two are not mixed.
func (m *messages) Write(b []byte) (int, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return calling{&m.readable}.Write(b)
}

// Code is the exit code of a command that ended with a code: that of the results, when
// they could not be written. It says why, unless their reader has ended.
// It writes the rest of a cut character, so call it after everything was written.
func (o *Output) Code(code int, stderr io.Writer) int {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.err == nil {
		o.failed(o.to.writeRest())
	}
	o.cancel(nil)
	if o.err == nil {
		return code
	}
	if !errors.Is(o.err, syscall.EPIPE) { // as head has read enough
		fmt.Fprintf(stderr, "%s: %v\n", o.name, o.err)
	}
	return Down
}

// unwritten reports whether the results of a command could not be written, which
// Output.Code says.
func unwritten(ctx context.Context) bool {
	var o *outputError
	return errors.As(context.Cause(ctx), &o)
}
