package console

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"weir/internal/model"
	"weir/internal/reader"
	"weir/internal/system"
)

// A course has a sample every sampleEvery, those of the last hour, with the lag of at most
// maxSeries shards. A rate is that of the last rateOver.
const (
	sampleEvery = 10 * time.Second
	maxSamples  = 360
	maxSeries   = 64
	rateOver    = time.Minute
)

// course is how a model went until now, within these bounds.
type course struct {
	mu  sync.Mutex
	all []moment // the oldest first
}

// moment is a model at one moment.
type moment struct {
	at   time.Time
	lag  map[series]time.Duration // -1 where it is not known
	read map[string]uint64        // records of each entity since the process began
}

// series names a shard.
type series struct{ table, shard string }

// shardLag is how far a shard is read and applied.
type shardLag struct {
	series
	at  string        // the position, "" if it is not known
	lag time.Duration // -1 if it is not known
}

// addMoment takes in a moment.
func (k *course) addMoment(s moment) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.all = append(k.all, s)
	if over := len(k.all) - maxSamples; over > 0 {
		k.all = slices.Delete(k.all, 0, over)
	}
}

// rates returns how many records of each entity came in a second, in the last rateOver before a
// sample. The process began to count at began.
func (k *course) rates(now *moment, began time.Time) map[string]float64 {
	k.mu.Lock()
	defer k.mu.Unlock()
	from, was := began, map[string]uint64{}
	for i := range k.all {
		if s := &k.all[i]; now.at.Sub(s.at) >= rateOver || i == 0 && now.at.Sub(began) > rateOver {
			from, was = s.at, s.read
		}
	}
	out := map[string]float64{}
	spent := max(1, now.at.Sub(from).Seconds())
	for e, n := range now.read {
		out[e] = float64(n-was[e]) / spent
	}
	return out
}

// lags returns the lag of a shard in each sample, oldest first; -1 where it was not known.
func (k *course) lags(of series) (out []time.Duration, since time.Time) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for i := range k.all {
		lag, known := k.all[i].lag[of]
		if !known {
			lag = -1
		}
		out = append(out, lag)
	}
	if len(k.all) > 0 {
		since = k.all[0].at
	}
	return out, since
}

// takeSamples takes samples until the console is closed.
func (c *Console) takeSamples() {
	every := time.NewTicker(cmp.Or(c.options.every, sampleEvery))
	defer every.Stop()
	for {
		select {
		case <-c.ctx.Done():
			return
		case <-every.C:
		}
		for _, part := range c.system.Models {
			ctx, cancel := context.WithTimeout(c.ctx, sampleEvery)
			shards, err := c.describeShards(ctx, part)
			cancel()
			if err != nil { // the next sample may be had; a hole in the picture says it
				shards = nil
			}
			c.courses[part.Model.Name].addMoment(c.takeSample(part, shards))
		}
	}
}

// takeSample makes a moment of the present state.
func (c *Console) takeSample(part *system.Part, shards []shardLag) moment {
	s := moment{at: time.Now(), lag: map[series]time.Duration{}, read: c.options.Activity.models[part.Model.Name].read()}
	for i := range shards[:min(len(shards), maxSeries)] {
		s.lag[shards[i].series] = shards[i].lag
	}
	return s
}

// describeShards says how far this process has read and applied each shard that it knows.
// On a store that processes share, these are the shards that this process holds, with no read of
// the stream. Otherwise each shard that is not applied to its end costs one read of one record, and
// the lag is that of its next record.
func (c *Console) describeShards(ctx context.Context, part *system.Part) (out []shardLag, err error) {
	if c.options.Shards != nil {
		for _, s := range c.options.Shards(part.Model.Name) {
			out = append(out, shardLag{series{s.Table, s.Shard}, "", s.Unapplied})
		}
		return out, nil
	}
	places, err := reader.ReadPlaces(ctx, part.Runner)
	if err != nil {
		return nil, err
	}
	for _, at := range places {
		if at.Done {
			continue
		}
		l := shardLag{series: series{at.Table, at.Shard}, at: at.At.String()}
		next, err := c.system.Store.Read(ctx, at.Table, at.Shard, at.At, 1)
		if err != nil {
			l.lag = -1
		} else if len(next.Records) > 0 {
			l.lag = max(0, time.Since(next.Records[0].Time))
		}
		out = append(out, l)
	}
	return out, nil
}

// Lags that are no time: that of a shard that cannot be read, and that of a table of which other
// processes hold all shards.
const (
	lagUnknown   = time.Duration(-1)
	lagElsewhere = time.Duration(-2)
)

// flow is how much comes for the derivations of a model, and how far each is behind.
type flow struct {
	shared bool // other processes may hold shards
	shards []shardLag
	rates  map[string]float64 // records a second, by entity
}

// flow returns the flow of a model by the last minute's samples and the counts of now. It asks
// the store for the lag of each shard, so call it once for a page.
func (c *Console) flow(r *request) (*flow, error) {
	shards, err := c.describeShards(r.ctx, r.part)
	if err != nil {
		return nil, err
	}
	now := c.takeSample(r.part, nil)
	return &flow{c.options.Shards != nil, shards, c.courses[r.part.Model.Name].rates(&now, c.options.Activity.began)}, nil
}

// of returns the rate of a derivation's source rows, and its lag: the greatest of the tables that
// are read for it; below 0 if it is not known of one of them.
func (f *flow) of(m *model.Model, d *model.Derivation) (rate float64, lag time.Duration) {
	for _, e := range d.From {
		rate += f.rates[e]
		_, of := f.table(m.Entity(e).Table.Name)
		lag = worse(lag, of)
	}
	return rate, lag
}

// table returns how many shards of a table this process knows, and the greatest lag of these.
func (f *flow) table(name string) (shards int, lag time.Duration) {
	seen := map[string]bool{}
	for i := range f.shards {
		if s := &f.shards[i]; s.table == name {
			seen[s.shard], lag = true, worse(lag, s.lag)
		}
	}
	if f.shared && len(seen) == 0 {
		lag = lagElsewhere
	}
	return len(seen), lag
}

// worse is the greater of two lags; a lag that is not known of one is not known of both.
func worse(a, b time.Duration) time.Duration {
	switch {
	case a == lagUnknown || b == lagUnknown:
		return lagUnknown
	case a == lagElsewhere || b == lagElsewhere:
		return lagElsewhere
	}
	return max(a, b)
}

// formatLag writes a lag, and returns the class that it has.
func formatLag(lag time.Duration) (text, class string) {
	switch lag {
	case lagUnknown:
		return "not known", "bad"
	case lagElsewhere:
		return "not here", "idle"
	}
	return lagText(lag), lagClass(lag)
}
