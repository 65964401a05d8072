package lambda_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"weir/internal/deadletter"
	"weir/internal/events"
	"weir/internal/failtest"
	"weir/internal/lambda"
	"weir/internal/lambda/lambdatest"
	"weir/internal/owntable"
	"weir/internal/store"
	"weir/internal/store/embedded"
	"weir/internal/value"
)

// streamed is a world whose function gets the records of the store's own stream.
type streamed struct {
	*world
	h    *lambda.Handler
	read map[string]events.Position // by the mapping
	tick lambda.Tick
}

func newStreamed(t *testing.T) *streamed {
	s := &streamed{world: newWorld(t), read: map[string]events.Position{}}
	s.now = time.Now().Truncate(time.Second).UTC()
	s.restart()
	return s
}

// restart makes the function a new process.
func (s *streamed) restart() {
	s.h = s.over(s.Store)
	s.h.Ticked = func(t lambda.Tick) { s.tick = t }
}

// puts puts pictures into the album a.
func (s *streamed) puts(ids ...string) {
	s.t.Helper()
	for _, id := range ids {
		row := value.NewItem(value.Attr{Name: "PK", Value: value.OfString("ALBUM#a")}, value.Attr{Name: "SK", Value: value.OfString("MEDIA#" + id)},
			value.Attr{Name: "EntityType", Value: value.OfString("AlbumMedia")}, value.Attr{Name: "albumId", Value: value.OfString("a")}, value.Attr{Name: "mediaId", Value: value.OfString(id)},
			value.Attr{Name: "addedAt", Value: value.OfString("2025-01-01T00:00:00Z")})
		key, _ := s.model.Tables[0].KeyOf(row)
		if out, err := s.Store.Write(s.t.Context(), []store.Write{{Ref: store.Ref{Table: "gallery", Key: key}, Put: row}}); err != nil || out[0].Err != nil {
			s.t.Fatal(err, out)
		}
	}
}

// all lists the shards, and the one that has the album.
func (s *streamed) all() (out []store.Shard, album string) {
	s.t.Helper()
	out, err := s.Store.Shards(s.t.Context(), "gallery")
	if err != nil {
		s.t.Fatal(err)
	}
	for _, sh := range out {
		if page, err := s.Store.Read(s.t.Context(), "gallery", sh.ID, events.Position{}, 1); err == nil && len(page.Records) > 0 {
			album = sh.ID
		}
	}
	return out, album
}

// invokes gives the function what the mapping has not read, but for the first records that it skips.
func (s *streamed) invokes(skip int) (err error) {
	s.t.Helper()
	shards, _ := s.all()
	for _, sh := range shards {
		page, err := s.Store.Read(s.t.Context(), "gallery", sh.ID, s.read[sh.ID], 100)
		if errors.Is(err, store.ErrTrimmed) {
			at, bad := s.Store.Horizon(s.t.Context(), "gallery", sh.ID)
			if bad != nil {
				return bad
			}
			page, err = s.Store.Read(s.t.Context(), "gallery", sh.ID, at, 100)
		}
		if err != nil {
			return err
		}
		var records []json.RawMessage
		for i := range page.Records {
			page.Records[i].Time = s.now
			records = append(records, lambdatest.Record("gallery", &page.Records[i]))
		}
		if len(records) <= skip {
			continue
		}
		event, err := json.Marshal(map[string]any{
			"Records": records[skip:], "shardId": sh.ID, "state": map[string]any{}, "window": map[string]any{"start": "2026-01-02T03:00:00Z", "end": "2026-01-02T03:05:00Z"},
		})
		if err != nil {
			return err
		}
		if _, err := s.h.Invoke(s.t.Context(), event); err != nil {
			return err
		}
		s.read[sh.ID] = page.Records[len(page.Records)-1].Position
	}
	return nil
}

// ticks lets the schedule invoke the function, in a minute in which it looks.
func (s *streamed) ticks() {
	s.t.Helper()
	s.tick = lambda.Tick{}
	event := `{"version":"0","detail-type":"Scheduled Event","source":"aws.events","time":"2026-01-01T00:05:00Z","resources":[],"detail":{}}`
	if out, err := s.h.Invoke(s.t.Context(), []byte(event)); err != nil || string(out) != "{}" {
		s.t.Fatalf("%s %v", out, err)
	}
}

// gaps are the dead letters that are open, all of the kind gap.
func (s *streamed) gaps() (out []deadletter.Letter) {
	s.t.Helper()
	err := s.h.Runner.EachDeadLetter(s.t.Context(), func(d deadletter.Letter) error {
		if d.Kind != deadletter.Gap {
			s.t.Errorf("%s: %s", d.Kind, d.Reason)
		}
		out = append(out, d)
		return nil
	})
	if err != nil {
		s.t.Fatal(err)
	}
	return out
}

// trims lets the records of a shard up to a position expire.
func (s *streamed) trims(shard string, upTo events.Position) {
	s.t.Helper()
	if err := s.Store.Trim(s.t.Context(), "gallery", shard, upTo); err != nil {
		s.t.Fatal(err)
	}
}

// last is the last record of a shard.
func (s *streamed) last(shard string) events.Position {
	s.t.Helper()
	page, err := s.Store.Read(s.t.Context(), "gallery", shard, s.read[shard], 100)
	if err != nil || len(page.Records) == 0 {
		s.t.Fatal(err, page)
	}
	return page.Records[len(page.Records)-1].Position
}

// row is what is kept of the table's stream.
func (s *streamed) row() owntable.StreamRow {
	s.t.Helper()
	row, err := store.GetRow(s.t.Context(), s.Store, owntable.Stream("gallery", "gallery"))
	if err != nil {
		s.t.Fatal(err)
	}
	is, err := owntable.DecodeStream(row)
	if err != nil {
		s.t.Fatal(err)
	}
	return is
}

// TestTick: the schedule says how old the oldest record is that is not applied, notes until when all is, counts shards and dead
// letters, and looks at nothing in the minutes between.
func TestTick(t *testing.T) {
	s := newStreamed(t)
	s.ticks()
	if is := s.row(); !is.Seen.IsZero() || is.Open == 0 {
		t.Errorf("nothing was read, and all is known until %v, of %d shards", is.Seen, is.Open)
	}
	s.puts("1", "2")
	failtest.On(t, s.invokes(0))
	s.ticks()
	shards, _ := s.all()
	if is := s.row(); !is.Seen.Equal(s.now) || is.Open != len(shards) {
		t.Errorf("all is applied until %v, want %v; %d shards", is.Seen, s.now, is.Open)
	}
	if len(s.tick.Tables) != 1 || !s.tick.Tables[0].Known || s.tick.Tables[0].Lag != 0 || !s.tick.Counted || len(s.tick.Letters) != 0 {
		t.Errorf("%+v", s.tick)
	}
	s.puts("3")
	s.now = s.now.Add(2 * time.Hour)
	s.ticks()
	if lag := s.tick.Tables[0].Lag; lag < 2*time.Hour-time.Minute || lag > 2*time.Hour+time.Minute {
		t.Errorf("a record that waits for 2 hours has a lag of %v", lag)
	}
	if is := s.row(); is.Seen.After(s.now.Add(-2 * time.Hour).Add(time.Minute)) {
		t.Errorf("all is said to be applied until %v", is.Seen)
	}
	if out, err := s.h.Invoke(t.Context(), []byte(`{"detail-type":"Scheduled Event","time":"2026-01-01T00:06:00Z"}`)); err != nil || len(s.tick.Tables) != 0 || string(out) != "{}" {
		t.Errorf("%s, %v, %+v", out, err, s.tick)
	}
}

// TestTickFindsWhatExpired: records that expire while the mapping stands still are a gap, which the next look keeps, once; the next
// event keeps it if no program has looked.
func TestTickFindsWhatExpired(t *testing.T) {
	for _, by := range []string{"a look", "an event"} {
		t.Run(by, func(t *testing.T) {
			s := newStreamed(t)
			s.puts("1", "2")
			failtest.On(t, s.invokes(0))
			s.ticks()
			_, shard := s.all()
			s.puts("3", "4", "5")
			s.now = s.now.Add(30 * time.Hour)
			s.trims(shard, s.last(shard))
			s.puts("6")
			if by == "a look" {
				for range 3 {
					s.ticks()
				}
				if s.tick.Tables[0].Lag < 24*time.Hour || s.tick.Letters[""] != 2 {
					t.Errorf("%+v", s.tick)
				}
			}
			s.restart()
			failtest.On(t, s.invokes(0))
			gaps := s.gaps() // of the other shards nothing is known
			slices.SortFunc(gaps, func(a, b deadletter.Letter) int { return strings.Compare(a.Target, b.Target) })
			if len(gaps) != 2 || gaps[0].Target != fmt.Sprintf("shard %s of gallery", shard) || gaps[1].Target != "stream of gallery" {
				t.Fatalf("%+v", gaps)
			}
			s.now = s.now.Add(time.Hour)
			s.restart()
			s.ticks()
			if gaps := s.gaps(); len(gaps) != 2 || !s.row().Seen.Equal(s.now) {
				t.Errorf("%v, %+v", s.row().Seen, gaps)
			}
		})
	}
}

// TestTickOfUnreadShards: shards of which nothing was read for a day may have lost their first records. That is one gap, however long it
// lasts, whether a look or an event finds it; and none within 23 hours.
func TestTickOfUnreadShards(t *testing.T) {
	for _, by := range []string{"a look", "an event"} {
		for _, after := range []time.Duration{22 * time.Hour, 30 * time.Hour} {
			t.Run(fmt.Sprint(by, " after ", after), func(t *testing.T) {
				s := newStreamed(t)
				s.puts("1")
				failtest.On(t, s.invokes(0))
				s.ticks()
				_, shard := s.all()
				failtest.On(t, s.Store.(lambdatest.Unrecorded).Store.(*embedded.Store).Split(t.Context(), "gallery", shard))
				s.puts("2")
				s.now = s.now.Add(after)
				s.restart()
				if by == "a look" {
					s.ticks()
					s.now = s.now.Add(time.Minute)
					s.ticks()
				}
				failtest.On(t, s.invokes(0))
				gaps := s.gaps()
				if after < 23*time.Hour {
					if len(gaps) > 0 {
						t.Errorf("nothing can have expired: %+v", gaps)
					}
					return
				}
				if len(gaps) != 1 || gaps[0].Target != "stream of gallery" || !strings.Contains(gaps[0].Reason, "records may be missing: for 30 hours") {
					t.Fatalf("%+v", gaps)
				}
			})
		}
	}
}

// TestMappingMadeAgain: an event that passes over records of the stream is refused. A mapping that was deleted and made again sends
// such events.
func TestMappingMadeAgain(t *testing.T) {
	s := newStreamed(t)
	s.puts("1")
	failtest.On(t, s.invokes(0))
	s.puts("2", "3")
	s.now = s.now.Add(2 * time.Minute)
	if err := s.invokes(1); !errors.Is(err, lambda.ErrOrder) || !strings.Contains(err.Error(), "the stream has records before it that did not come") {
		t.Fatal(err)
	}
	failtest.On(t, s.invokes(0))
}
