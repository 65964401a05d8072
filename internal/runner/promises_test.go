package runner_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
	gocmp "github.com/google/go-cmp/cmp"

	"weir/internal/deadletter"
	"weir/internal/failtest"
	"weir/internal/model"
	"weir/internal/owntable"
	"weir/internal/runner"
	"weir/internal/soaktest"
	"weir/internal/store"
	"weir/internal/value"
)

// TestPromises runs the scripts of testdata, those of each room in the folder of its name, so that
// -run TestPromises/tally judges a change in that room: what an application writes, how its
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
//	deliver 1..3 5            those records as batches, in that order
//	deliver … crash=every     for every single write of the delivery, before it, after
//	                          it, it alone and all but it: break there, deliver again
//	                          and settle; all must be as in an undisturbed world
//	deliver … sleep=K as=NAME a worker that stops before its K-th single write; with
//	                          dies=yes that call, done when it wakes, is its last
//	wake NAME                 it goes on
//	settle [from=N]           everything not yet delivered, and what comes of it
//	deliver … crash=N         the same with N of the writes
//	deliver … cut=no          cut as before when it is done again
//	jobs [crash=… | sleep=…]  the long lists alone
//	migrate NAME [crash=… | sleep=…] [dry] a migration's scan, in pages of two rows
//	end NAME                  the migration is over
//	split TABLE               its newest shard is closed and goes on as two
//	sweep [hours=N]           an hour passes, or N, and what has expired goes
//	audit                     what differs now
//	mood [refuses=W] [fails=N] the index refuses documents with the word, and fails
//	                          each other one N times
//	rows TABLE [text=…]       the rows of a table
//	ledgers                   which rows have a ledger, and which of these expire
//	claims                    which row each unique value is claimed for
//	dead | retry | discard    what is kept; retry and discard do the first of it, or
//	                          all; retry crash=every, discard crash=every
func TestPromises(t *testing.T) {
	soaktest.Calm(t)
	files, err := filepath.Glob("testdata/*.txt")
	failtest.On(t, err)
	ofKinds, err := filepath.Glob("testdata/*/*.txt")
	failtest.On(t, err)
	if len(files) == 0 {
		t.Fatal("no scripts")
	}
	rooms, err := filepath.Glob("../projections/*/doc.go")
	failtest.On(t, err)
	for _, room := range rooms {
		room = filepath.Base(filepath.Dir(room))
		if !slices.ContainsFunc(ofKinds, func(file string) bool { return filepath.Base(filepath.Dir(file)) == room }) {
			t.Errorf("the room %s has no scripts in testdata/%s", room, room)
		}
	}
	for _, file := range append(files, ofKinds...) {
		t.Run(strings.TrimSuffix(strings.TrimPrefix(filepath.ToSlash(file), "testdata/"), ".txt"), func(t *testing.T) {
			t.Parallel()
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
	err := f(s.h)
	s.past = append(s.past, func(h *harness) error {
		if again := f(h); (again == nil) != (err == nil) {
			return fmt.Errorf("what ended with %v now ends with %v", err, again)
		}
		return nil
	})
	return err
}

func (s *script) run(t *testing.T, d *datadriven.TestData) string {
	out, err := s.command(t, d)
	if err != nil {
		out = strings.TrimSpace(out + "\nerror: " + err.Error())
	}
	return elide(out) + "\n"
}

// elide leaves out the middle of what is long.
func elide(out string) string {
	lines := strings.Split(out, "\n")
	if len(lines) <= 40 {
		return out
	}
	n := len(lines) - 6
	return strings.Join(slices.Concat(lines[:3], []string{fmt.Sprintf("… %d lines …", n)}, lines[len(lines)-3:]), "\n")
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
		if z == nil {
			return "", fmt.Errorf("nobody called %s sleeps", words[0])
		}
		z.wake()
		<-z.over
		s.h.pull()
		return s.audit(), z.err
	case "jobs":
		if args["crash"] != "" {
			return s.everyCrash(args, func(h *harness, b *breaker) error { return h.jobs(b) })
		}
		if args["sleep"] != "" {
			return s.sleep(args, func(h *harness, b *breaker) error { return h.jobs(b) })
		}
		err := s.do(func(h *harness) error { return h.jobs(nil) })
		s.h.pull()
		return s.audit(), err
	case "migrate":
		return s.migrate(words, args)
	case "end":
		return "", s.do(func(h *harness) error {
			return h.mover(nil).End(context.Background(), h.model.Migration(words[0]))
		})
	case "split":
		return "", s.do(func(h *harness) error {
			shards, err := h.store.Shards(context.Background(), words[0])
			if err != nil {
				return err
			}
			return h.store.Split(context.Background(), words[0], shards[len(shards)-1].ID)
		})
	case "sweep":
		return s.sweep(args)
	case "audit":
		return s.audit(), nil
	case "mood":
		n, _ := strconv.Atoi(args["fails"])
		return "", s.do(func(h *harness) error {
			h.mood = &moody{Index: h.index, refuses: args["refuses"], times: n, fails: map[string]int{}}
			return nil
		})
	case "settle":
		return s.settle(args)
	case "claims":
		return s.h.claims(), nil
	case "ledgers":
		return s.h.ledgers(), nil
	case "rows":
		return s.h.rows(words[0], args["text"]), nil
	}
	return s.kept(d.Cmd, words, args)
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
	if args["crash"] != "" {
		return s.everyCrash(args, func(h *harness, b *breaker) error {
			if b.again && b.at == 0 {
				return h.oneByOne(which)
			}
			_, err := h.deliver(b, which)
			return err
		})
	}
	if args["sleep"] != "" {
		return s.sleep(args, func(h *harness, b *breaker) error {
			_, err := h.deliver(b, which)
			return err
		})
	}
	var n runner.Result
	err = s.do(func(h *harness) (err error) {
		h.pull()
		n, err = h.deliver(nil, which)
		return err
	})
	s.h.pull()
	out := fmt.Sprintf("%d applied, %d skipped, %d kept\n", n.Applied, n.Skipped, n.Dead)
	if m := s.h.mood; m != nil {
		out += strings.Join(append(m.log, ""), "\n")
		m.log = nil
	}
	return out + s.audit(), err
}

// everyCrash breaks what is done at each of its single writes in turn, in each
// way, each in a world of its own; then it is done again (cut otherwise, every
// other time), and all must be as in a world in which nothing broke. The short form
// breaks a dozen writes at most, from the first to the last, each in one of the ways
// and its neighbours in others: the writes are made one after the other, and a race
// that one of them has, others have.
func (s *script) everyCrash(args map[string]string, do func(*harness, *breaker) error) (string, error) {
	counter := &breaker{}
	want, err := s.undisturbed(do, counter)
	if err != nil {
		return "", err
	}
	if counter.calls == 0 {
		return "", errors.New("there is no write to break")
	}
	some, step := counter.calls, 1
	if args["crash"] != "every" {
		if some, err = strconv.Atoi(args["crash"]); err != nil {
			return "", err
		}
		step = max(1, counter.calls/some)
	}
	tried := 0
	for how := before; how < hows; how++ {
		tried = 0
		for at := counter.calls; at > 0 && tried < some; at -= step {
			tried++
			if testing.Short() && (tried%(1+min(some, counter.calls)/12) != 0 || int(how) != (at+at/int(hows))%int(hows)) {
				continue
			}
			have, err := s.crash(do, &breaker{at: at, how: how, again: args["cut"] != "no" && (at+int(how))%2 == 0})
			if err != nil {
				return "", fmt.Errorf("%s write %d of %d: %w", how, at, counter.calls, err)
			}
			if have != want {
				return fmt.Sprintf("broken %s write %d of %d: %s", how, at, counter.calls, gocmp.Diff(strings.Split(want, "\n"), strings.Split(have, "\n"))), nil
			}
		}
	}
	return fmt.Sprintf("%d of %d writes, each broken in %d ways: the same after each", tried, counter.calls, hows), nil
}

func (s *script) undisturbed(do func(*harness, *breaker) error, counter *breaker) (string, error) {
	h, err := s.again()
	if err != nil {
		return "", err
	}
	defer h.close()
	if err := do(h, counter); err != nil {
		return "", err
	}
	return h.settled(s.next)
}

// crash breaks once, does it again and returns what then is.
func (s *script) crash(do func(*harness, *breaker) error, b *breaker) (string, error) {
	h, err := s.again()
	if err != nil {
		return "", err
	}
	defer h.close()
	if err := do(h, b); !errors.Is(err, errBroken) {
		return "", fmt.Errorf("it did not break, but: %w", err)
	}
	if err := do(h, &breaker{again: b.again}); err != nil {
		return "", fmt.Errorf("again: %w", err)
	}
	h.clock = h.clock.Add(2 * time.Hour) // then nobody writes any more what nobody finished
	if err := h.jobs(nil); err != nil {
		return "", err
	}
	return h.settled(s.next)
}

func (h *harness) settled(from int) (string, error) {
	err := h.settle(from)
	return h.dump(), err
}

// oneByOne delivers each record as a batch of its own.
func (h *harness) oneByOne(which []int) error {
	for i := range which {
		if _, err := h.deliver(nil, which[i:i+1]); err != nil {
			return err
		}
	}
	return nil
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

func (s *script) sleep(args map[string]string, do func(*harness, *breaker) error) (string, error) {
	at, err := strconv.Atoi(args["sleep"])
	if err != nil {
		return "", err
	}
	z := newSleeper()
	s.h.sleeper[args["as"]] = z
	h := s.h
	go func() {
		defer close(z.over)
		z.err = do(h, &breaker{at: at, sleep: z, dies: args["dies"] != ""})
	}()
	select {
	case <-z.asleep:
		return "asleep", nil
	case <-z.over:
		return "", fmt.Errorf("the worker was done before its write %d", at)
	}
}

func (s *script) sweep(args map[string]string) (string, error) {
	removed, hours := 0, 1
	if args["hours"] != "" {
		hours, _ = strconv.Atoi(args["hours"])
	}
	err := s.do(func(h *harness) (err error) {
		h.clock = h.clock.Add(time.Duration(hours) * time.Hour)
		removed, err = h.store.Sweep(context.Background(), h.clock, 1000, nil)
		return err
	})
	s.h.pull()
	return strings.TrimSpace(fmt.Sprintf("%d gone\n%s", removed, s.records())), err
}

func (h *harness) ledgers() string {
	var out []string
	for _, row := range h.scan(owntable.TableName) {
		if at := row.Get(owntable.Partition).Text(); owntable.Kind(at) == owntable.KindLedger {
			if owntable.LedgerRow(row).Expires() {
				at += " expires"
			}
			out = append(out, at)
		}
	}
	return strings.Join(out, "\n")
}

func (s *script) settle(args map[string]string) (string, error) {
	from := s.next
	if args["from"] != "" {
		from, _ = strconv.Atoi(args["from"])
	}
	err := s.do(func(h *harness) error { return h.settle(from) })
	if s.shown = len(s.h.records); err == nil {
		s.next = s.shown + 1
	}
	return s.audit(), err
}

func (s *script) kept(cmd string, words []string, args map[string]string) (string, error) {
	out, ids, err := s.h.dead()
	switch {
	case err != nil || cmd == "dead":
		return out, err
	case len(ids) == 0:
		return "nothing is kept", nil
	}
	others := ids[1:]
	if len(words) == 0 || words[0] != "all" {
		ids = ids[:1]
	}
	switch {
	case args["crash"] != "":
		return s.everyCrash(args, func(h *harness, b *breaker) error {
			_, ids, err := h.dead()
			ids = slices.DeleteFunc(ids, func(id string) bool { return slices.Contains(others, id) }) // the letter, or what it left when it broke
			switch {
			case err != nil || len(ids) == 0:
			case cmd == "retry":
				err = h.runner(b).RetryLetter(context.Background(), ids[0])
			default:
				err = h.runner(b).DiscardLetter(context.Background(), ids[0])
			}
			if err = errors.Join(err, h.jobs(nil)); errors.Is(err, store.ErrRefused) {
				return nil
			}
			return err
		})
	case cmd == "retry":
		n := 0
		err := s.do(func(h *harness) (err error) {
			for _, id := range ids {
				if err := h.runner(nil).RetryLetter(context.Background(), id); err != nil {
					return err
				}
				n++
			}
			return nil
		})
		return fmt.Sprintf("%d done\n%s", n, s.audit()), err
	case cmd == "discard":
		err := s.do(func(h *harness) error {
			for _, id := range ids {
				if err := h.runner(nil).DiscardLetter(context.Background(), id); err != nil {
					return err
				}
			}
			return nil
		})
		return fmt.Sprintf("%d discarded\n%s", len(ids), s.audit()), err
	}
	return "", fmt.Errorf("unknown command %s", cmd)
}

// dead lists what is kept, and its ids, in the order of records.
func (h *harness) dead() (string, []string, error) {
	var all []deadletter.Letter
	err := h.runner(nil).EachDeadLetter(context.Background(), func(d deadletter.Letter) error {
		all = append(all, d)
		return nil
	})
	slices.SortFunc(all, func(a, b deadletter.Letter) int {
		return cmp.Or(a.Position.Compare(b.Position), strings.Compare(string(a.Kind)+a.Target, string(b.Kind)+b.Target))
	})
	var b strings.Builder
	var ids []string
	for _, d := range all {
		fmt.Fprintf(&b, "%s %s: %s\n", d.Kind, d.Target, d.Reason)
		ids = append(ids, d.ID)
	}
	return strings.TrimSpace(b.String()), ids, err
}
