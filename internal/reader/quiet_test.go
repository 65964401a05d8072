package reader

import (
	"context"
	"fmt"
	"testing"
	"time"

	"weir/internal/events"
	"weir/internal/failtest"
	"weir/internal/model"
	"weir/internal/runner"
	"weir/internal/store"
	"weir/internal/value"
)

// polled is a store that counts what is read of its shards. One of them has a record each time.
type polled struct {
	store.Store
	reads map[string]int
	ended string
	rows  int
}

func (p *polled) Get(_ context.Context, refs []store.Ref) ([]value.Item, error) {
	p.rows += len(refs)
	return make([]value.Item, len(refs)), nil
}

func (p *polled) Read(_ context.Context, _, shard string, _ events.Position, _ int) (store.Records, error) {
	p.reads[shard]++
	if shard == "busy" {
		return store.Records{Records: []events.Record{{Position: events.PositionOf(1)}}}, nil
	}
	return store.Records{End: shard == p.ended}, nil
}

// TestQuietShards: of many shards, those that give nothing are polled less often, so that 1,000 cost less than 100 dollars a month. Of
// few, all are polled each second. What gives records, or has ended, is not held up.
func TestQuietShards(t *testing.T) {
	m, err := model.Load("gallery")
	failtest.On(t, err)
	for _, c := range []struct{ shards, polls int }{{100, 60}, {150, 60}, {1000, 10 + 8}, {5000, 10 + 5}} {
		clock := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
		now := func() time.Time { return clock }
		p := &polled{reads: map[string]int{}}
		r := NewLeased(&runner.Runner{Model: m, Store: p, Now: now, Mono: now}, Options{})
		r.fence, r.beatAt = 1, clock
		listed := []store.Shard{{ID: "busy"}}
		for i := 1; i < c.shards; i++ {
			listed = append(listed, store.Shard{ID: fmt.Sprint(i)})
		}
		for i := range c.shards { // closed shards are read to their end, and then no more
			listed = append(listed, store.Shard{ID: fmt.Sprint("closed", i), Closed: true})
		}
		r.adoptSurvey(&survey{listed: map[string][]store.Shard{"gallery": listed}, at: clock})
		for range 60 {
			for _, s := range listed[:c.shards] {
				_, err := r.Read(t.Context(), "gallery", s.ID, events.Position{}, 1)
				failtest.On(t, err)
			}
			clock = clock.Add(time.Second)
			r.beatAt = clock
		}
		if p.reads["busy"] != 60 {
			t.Errorf("of %d shards, the one with records is polled %d times", c.shards, p.reads["busy"])
		}
		if n := p.reads["7"]; n > c.polls || n < c.polls-1 {
			t.Errorf("of %d shards, a quiet one is polled %d times a minute, want %d", c.shards, n, c.polls)
		}
		if lag, most := r.quietPoll(), leastPolls*time.Second; lag > most || c.shards <= 150 && lag != time.Second {
			t.Errorf("of %d shards, a quiet one waits for %v", c.shards, lag)
		}
		p.ended = "7"
		clock = clock.Add(leastPolls * time.Second)
		r.beatAt = clock
		for range 2 {
			page, err := r.Read(t.Context(), "gallery", "7", events.Position{}, 1)
			failtest.On(t, err)
			if !page.End {
				t.Error("the end of a shard is held up")
			}
		}
	}
}

// TestStandbyReadsNoRows: a process without the lease asks for no checkpoint in its passes: with 1,000 shards, one read of each a second
// would cost hundreds of dollars a month.
func TestStandbyReadsNoRows(t *testing.T) {
	m, err := model.Load("gallery")
	failtest.On(t, err)
	clock := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	now := func() time.Time { return clock }
	p := &polled{reads: map[string]int{}}
	run := &runner.Runner{Model: m, Store: p, Now: now, Mono: now}
	r := NewLeased(run, Options{})
	c := (&Follower{Runner: run, Source: r}).newConsumer()
	for range 60 {
		r.adoptSurvey(&survey{listed: map[string][]store.Shard{"gallery": {{ID: "quiet"}, {ID: "closed", Closed: true}}}, at: clock})
		_, err := c.readPass(t.Context())
		failtest.On(t, err)
		clock = clock.Add(time.Second)
	}
	if p.rows > 0 || len(p.reads) > 0 {
		t.Errorf("it reads %d rows, and shards %v", p.rows, p.reads)
	}
}
