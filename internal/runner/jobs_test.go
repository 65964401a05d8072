package runner_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"weir/internal/failtest"
	"weir/internal/owntable"
	"weir/internal/projections/kinds"
	"weir/internal/reader"
	"weir/internal/runner"
	"weir/internal/store"
	"weir/internal/value"
)

// jobbing is a model with jobs, and what is asked of its store.
type jobbing struct {
	*harness
	store.Store
	jobs    *runner.Jobs
	queries int
	bad     *store.Ref // a row that cannot be read
	tries   int        // to read it
}

var errDenied = errors.New("AccessDeniedException: not authorized")

func newJobbing(t *testing.T) *jobbing {
	m, err := loadText(t, films)
	failtest.On(t, err)
	h := newHarness(t, m)
	t.Cleanup(h.close)
	j := &jobbing{harness: h, Store: h.store}
	j.jobs = &runner.Jobs{Runner: &runner.Runner{Kinds: kinds.All(), Model: m, Store: j, Now: h.now}}
	return j
}

func (j *jobbing) Query(ctx context.Context, q store.Query) (store.Page, error) {
	if q.Partition.Text() == owntable.Jobs("films") {
		j.queries++
	}
	return j.Store.Query(ctx, q)
}

func (j *jobbing) Get(ctx context.Context, refs []store.Ref) ([]value.Item, error) {
	if j.bad != nil && slices.ContainsFunc(refs, func(r store.Ref) bool { return r.String() == j.bad.String() }) {
		j.tries++
		return nil, errDenied
	}
	return j.Store.Get(ctx, refs)
}

func (j *jobbing) begin(ws ...store.Write) {
	j.t.Helper()
	for _, w := range ws {
		out, err := j.Store.Write(j.t.Context(), []store.Write{w})
		failtest.On(j.t, errors.Join(err, out[0].Err))
	}
}

// unknown leaves jobs of a kind that no version knows. They come before all others.
func (j *jobbing) unknown(n int) {
	for i := range n {
		j.begin(store.Write{Ref: owntable.Ref(owntable.Jobs("films"), fmt.Sprintf("!%03d", i)), Ops: []store.Op{store.Assign("later", value.OfInt(1))}})
	}
}

// lists leaves jobs of lists that have no row any more. It returns the row that the first asks for.
func (j *jobbing) lists(n int) store.Ref {
	list := func(i int) store.Ref {
		return owntable.Followed("films", "Movie.title", store.Ref{Table: theMovie.Table, Key: store.Key{Partition: value.OfString(fmt.Sprint(i)), Sort: theMovie.Key.Sort}})
	}
	for i := range n {
		job := owntable.EntriesJob(list(i))
		j.begin(job.Begin("films", j.now()))
	}
	return list(0)
}

// count returns how many jobs there are.
func (j *jobbing) count() (n int) {
	for _, row := range j.scan(owntable.TableName) {
		if row.Get("k").Text() == owntable.Jobs("films") {
			n++
		}
	}
	return n
}

// TestManyUnknownJobs: jobs that no kind knows are no work that is left, however many there are. They are
// said once, and the jobs behind them are done.
func TestManyUnknownJobs(t *testing.T) {
	j := newJobbing(t)
	j.unknown(120)
	j.lists(1)
	var said []string
	f := reader.Follower{Runner: j.jobs.Runner, Source: j.store, Stopped: func(_, _, why string) { said = append(said, why) }}
	step := f.NewStepper()
	for range 3 {
		for rounds := 0; ; rounds++ {
			_, left, err := step.Step(t.Context())
			failtest.On(t, err)
			if !left {
				break
			}
			if rounds == 5 {
				t.Fatal("there is work left for ever")
			}
		}
	}
	if n := j.count(); n != 120 {
		t.Errorf("%d jobs are left, want the 120 that no kind knows", n)
	}
	if len(said) != 1 || !strings.Contains(said[0], "job !000: ") || !strings.Contains(said[0], "and 117 more jobs") {
		t.Errorf("it says %q, want once how many jobs stand still", said)
	}
	if j.queries != 3*2 {
		t.Errorf("%d queries of the jobs, want 2 in each of 3 rounds", j.queries)
	}
}

// TestJobThatFails: a job that fails stands still by itself. The error comes when the others are done, and the job is
// tried again after a pause that doubles.
func TestJobThatFails(t *testing.T) {
	j := newJobbing(t)
	bad := j.lists(150)
	j.bad = &bad
	j.unknown(1)
	round := func() (err error) {
		for left := true; left; {
			if left, err = j.jobs.RunStep(t.Context()); left && err != nil {
				t.Fatalf("%v before the others are done", err)
			}
		}
		return err
	}
	for i, c := range []struct {
		after time.Duration
		tries int
	}{{0, 1}, {0, 1}, {time.Second, 2}, {time.Second, 2}, {time.Second, 3}, {3 * time.Second, 3}} {
		j.clock = j.clock.Add(c.after)
		if err := round(); !errors.Is(err, errDenied) || errors.Is(err, runner.ErrNoJob) || !strings.Contains(err.Error(), "job !000") {
			t.Errorf("round %d: %v; want what the job fails with, and the job that no kind knows", i, err)
		}
		if j.tries != c.tries {
			t.Errorf("round %d: tried %d times, want %d", i, j.tries, c.tries)
		}
		if n := j.count(); n != 2 {
			t.Errorf("round %d: %d jobs are left, want 2", i, n)
		}
	}
	j.bad = nil
	j.clock = j.clock.Add(time.Second)
	if err := round(); !errors.Is(err, runner.ErrNoJob) || j.count() != 1 {
		t.Errorf("%v, %d jobs left; want only the one that no kind knows", err, j.count())
	}
}

// TestFailedJobIsSaid: a job that fails is reported once, and once more when it is done. Records are applied
// meanwhile.
func TestFailedJobIsSaid(t *testing.T) {
	j := newJobbing(t)
	bad := j.lists(1)
	j.bad = &bad
	var said []string
	f := reader.Follower{Runner: j.jobs.Runner, Source: j.store, Stopped: func(table, shard, why string) { said = append(said, table+" "+shard+": "+why) }}
	step := f.NewStepper()
	for i := range 4 {
		if i == 3 {
			j.bad = nil
		}
		j.clock = j.clock.Add(time.Minute)
		_, left, err := step.Step(t.Context())
		failtest.On(t, err)
		if left {
			t.Error("a job that fails is left to go on with")
		}
	}
	if len(said) != 2 || !strings.Contains(said[0], "weir jobs: ") || !strings.Contains(said[0], errDenied.Error()) || said[1] != "weir jobs: " {
		t.Errorf("it says %q, want what fails, and that it goes on", said)
	}
	f.Stopped = nil
	bad = j.lists(1)
	j.bad = &bad
	if _, _, err := f.NewStepper().Step(t.Context()); !errors.Is(err, errDenied) {
		t.Errorf("%v; want the error where nothing else reports it", err)
	}
}
