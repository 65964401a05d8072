package console

import (
	"fmt"
	"math"
	"time"

	"weir/internal/budget"
	"weir/internal/deadletter"
	"weir/internal/status"
)

// healthPage says whether derived data is up to date.
type healthPage struct {
	Refused string
	Shards  []shardLine
	Course  string       // the time and the lag that the pictures show
	Reader  string       // the process that reads the streams, "" for this one
	Gaps    []deadLine   // that wait for an operator
	Units   []budget.Use // that this process has used
	More    bool         // there are more gaps than were looked for
	Tables  []status.Table
	Builds  []buildLine
	Search  []status.Index
	Shared  bool
	Check   *checkPage
}

// shardLine is how far a group has read a shard.
// Lag is "none" where everything is applied, else the age of the oldest record that is not, by this
// machine's clock; "not known" if the stream cannot be read there.
type shardLine struct {
	Table, Shard, Position string
	Lag, Class             string
	Picture                *picture
}

// buildLine is a build that the catalog has, also one that is live or verified.
type buildLine struct {
	Of, State, Since, Progress, Rate string
	Generation                       int64
	Percent                          int64 // 0 to 100, -1 if it is not known
}

// health is the page of one model: its streams, builds, indexes, and the last recount. It reads the
// status at each request.
func (c *Console) health(r *request) error {
	m := r.part.Model
	st, err := c.options.Status(r.ctx, m.Name)
	if err != nil {
		return err
	}
	p := healthPage{Refused: st.Refused, Shared: c.options.Shards != nil, Check: c.checkOf(r), Tables: st.Tables, Search: st.Search}
	shards, err := c.describeShards(r.ctx, r.part)
	if err != nil {
		return err
	}
	p.showShards(c.courses[m.Name], shards)
	if c.options.Reader != nil {
		p.Reader = c.options.Reader(m.Name)
	}
	if err := p.listGaps(r); err != nil {
		return err
	}
	if c.options.Units != nil {
		p.Units = c.options.Units()
	}
	for i := range st.Builds {
		p.Builds = append(p.Builds, buildOf(&st.Builds[i]))
	}
	return r.ok("health", "Health", &p)
}

// buildOf shows a build. Facts that the status does not know of it are left empty.
// Percent is -1 where it is not known how many rows there are.
func buildOf(b *status.Build) buildLine {
	l := buildLine{Of: b.Entity, State: string(b.State), Since: stamp(&b.Since), Generation: b.Generation, Percent: -1}
	if b.Paused != nil {
		l.State, l.Since = paused, stamp(b.Paused)
	}
	if b.Rows > 0 {
		l.Progress = progressOf(b)
		if b.Of > 0 {
			l.Percent = percentOf(b)
		}
	}
	if b.PerSecond > 0 {
		l.Rate = fmt.Sprintf("%.0f rows/s", b.PerSecond)
	}
	return l
}

// lagClass is good below the time of a batch, and bad from a minute on.
func lagClass(d time.Duration) string {
	switch {
	case d < 5*time.Second:
		return "good"
	case d < time.Minute:
		return "busy"
	}
	return "bad"
}

// showShards shows the lag of each shard now, and over the last hour. All pictures have one scale.
// Only the first maxSeries shards have a picture, so a page stays small however many there are.
func (p *healthPage) showShards(k *course, now []shardLag) {
	var courses [][]time.Duration
	var since time.Time
	high := time.Second
	for i := range now {
		lags, from := k.lags(now[i].series)
		since = from
		courses, high = append(courses, lags), max(high, now[i].lag)
		for _, lag := range lags {
			high = max(high, lag)
		}
	}
	for i := range now {
		s := &now[i]
		l := shardLine{Table: s.table, Shard: s.shard, Position: s.at}
		l.Lag, l.Class = formatLag(s.lag)
		if i < maxSeries && len(courses[i]) > 0 {
			l.Picture = lagPicture(courses[i], high)
		}
		p.Shards = append(p.Shards, l)
	}
	if !since.IsZero() {
		p.Course = fmt.Sprintf("The pictures go from %s until now, one sample every %v, and up to %s.", stamp(&since), sampleEvery, lagText(high))
		if len(now) > maxSeries {
			p.Course += fmt.Sprintf(" The first %d shards have one.", maxSeries)
		}
	}
}

// lagPicture draws samples, the oldest at the left end and now at the right end.
func lagPicture(lags []time.Duration, high time.Duration) *picture {
	at, values := make([]float64, len(lags)), make([]float64, len(lags))
	most := time.Duration(-1)
	for i, lag := range lags {
		at[i] = float64(i) / float64(len(lags))
		values[i], most = lag.Seconds(), max(most, lag)
		if lag < 0 {
			values[i] = math.NaN()
		}
	}
	says := "not known"
	switch {
	case most == 0:
		says = "none"
	case most > 0:
		says = "at most " + lagText(most)
	}
	return drawSteps(at, values, 0, high.Seconds(), says)
}

// mostGaps is how many gaps a page lists.
const mostGaps = 20

// listGaps lists the gaps among the first dead letters.
func (p *healthPage) listGaps(r *request) (err error) {
	_, p.More, err = r.eachLetter(func(d *deadletter.Letter) error {
		if len(p.Gaps) == mostGaps {
			return errEnough
		}
		if d.Kind == deadletter.Gap {
			p.Gaps = append(p.Gaps, r.letterLine(d, d.Target, "", longRunes))
		}
		return nil
	})
	return err
}
