package projectorcli

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"

	"weir/internal/cli"
	"weir/internal/console"
	"weir/internal/events"
	"weir/internal/status"
	"weir/internal/system"
)

// consoleMode is off, read or write: the rights of the console.
type consoleMode string

// addConsole serves the console of a system, and everything else by other. The caller calls end when
// the server has stopped, before it closes the system.
func (m consoleMode) addConsole(other http.Handler, s *system.System, o console.Options) (_ http.Handler, end func(), err error) {
	if m == "off" {
		return other, func() {}, nil
	}
	o.Write = m == "write"
	c, err := console.New(s, o)
	if err != nil {
		return nil, nil, fmt.Errorf("the console: %w", err)
	}
	return c.Beside(other), c.Close, nil
}

// recordings are the recorded files that are named as [MODEL=]FILE by a flag, for the console to
// read when it explains a value. Files of commands are left out.
func recordings(s *system.System, flag string, args []string) (map[string]console.Recordings, error) {
	of := map[*system.Part][]string{}
	for _, arg := range args {
		part, path, err := fileOf(s, flag, arg)
		if err != nil {
			return nil, err
		}
		paths, err := filesIn(path)
		if err != nil {
			return nil, usage("%s: %v", flag, err)
		}
		for _, path := range paths {
			commands, err := hasCommands(path)
			if err != nil {
				return nil, usage("%s %s: %v", flag, path, err)
			}
			if !commands {
				of[part] = append(of[part], path)
			}
		}
	}
	out := map[string]console.Recordings{}
	for part, paths := range of {
		out[part.Model.Name] = func(ctx context.Context, yield func(*events.Entry, string) error) error {
			return eachEntry(ctx, cli.New(io.Discard, "records"), []input{{paths: paths}}, &s.Names, yield)
		}
	}
	return out, nil
}

// fileOf reads [MODEL=]FILE. The model may be left out where there is only one.
func fileOf(s *system.System, flag, arg string) (*system.Part, string, error) {
	name, path, ok := strings.Cut(arg, "=")
	if !ok {
		if len(s.Models) > 1 {
			return nil, "", usage("%s %s: which model is it of? Say MODEL=FILE", flag, arg)
		}
		return s.Models[0], arg, nil
	}
	i := slices.IndexFunc(s.Models, func(o *system.Part) bool { return o.Model.Name == name })
	if i < 0 {
		return nil, "", usage("%s %s: %s is not among the models %s", flag, arg, name, strings.Join(modelNames(s), ", "))
	}
	return s.Models[i], path, nil
}

// anyStatus returns a status for the API.
func anyStatus(of func(context.Context, string) (status.Status, error)) func(context.Context, string) (any, error) {
	return func(ctx context.Context, model string) (any, error) { return of(ctx, model) }
}
