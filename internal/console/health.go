package console

import (
	"fmt"
	"time"

	"weir/internal/runner"
	"weir/internal/status"
)

// healthPage says whether what is derived is up to date.
type healthPage struct {
	Refused string
	Shards  []shardLine
	Tables  []tableLine
	Builds  []buildLine
	Search  []indexLine
	Shared  bool
	Check   *checkPage
}

// tableLine is a table as the catalog knows it: its stream, with which images, how weir knows that
// the stream was complete, and who reads it since when.
type tableLine struct{ Name, Stream, Images, Complete, Reader, Since string }

// shardLine is how far a group has read a shard.
// Lag is "none" where everything is applied, else the age of the oldest record that is not, by this
// machine's clock; "not known" if the stream cannot be read there.
type shardLine struct {
	Table, Shard, Group, Position string
	Lag, Class                    string
}

// buildLine is a build that the catalog has, also one that is live or verified.
type buildLine struct {
	Of, State, Since, Progress, Rate string
	Generation                       int64
	Percent                          int64 // 0 to 100, -1 if it is not known
}

// indexLine is a search index of any definition. Applied is until when everything in it was
// certainly applied.
type indexLine struct{ Name, State, Class, Kind, Place, Applied string }

func (c *Console) health(r *request) error {
	m := r.part.Model
	st, err := c.options.Status(r.ctx, m.Name)
	if err != nil {
		return err
	}
	p := healthPage{Refused: st.Refused, Shared: c.options.Shards != nil, Check: c.checkOf(r)}
	if p.Shards, err = c.shards(r); err != nil {
		return err
	}
	for i := range st.Tables {
		t := &st.Tables[i]
		p.Tables = append(p.Tables, tableLine{t.Table, t.Stream, t.Images, t.Complete, t.Reader, stamp(t.ReadSince)})
	}
	for i := range st.Builds {
		p.Builds = append(p.Builds, buildOf(&st.Builds[i]))
	}
	for i := range st.Search {
		x := &st.Search[i]
		p.Search = append(p.Search, indexLine{x.Name, x.State, classOf(x.State), x.Kind, x.Place, stamp(x.Applied)})
	}
	return r.ok("health", "Health", &p)
}

// buildOf shows a build. What the status does not know of it is left empty.
func buildOf(b *status.Build) buildLine {
	l := buildLine{Of: b.Entity, State: string(b.State), Since: stamp(&b.Since), Generation: b.Generation, Percent: -1}
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

// shards says how far this process has read and applied each shard that it knows.
// On a store that processes share, these are the shards that this process holds, with no read of
// the stream. Otherwise each shard that is not applied to its end costs one read of one record, and
// the lag is that of its next record.
func (c *Console) shards(r *request) (out []shardLine, err error) {
	if c.options.Shards != nil {
		for _, s := range c.options.Shards(r.part.Model.Name) {
			l := shardLine{Table: s.Table, Shard: s.Shard, Group: "all", Lag: "none", Class: "good"}
			if lag := max(s.ReadAge, s.Unapplied); lag > 0 {
				l.Lag, l.Class = lag.Round(time.Millisecond).String(), lagClass(lag)
			}
			out = append(out, l)
		}
		return out, nil
	}
	for _, group := range r.part.Runner.Groups() {
		places, err := r.part.Runner.Places(r.ctx, group)
		if err != nil {
			return nil, err
		}
		for _, at := range places {
			if at.Done {
				continue
			}
			l := shardLine{Table: at.Table, Shard: at.Shard, Group: runner.KindOf(group), Position: at.At.String(), Lag: "none", Class: "good"}
			next, err := c.system.Store.Read(r.ctx, at.Table, at.Shard, at.At, 1)
			if err != nil {
				l.Lag, l.Class = "not known", "bad"
			} else if len(next.Records) > 0 {
				lag := max(0, time.Since(next.Records[0].Time))
				l.Lag, l.Class = lag.Round(time.Millisecond).String(), lagClass(lag)
			}
			out = append(out, l)
		}
	}
	return out, nil
}

// lagClass is good below what a batch takes, and bad from a minute on.
func lagClass(d time.Duration) string {
	switch {
	case d < 5*time.Second:
		return "good"
	case d < time.Minute:
		return "busy"
	}
	return "bad"
}
