// Package cli is shared by the programs: their exit codes, how a command line is
// read, how they stop and how they report errors, and where rows are.
//
// Besides, output.go sees to it that results which cannot be written end a command, readable.go
// that no text from a table commands a terminal, memory.go that a process keeps to its memory.
//
// stdout has results only, and stderr all else. The first SIGINT or SIGTERM ends the context of a
// command, which then stops where nothing is half done and returns; the second ends the process.
// A command returns its error, and never prints it or calls os.Exit: Fail prints it once and
// chooses the exit code.
package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/alecthomas/kong"

	"weir/internal/model"
	"weir/internal/store"
)

// Exit codes, the same for every command.
const (
	Good        = 0
	Check       = 1 // a check failed: drift, lint; or something was refused
	Mistake     = 2 // usage or configuration
	Down        = 3 // a service or the disk is down
	Part        = 4 // incomplete; the same command again continues
	Interrupted = 130
)

// lambdaAPI is set in the environment where Lambda starts a program.
const lambdaAPI = "AWS_LAMBDA_RUNTIME_API"

// InLambda reports whether Lambda started the program, which then has no arguments.
func InLambda(args []string) bool { return os.Getenv(lambdaAPI) != "" && len(args) == 0 }

// ErrTerminated is the cause of a context that SIGTERM ended: a service manager asked
// to stop, where an interrupt breaks off.
var ErrTerminated = errors.New("terminated")

// sameSignal is how long a signal after the first one is taken for the same one:
// timeout, and whatever hands signals on to a group that has them already, send two.
const sameSignal = 500 * time.Millisecond

// Stopped is a context that ends with the first SIGINT or SIGTERM. The second ends the
// process, unless it comes together with the first.
func Stopped(ctx context.Context) context.Context { return stopped(ctx, sameSignal) }

// stopped returns a context that ends with the first SIGINT or SIGTERM. Signals within same
// after that count as the same one (a terminal and a supervisor may both send); a later one
// ends the process at once.
// A service manager that sends SIGTERM finds ErrTerminated as the context's cause.
func stopped(ctx context.Context, same time.Duration) context.Context {
	ctx, cancel := context.WithCancelCause(ctx)
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go func() {
		if <-signals == syscall.SIGTERM {
			cancel(ErrTerminated)
		}
		cancel(nil)
		time.Sleep(same)
		signal.Stop(signals)
	}()
	return ctx
}

// Failed ends a command with a code; its message has been said.
type Failed int

// Error is for logs of tests; Fail prints nothing for a Failed.
func (f Failed) Error() string { return fmt.Sprintf("exit %d", int(f)) }

// ErrUsage is wrapped by mistakes in the command line.
var ErrUsage = errors.New("usage")

// Usage is an error that wraps ErrUsage, which its text does not show.
func Usage(format string, args ...any) error {
	return fmt.Errorf("%s%w", fmt.Sprintf(format, args...), quiet{})
}

// quiet adds ErrUsage to an error without adding to its text.
type quiet struct{}

func (quiet) Error() string        { return "" }
func (quiet) Is(target error) bool { return target == ErrUsage }

// Partly is the error of a command that was broken off when some of its work was done,
// which is kept: the same command again does the rest.
// some says whether anything was done. Without it, err stays as it is, and its own exit code holds.
func Partly(err error, some bool) error {
	if err == nil || !some {
		return err
	}
	return &partly{err}
}

// partly marks an error whose command was broken off.
type partly struct{ error }

func (e *partly) Unwrap() error { return e.error }

// envPrefix begins the variable of each flag: WEIR_DATA is --data. A flag stands above
// its variable. Flags with env:"-" have none: they are to be given each time.
const envPrefix = "WEIR"

// Program is a program by its name and commands, a struct as kong reads it.
type Program struct {
	Name, Description string
	Commands          any
	Again             string // the outcome of the same command after an interrupt
	// Elsewhere has commands that people look for here, and the program that is each one.
	Elsewhere map[string]string
	// Code is the exit code of errors that only this program has; ok is false for others.
	Code func(error) (code int, ok bool)
}

// Run reads the arguments, runs the command that they name, with bind for its
// argument, and gives the exit code. Without arguments a program with commands prints
// help.
// The command's own errors go through Fail. Wrong arguments are Mistake, with a line that names the help to read.
func (p *Program) Run(ctx context.Context, args []string, stdout, stderr io.Writer, bind any) (code int) {
	exited := -1
	parser, err := p.Parser(stdout, stderr, func(n int) { exited = n })
	if err != nil {
		fmt.Fprintf(stderr, "%s: %v\n", p.Name, err)
		return Mistake
	}
	if len(args) == 0 && len(parser.Model.Children) > 0 {
		args = []string{"--help"}
	}
	k, err := parser.Parse(args)
	switch {
	case exited >= 0:
		return exited
	case err != nil && unwritten(ctx): // help; Output.Code says so
		return Down
	case err != nil:
		if to := p.elsewhere(args); to != "" {
			fmt.Fprintf(stderr, "%s: no command %q: it is the program %s\nTry: %[3]s --help\n", p.Name, args[0], to)
			return Mistake
		}
		fmt.Fprintf(stderr, "%s: %s\nTry: %s --help\n", p.Name, withFlag(err, parser.Model, args), p.asked(err))
		return Mistake
	}
	return p.Fail(ctx, k.Run(bind), stderr)
}

// Parser returns the parser of the program's arguments, and of the environment for flags that are not given.
// It calls exit after it has printed help or the version. Variables are named in help, their
// values are not.
func (p *Program) Parser(stdout, stderr io.Writer, exit func(code int)) (*kong.Kong, error) {
	return kong.New(p.Commands, kong.Name(p.Name), kong.Description(p.Description),
		kong.Writers(calling{stdout}, calling{stderr}), kong.Exit(exit), kong.UsageOnError(),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true}),
		kong.DefaultEnvars(envPrefix), kong.ValueFormatter(about))
}

// about is the help of a flag or an argument.
func about(v *kong.Value) string {
	if len(v.Tag.Envs) == 0 {
		return v.Help
	}
	return v.Help + " ($" + strings.Join(v.Tag.Envs, ", $") + ")"
}

// elsewhere is the program that a command line is for, if it is another one.
func (p *Program) elsewhere(args []string) string {
	if len(args) == 0 {
		return ""
	}
	return p.Elsewhere[args[0]]
}

// asked is the command whose arguments were wrong, as far as it could be told.
func (p *Program) asked(err error) string {
	if wrong := (*kong.ParseError)(nil); errors.As(err, &wrong) && wrong.Context != nil && wrong.Context.Selected() != nil {
		return wrong.Context.Selected().FullPath()
	}
	return p.Name
}

// Fail reports an error and chooses the exit code by what to do next.
// It prints one message, prefixed with the program's name; a model with problems prints each on its own line.
func (p *Program) Fail(ctx context.Context, err error, stderr io.Writer) int {
	var f Failed
	var problems *model.Problems
	switch {
	case err == nil:
		return Good
	case unwritten(ctx):
		return Down
	case errors.As(err, &f):
		return int(f)
	case ctx.Err() != nil && (errors.Is(err, context.Canceled) || errors.Is(err, ErrTerminated)):
		fmt.Fprintf(stderr, "%s: interrupted; the same command again %s\n", p.Name, p.Again)
		return Interrupted
	case errors.As(err, &problems):
		fmt.Fprintln(stderr, err)
		return Mistake
	}
	fmt.Fprintf(stderr, "%s: %v\n", p.Name, err)
	if errors.Is(err, store.ErrOwned) || errors.Is(err, store.ErrNoTable) || errors.Is(err, fs.ErrNotExist) || errors.Is(err, ErrUsage) {
		return Mistake
	}
	if p.Code != nil {
		if code, ok := p.Code(err); ok {
			return code
		}
	}
	if part := (*partly)(nil); errors.As(err, &part) {
		fmt.Fprintf(stderr, "%s: part is done; the same command again %s\n", p.Name, p.Again)
		return Part
	}
	return Down
}
