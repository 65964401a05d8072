package runner_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"weir/internal/model"
	"weir/internal/runner"
	"weir/internal/value"
)

// TestPromises runs the scripts of testdata: what an application writes, how its
// stream is delivered, what must come of it. After every delivery everything is
// recomputed from the core rows, and what differs is part of the output; a line
// "good" says that nothing does. Run with -rewrite after a change, and read the
// difference.
//
// The commands:
//
//	model                     a built-in model's name, or a model's text
//	app                       writes of the application, one a line (harness.write)
//	records                   what is in the streams that was not shown yet
//	deliver 1..3 5 [lane=L]   those records as batches, in that order
//	deliver … crash=every     for every write of the delivery, before and after it:
//	                          break there, deliver again from the start and settle
//	deliver … sleep=K as=NAME a worker that stops before its K-th write
//	wake NAME                 it goes on
//	settle [from=N]           everything not yet delivered, and what comes of it
//	rows TABLE [text=…]       the rows of a table
//	dead | retry | discard    what is kept
func TestPromises(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	must(t, err)
	if len(files) == 0 {
		t.Fatal("no scripts")
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			s := &script{t: t}
			defer s.close()
			datadriven.RunTest(t, file, s.run)
		})
	}
}

// script keeps what was done, so that a world can be built again up to here.
type script struct {
	t     *testing.T
	h     *harness
	model *model.Model
	past  []func(*harness) error
	shown int
	next  int // the first record that settle delivers
}

func (s *script) close() {
	if s.h != nil {
		s.h.close()
	}
}

// do does something now, and again in every world that is made later.
func (s *script) do(f func(*harness) error) error {
	s.past = append(s.past, f)
	return f(s.h)
}

func (s *script) run(t *testing.T, d *datadriven.TestData) string {
	out, err := s.command(t, d)
	if err != nil {
		out = strings.TrimSpace(out + "\nerror: " + err.Error())
	}
	return out + "\n"
}

func (s *script) command(t *testing.T, d *datadriven.TestData) (string, error) {
	var words []string
	args := map[string]string{}
	for _, a := range d.CmdArgs {
		if len(a.Vals) == 0 {
			words = append(words, a.Key)
		} else {
			args[a.Key] = strings.Join(a.Vals, ",")
		}
	}
	switch d.Cmd {
	case "model":
		return s.load(words, d.Input)
	case "app":
		for _, line := range strings.Split(strings.TrimSpace(d.Input), "\n") {
			if err := s.do(func(h *harness) error { return h.write(line) }); err != nil {
				return "", fmt.Errorf("%s: %w", line, err)
			}
		}
		s.h.pull()
		return s.records(), nil
	case "records":
		s.h.pull()
		return s.records(), nil
	case "deliver":
		return s.deliver(words, args)
	case "wake":
		z := s.h.sleeper[words[0]]
		z.wake()
		<-z.over
		s.h.pull()
		return s.audit(), nil
	case "settle":
		return s.settle(args)
	case "rows":
		return s.h.rows(words[0], args["text"]), nil
	}
	return s.kept(d.Cmd, words)
}

func (s *script) load(words []string, text string) (string, error) {
	s.close()
	var err error
	if len(words) == 1 {
		s.model, err = model.Load(words[0])
	} else {
		s.model, err = loadText(s.t, text)
	}
	if err != nil {
		return "", err
	}
	s.past, s.shown, s.next = nil, 0, 1
	s.h = newHarness(s.t, s.model)
	return "good", nil
}

func (s *script) records() string {
	var b strings.Builder
	for ; s.shown < len(s.h.records); s.shown++ {
		d := s.h.records[s.shown]
		fmt.Fprintf(&b, "%d %s %s %s\n", s.shown+1, d.rec.Event(), d.table.Name, value.AppendPlainItem(nil, d.rec.Keys))
	}
	return strings.TrimSpace(b.String())
}

func (s *script) audit() string {
	if out := s.h.audit(); out != "" {
		return out
	}
	return "good"
}

func (s *script) deliver(words []string, args map[string]string) (string, error) {
	s.h.pull()
	for i, w := range words {
		words[i] = strings.Replace(w, "last", strconv.Itoa(len(s.h.records)), 1)
	}
	which, err := ranges(words, len(s.h.records))
	if err != nil {
		return "", err
	}
	if args["crash"] == "every" {
		return s.everyCrash(which, args["lane"])
	}
	if args["sleep"] != "" {
		return s.sleep(which, args)
	}
	var n runner.Counts
	err = s.do(func(h *harness) (err error) {
		h.pull()
		n, err = h.deliver(h.store, which, args["lane"])
		return err
	})
	s.h.pull()
	return fmt.Sprintf("%d applied, %d skipped, %d kept\n%s", n.Applied, n.Skipped, n.Kept, s.audit()), err
}

// everyCrash breaks the delivery at each of its writes in turn, before and after,
// each in a world of its own; then everything comes again.
func (s *script) everyCrash(which []int, lane string) (string, error) {
	crashes := 0
	for _, after := range []bool{false, true} {
		for at := 1; ; at++ {
			h, err := s.again()
			if err != nil {
				return "", err
			}
			broken := &faulty{Store: h.store, at: at, after: after}
			_, err = h.deliver(broken, which, lane)
			if err == nil {
				h.close()
				break // it was over before the write that should break
			}
			crashes++
			if !errors.Is(err, errBroken) {
				return "", fmt.Errorf("write %d, after=%v: %w", at, after, err)
			}
			if err := h.settle(s.next); err != nil {
				return "", fmt.Errorf("write %d, after=%v: settling: %w", at, after, err)
			}
			if out := h.audit(); out != "" {
				return fmt.Sprintf("broken at write %d, after=%v:\n%s", at, after, out), nil
			}
			h.close()
		}
	}
	return fmt.Sprintf("%d crashes, good after each", crashes), nil
}

// again makes the world as it is now once more.
func (s *script) again() (*harness, error) {
	h := newHarness(s.t, s.model)
	for _, f := range s.past {
		if err := f(h); err != nil {
			return nil, err
		}
	}
	h.pull()
	return h, nil
}

func (s *script) sleep(which []int, args map[string]string) (string, error) {
	at, err := strconv.Atoi(args["sleep"])
	if err != nil {
		return "", err
	}
	z := newSleeper()
	s.h.sleeper[args["as"]] = z
	go func() {
		defer close(z.over)
		s.h.deliver(&faulty{Store: s.h.store, at: at, sleep: z}, which, args["lane"])
	}()
	select {
	case <-z.asleep:
		return "asleep", nil
	case <-z.over:
		return "", fmt.Errorf("the worker was done before its write %d", at)
	}
}

func (s *script) settle(args map[string]string) (string, error) {
	from := s.next
	if args["from"] != "" {
		from, _ = strconv.Atoi(args["from"])
	}
	err := s.do(func(h *harness) error { return h.settle(from) })
	s.next = len(s.h.records) + 1
	s.shown = len(s.h.records)
	return s.audit(), err
}

func (s *script) kept(cmd string, words []string) (string, error) {
	ctx, r := context.Background(), s.h.runner(s.h.store)
	var b strings.Builder
	var ids []string
	err := r.Dead(ctx, func(d runner.Dead) error {
		fmt.Fprintf(&b, "%s %s: %s\n", d.Kind, d.Target, d.Reason)
		ids = append(ids, d.ID)
		return nil
	})
	if err != nil || cmd == "dead" {
		return strings.TrimSpace(b.String()), err
	}
	if len(ids) == 0 {
		return "nothing is kept", nil
	}
	switch cmd {
	case "retry":
		n, err := r.Retry(ctx, ids[0])
		return fmt.Sprintf("%d done", n), err
	case "discard":
		for _, id := range ids {
			if err := r.Discard(ctx, id); err != nil {
				return "", err
			}
		}
		return fmt.Sprintf("%d discarded", len(ids)), nil
	}
	return "", fmt.Errorf("unknown command %s", cmd)
}
